"""The result of `check`: one row per axiom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class Witness:
    """A violation of an axiom.

    Parameters
    ----------
    feature : label or None
        The attribution.
    row : int or None
        The position of the point among those that were checked.
    function : callable or None
        A simple function of X that shows it, which an explainer takes as a model.
    value : float
        Its attribution, which the axiom does not allow.
    words : str
        The violation in words.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import check
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> witness = check("partial_dependence", X)["constants"].witness
    >>> witness.value  # what the constant 1 gets
    1.0
    """

    feature: Any
    row: int | None
    function: Callable | None
    value: float
    words: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, eq=False)
class Finding:
    """Whether an axiom holds, by how much it is violated at most, and a witness."""

    holds: bool | None
    value: float = np.nan
    witness: Witness | None = None


def worst(findings: Iterable[Finding]) -> Finding:
    """Return the finding for all: violated if one is, else not decided if one is not."""
    findings = list(findings)
    values = [each.value for each in findings if not np.isnan(each.value)]
    value = max(values, default=np.nan)
    broken = [each for each in findings if each.holds is False]
    if broken:
        shown = [each for each in broken if each.witness is not None]
        best = max(shown, key=lambda each: _size(each.value), default=broken[0])
        return Finding(False, value, best.witness)
    holds = None if any(each.holds is None for each in findings) else True
    return Finding(holds, value)


def _size(value: float) -> float:
    return -1.0 if np.isnan(value) else abs(value)


@dataclass(frozen=True, eq=False)
class AxiomTable:
    """Which axioms a measure satisfies.

    Parameters
    ----------
    measure : str
    findings : dict of name: Finding
    points : frame or array
        The explained points that were checked.
    total_variation : array (n_points, n_attributions)
        Of each μ_{j,x}; NaN where not known.
    notes : dict of name: str
        Remarks on axioms.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import check
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> table = check("main_effect", X)
    >>> table["sensitivity"].holds, table["completeness"].holds
    (True, False)
    >>> table.to_frame().loc["sensitivity", "value"]
    np.float64(0.0)
    """

    measure: str
    findings: dict[str, Finding]
    points: Any
    total_variation: np.ndarray
    notes: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Finding:
        return self.findings[name]

    def to_frame(self) -> pd.DataFrame:
        """Return the table: `holds` (True, False, None: not decided), `value`, `witness`.

        The value is by how much an axiom is violated at most over functions with |f| ≤ 1, 0 if it
        holds; for `total_variation` and `off_support` it is the number itself.
        """
        rows = self.findings.values()
        return pd.DataFrame(
            {
                "holds": pd.Series([each.holds for each in rows], dtype=object).to_numpy(),
                "value": [each.value for each in rows],
                "witness": pd.Series([each.witness for each in rows], dtype=object).to_numpy(),
            },
            index=pd.Index(list(self.findings), name="axiom"),
        )

    def __repr__(self) -> str:
        words = {True: "yes", False: "no", None: "?"}
        lines = [("axiom", "holds", "value", "witness")]
        for name, each in self.findings.items():
            value = "" if np.isnan(each.value) else f"{each.value:.4g}"
            note = str(each.witness) if each.witness is not None else self.notes.get(name, "")
            lines.append((name, words[each.holds], value, note))
        widths = [max(len(line[c]) for line in lines) for c in range(3)]
        text = [f"{self.measure}, checked at {len(self.points)} points"]
        for line in lines:
            cells = [part.ljust(width) for part, width in zip(line, widths, strict=False)]
            text.append("  ".join([*cells, line[3]]).rstrip())
        return "\n".join(text)
