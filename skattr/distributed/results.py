"""The columns of explained frames, declared before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.explanation import Explanation


@dataclass(frozen=True)
class ResultColumns:
    """Names of the columns of a result, which are all float64.

    For each output: `prediction` (if asked for), `base_value`, one column per attribution, and
    `NAME__std_error` and `NAME__background_error` (if asked for). With several outputs, names start
    with `OUTPUT__`.

    Examples
    --------
    >>> ResultColumns.declared(["a", "b"], ["prediction"], ["a", "b"]).names
    ['prediction', 'base_value', 'a', 'b']
    """

    names: list[str]
    inputs: list[Any]  # the columns that the explainer takes
    predictions: bool = True
    errors: bool = False
    background_errors: bool = False

    @classmethod
    def declared(
        cls,
        features: list[Any],
        outputs: list[str],
        inputs: list[Any],
        predictions: bool = True,
        errors: bool = False,
        background_errors: bool = False,
    ) -> ResultColumns:
        """Return the columns of an explainer with these attributions and outputs."""
        values = [str(name) for name in features]
        double = sorted({name for name in values if values.count(name) > 1})
        if double:
            raise ValueError(f"the attributions {double} have equal names as text; rename them")
        first = ["prediction", "base_value"] if predictions else ["base_value"]
        names = [*(_free(name, values) for name in first), *values]
        if errors:
            names += [_free(f"{name}__std_error", names) for name in values]
        if background_errors:
            names += [_free(f"{name}__background_error", names) for name in values]
        if len(outputs) > 1:
            names = [f"{output}__{name}" for output in outputs for name in names]
        return cls(names, inputs, predictions, errors, background_errors)

    def of(self, explanation: Explanation) -> dict[str, np.ndarray]:
        """Return the columns of an explanation, by name."""
        n, g, k = *explanation.values.shape[:2], len(explanation.output_names)
        values = explanation.values.reshape(n, g, k)
        errors = [
            np.full((n, g, k), np.nan) if error is None else error.reshape(n, g, k)
            for error, wanted in (
                (explanation.std_error, self.errors),
                (explanation.background_error, self.background_errors),
            )
            if wanted
        ]
        base = np.atleast_1d(explanation.base_value)
        columns: list[np.ndarray] = []
        for c in range(k):
            if self.predictions:
                columns.append(np.asarray(explanation.predictions).reshape(n, k)[:, c])
            columns.append(np.full(n, base[c]))
            for array in (values, *errors):
                columns += [*np.ascontiguousarray(array[:, :, c].T)]
        return dict(zip(self.names, columns, strict=True))


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name
