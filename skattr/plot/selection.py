"""What a picture of an explanation shows: which outputs, which columns, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._utils.messages import brief
from skattr._utils.numbers import count
from skattr.explanation import Explanation
from skattr.plot import drawing


@dataclass
class Selection:
    """The outputs and the columns of an explanation that are drawn."""

    explanations: list[Explanation]  # one per output
    values: list[np.ndarray]  # one array (n, g) per output
    ranking: Ranking
    centered: bool

    @classmethod
    def of(cls, explanation: Any, output: Any, max_features: Any, centered: bool) -> Selection:
        """Check the arguments that all pictures of explanations share, and select.

        Parameters
        ----------
        explanation : Explanation
            What to draw.
        output : str, int or None
            One output, or None for all.
        max_features : int
            The number of columns that are drawn; the others are summed up.
        centered : bool
            Whether to subtract the offset.
        """
        check_explanation(explanation)
        check_count("max_features", max_features)
        names = explanation.output_names if output is None else [output]
        explanations = [explanation.select(name) for name in names]
        values = [one.values - one.offset if centered else one.values for one in explanations]
        ranking = Ranking.of(mean_sizes(values, explanation.scale), max_features)
        return cls(explanations, values, ranking, centered)

    @property
    def scale(self) -> str:
        """The scale of the values."""
        return self.explanations[0].scale

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [one.output_names[0] for one in self.explanations]

    @property
    def names(self) -> list[str]:
        """The names to write: of the columns drawn, and of the others together."""
        return self.ranking.names(self.explanations[0])

    def errors(self, o: int) -> np.ndarray | None:
        """Return the standard errors of the values of output o, (n, g); None if they are exact."""
        one = self.explanations[o]
        return one.centered().std_error if self.centered else one.std_error

    def label(self, outputs: Sequence[int], what: str = "{}") -> str:
        """Return the label of an axis that shows the values of some outputs."""
        output = self.outputs[outputs[0]] if len(outputs) == 1 else None
        return drawing.value_label(self.centered, self.scale, output, what)

    def sharing(self, sizes: Sequence[float]) -> list[list[int]]:
        """Return the outputs that share an axis: all if they can be compared, else each its own."""
        every = list(range(len(self.explanations)))
        together = drawing.comparable(self.scale, np.array(sizes))
        return [every] if together else [[o] for o in every]


@dataclass
class Ranking:
    """The columns by importance: those that are drawn, and the rest, which is summed up."""

    first: np.ndarray  # (m,) positions, the most important one first
    rest: np.ndarray  # (g - m,) positions

    @classmethod
    def of(cls, sizes: np.ndarray, max_features: int) -> Ranking:
        """Rank by sizes, ties in the order of the columns."""
        order = np.argsort(-sizes, kind="stable")
        return cls(order[:max_features], order[max_features:])

    def names(self, explanation: Explanation) -> list[str]:
        """Return the names to write."""
        labels: Any = [explanation.feature_names[j] for j in self.first]
        of_pairs = explanation.singles is not None
        names = [drawing.name_of_pair(x) if of_pairs else drawing.shorten(x) for x in labels]
        what, n = "pair" if of_pairs else "column", len(self.rest)
        return [*names, f"{count(n)} other {what}{'s' if n > 1 else ''}"] if n else names

    def columns(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the columns drawn, and the sum of the rest, (n, m) or (n, m + 1)."""
        drawn = values[:, self.first]
        if not len(self.rest):
            return drawn
        return np.column_stack([drawn, values[:, self.rest].sum(axis=1)])


def check_explanation(explanation: Any) -> None:
    """Refuse what is not an explanation, or has no rows."""
    if not isinstance(explanation, Explanation):
        raise TypeError(
            "explanation must be an Explanation, which explainer.explain(X) returns; got "
            f"{brief(explanation)}"
        )
    if len(explanation) == 0:
        raise ValueError("explanation must have rows, got one with no rows to draw")


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} must be an int of at least 1")


def output_positions(names: Sequence[str], output: Any) -> list[int]:
    """Return the positions of the outputs to draw: all, or the one given by name or position."""
    if output is None:
        return list(range(len(names)))
    if str(output) in names:
        return [list(names).index(str(output))]
    if isinstance(output, int | np.integer) and -len(names) <= output < len(names):
        return [int(output) % len(names)]
    raise ValueError(f"there is no output {brief(output)}; there are {brief(list(names))}")


def mean_sizes(values: Sequence[np.ndarray], scale: str) -> np.ndarray:
    """Return the mean over rows and outputs of |value|, (g,), by which columns are ranked.

    Outputs that cannot be compared count equally: each contributes the shares of its columns.
    """
    means = np.array([np.abs(v).mean(axis=0) for v in values])  # (k, g)
    totals = means.sum(axis=1, keepdims=True)
    if not drawing.comparable(scale, totals):
        means = np.divide(means, totals, out=np.zeros_like(means), where=totals > 0)
    return means.mean(axis=0)


def mean_and_error(
    sizes: np.ndarray, std_error: np.ndarray | None, ranking: Ranking
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of sizes, (n, g), and its standard error, for columns drawn and the rest.

    The error has two parts: that of a mean over rows, and that of approximate values. The second is
    bounded by their mean: rows share points, so their errors need not average out.
    """
    sizes = ranking.columns(sizes)  # (n, m)
    n = len(sizes)
    error = sizes.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(sizes.shape[1])
    if std_error is not None:
        error = np.hypot(error, ranking.columns(std_error).mean(axis=0))
    return sizes.mean(axis=0), error
