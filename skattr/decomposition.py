"""How much of a model single columns explain, how much pairs add, and which columns interact.

Over rows x_i, with f_j the centred values of single columns and f_jk those of pairs,

    f(x_i) = mean + Σ_j f_j(x_i) + Σ_{j<k} f_jk(x_i) + remainder.

Under dependence the parts are not orthogonal. The shares are therefore those of residuals: single
columns explain 1 - Var(f - Σ f_j) / Var f, and pairs what they add to that.

H² (Friedman and Popescu, 2008) is, with all functions centred over the rows,

    H²_jk = Σ_i f_jk(x_i)² / Σ_i F_jk(x_i)²,    H²_j = Σ_i (f - F_j - F_-j)(x_i)² / Σ_i f(x_i)²

where F_jk, F_j and F_-j are the attributions of the pair, the column, and all other columns.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.measures.base import as_terms

__all__ = ["Decomposition", "decompose"]

TINY = 1e-24  # squares relative to those of f, below which a function is constant
BLOCK = 2**22  # numbers of pairs that are computed together, which bounds memory


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition:
    """Shares of the variance of a model, and the strength of its interactions.

    Made by `skattr.decompose`. For several outputs, `shares` is a DataFrame with one column per
    output, and `strength` has one column `H2_<output>` and `share_<output>` each.

    Attributes
    ----------
    shares : Series or DataFrame
        The shares of the variance of f over the rows that "single columns" explain, that "pairs"
        add, and that is left to the "remainder". They add up to 1. A share can be negative where
        columns depend on each other.
    strength : DataFrame
        One row per interaction: `kind` is "pair" (`first`, `second`), "column" (`first` with all
        others) or "all" (any interaction). `H2` is the part of the variance of the joint effect
        that is not a sum of single effects, 0 to 1 but for dependence, and `share` the variance of
        the interaction relative to that of f. The strongest come first.
    n_rows : int
        The number of rows.
    output_names : tuple of str
        The outputs.
    exact : bool
        Whether the values behind are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> parts = skattr.decompose(explainer, X)
    >>> print(parts)
    single columns explain 93 % of this model, pairs 7 %, left: 0 %
    the strongest pair is x0 × x1, H² = 0.07
    """

    shares: pd.Series | pd.DataFrame
    strength: pd.DataFrame
    n_rows: int
    output_names: tuple[str, ...]
    exact: bool

    def to_frame(self) -> pd.DataFrame:
        """Return shares and strengths in one table, with the columns of `strength`.

        The rows of kind "share" come first; their names are in the column `first`.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer, decompose
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> decompose(explainer, X).to_frame().columns.tolist()
        ['kind', 'first', 'second', 'H2', 'share']
        """
        shares = self.shares.to_frame("share") if self.shares.ndim == 1 else self.shares
        top = shares.set_axis(self._columns("share"), axis=1).rename_axis("first").reset_index()
        return pd.concat([top.assign(kind="share"), self.strength], ignore_index=True)[
            list(self.strength.columns)
        ]

    def pairs(self, output: str | int | None = None) -> pd.Series:
        """Return H² of each pair, the strongest first; the index has both columns.

        Parameters
        ----------
        output : str or int, optional
            One of several outputs, by name or position; by default the largest over all of them.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer, decompose
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> decompose(explainer, X).pairs()
        first  second
        x0     x1        0.333333
        Name: H2, dtype: float64
        """
        pairs = self.strength[self.strength["kind"] == "pair"]
        names = self._columns("H2") if output is None else [self._columns("H2")[self._at(output)]]
        index = pd.MultiIndex.from_frame(pairs[["first", "second"]])
        strongest = pd.Series(pairs[names].max(axis=1).to_numpy(), index=index, name="H2")
        return strongest.sort_values(ascending=False, kind="stable")

    def _columns(self, what: str) -> list[str]:
        one = len(self.output_names) == 1
        return [what] if one else [f"{what}_{name}" for name in self.output_names]

    def _at(self, output: Any) -> int:
        names = list(self.output_names)
        if isinstance(output, Hashable) and str(output) in names:
            return names.index(str(output))
        if isinstance(output, int | np.integer) and 0 <= output < len(names):
            return int(output)
        raise ValueError(f"there is no output {brief(output)}; there are {brief(names)}")

    def __str__(self) -> str:
        lines = []
        for name in self.output_names:
            shares = self.shares if self.shares.ndim == 1 else self.shares[name]
            single, pairs, left = (f"{100 * share:.0f} %" for share in shares)
            of = "this model" if len(self.output_names) == 1 else name
            lines.append(f"single columns explain {single} of {of}, pairs {pairs}, left: {left}")
        pairs = self.pairs()
        if len(pairs) and pairs.iloc[0] > 0:
            first, second = pairs.index[0]
            lines.append(f"the strongest pair is {first} × {second}, H² = {pairs.iloc[0]:.2f}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        how = "exact" if self.exact else "approximate"
        return f"<Decomposition over {self.n_rows:,} rows, {how}>\n{self}"


def decompose(explainer: MeasureExplainer, X: Any) -> Decomposition:
    """Decompose a model into single columns, pairs and a remainder, over rows.

    Parameters
    ----------
    explainer : MeasureExplainer
        Fitted by `fit`, with a measure that depends on the own columns only, such as the default.
    X : DataFrame or array (n, d)
        At least two rows; all of them are used.

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> import numpy as np
    >>> import skattr
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explainer = skattr.MeasureExplainer(lambda X: X[:, 0] + X[:, 0] * X[:, 1]).fit(X)
    >>> print(skattr.decompose(explainer, X))
    single columns explain 91 % of this model, pairs 9 %, left: 0 %
    the strongest pair is x0 × x1, H² = 0.09
    """
    if not isinstance(explainer, MeasureExplainer):
        raise TypeError(
            f"decompose: explainer must be a fitted MeasureExplainer, got {brief(explainer)}"
        )
    check_is_fitted(explainer)
    if any(term.depends == "row" for _, term in as_terms(explainer.measure_)):
        raise ValueError(
            f"decompose needs a measure that depends on the own columns only, got "
            f"{explainer.measure_!r}, whose values contain interactions; use the default measure"
        )
    for _, term in as_terms(explainer.measure_):
        if term.no_pairs:
            raise ValueError(f"decompose: there are no pairs of {term!r}: {term.no_pairs}")
    if not hasattr(X, "shape") or len(X) < 2:
        raise ValueError(f"decompose: X must be a table of at least two rows, got {brief(X)}")
    n_values = len(explainer.get_feature_names_out())  # of all outputs
    if n_values == len(explainer.output_names_):
        raise ValueError("decompose: a pair needs two columns or groups, and there is only one")
    sums, others = _Sums(), explainer._complements()
    names: Any = ()
    columns: Any = ()
    exact = True
    step = max(1, BLOCK // n_values**2)
    for start in range(0, len(X), step):
        block = frames.take_rows(X, slice(start, start + step))
        pairs = explainer.explain_pairs(block)
        assert pairs.singles is not None
        sums.add(pairs, others(block))
        names, columns = pairs.feature_names, pairs.singles.feature_names
        exact = exact and pairs.exact and pairs.singles.exact
    outputs = tuple(explainer.output_names_)
    f = sums.square("f")
    if not (f > 0).all():
        flat = [name for name, square in zip(outputs, f, strict=True) if not square > 0]
        raise ValueError(
            f"decompose: the model predicts the same for all rows ({', '.join(flat)}), so that "
            "there is no variance to explain"
        )
    return _as_decomposition(sums, names, columns, outputs, len(X), exact)


class _Sums:
    """Squares of functions around their means, added up over blocks of rows."""

    def __init__(self) -> None:
        self.n = 0
        self.means: dict[str, np.ndarray] = {}
        self.squares: dict[str, np.ndarray] = {}

    def add(self, pairs: Explanation, others: np.ndarray) -> None:
        """Add the values of a block: f, its parts, pairs, and all other columns, (n, g, k)."""
        k = len(pairs.output_names)
        n = len(pairs)
        one = pairs.singles
        assert one is not None
        f = np.asarray(one.predictions).reshape(n, k)
        single = (one.values - one.offset).reshape(n, -1, k)
        pair = pairs.values.reshape(n, -1, k)
        position = {name: a for a, name in enumerate(one.feature_names)}
        names: Any = pairs.feature_names
        first, second = np.array([[position[name] for name in both] for both in names]).T
        left = f - single.sum(axis=1)
        self._merge(
            n,
            {
                "f": f,
                "without pairs": left,
                "rest": left - pair.sum(axis=1),
                "pair": pair,
                "joint": pair + single[:, first] + single[:, second],
                "column": f[:, None] - single - others,
            },
        )

    def _merge(self, n: int, functions: dict[str, np.ndarray]) -> None:
        """Merge means and squares around them (Chan, Golub and LeVeque, 1979)."""
        whole = self.n + n
        for name, values in functions.items():
            mean = values.mean(axis=0)
            square = ((values - mean) ** 2).sum(axis=0)
            if self.n:
                gap = mean - self.means[name]
                square = self.squares[name] + square + gap**2 * (self.n * n / whole)
                mean = self.means[name] + gap * (n / whole)
            self.means[name], self.squares[name] = mean, square
        self.n = whole

    def square(self, name: str) -> np.ndarray:
        """Return Σ_i (g(x_i) - mean)² of a function, (k,) or (g, k)."""
        return self.squares[name]

    def ratio(self, name: str, to: str) -> np.ndarray:
        """Return the squares of a function relative to those of another; 0 if that is constant."""
        top, bottom = (
            self.squares[name],
            np.broadcast_to(self.squares[to], self.squares[name].shape),
        )
        varies = bottom > TINY * self.squares["f"]
        return np.divide(top, bottom, out=np.zeros_like(top), where=varies)


def _as_decomposition(
    sums: _Sums, pairs: tuple, columns: tuple, outputs: tuple[str, ...], n: int, exact: bool
) -> Decomposition:
    without, rest = sums.ratio("without pairs", "f"), sums.ratio("rest", "f")
    shares = np.stack([1 - without, without - rest, rest])  # (3, k)
    parts = [
        _strengths("pair", pairs, sums.ratio("pair", "joint"), sums.ratio("pair", "f"), outputs),
        _strengths("column", [(name, None) for name in columns], sums.ratio("column", "f"),
                   sums.ratio("column", "f"), outputs),
        _strengths("all", [("all columns", None)], without[None], without[None], outputs),
    ]  # fmt: skip
    index = pd.Index(["single columns", "pairs", "remainder"], name="part")
    table = pd.DataFrame(shares, index=index, columns=list(outputs))
    one = len(outputs) == 1
    return Decomposition(
        table.iloc[:, 0].rename("share") if one else table,
        pd.concat(parts, ignore_index=True),
        n,
        outputs,
        exact,
    )


def _strengths(
    kind: str, names: Any, h2: np.ndarray, share: np.ndarray, outputs: tuple[str, ...]
) -> pd.DataFrame:
    """Return interactions as a table, the strongest first."""
    order = np.argsort(-h2.max(axis=1), kind="stable")
    labels = {"kind": kind, "first": [a for a, _ in names], "second": [b for _, b in names]}
    frame = pd.DataFrame(labels, dtype=object)
    for what, numbers in (("H2", h2), ("share", share)):
        for o, name in enumerate(outputs):
            frame[what if len(outputs) == 1 else f"{what}_{name}"] = numbers[:, o]
    return frame.iloc[order]
