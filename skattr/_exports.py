"""An Explanation in other forms: pandas frames, shap's Explanation, and HTML for notebooks."""

from __future__ import annotations

import datetime
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._selection import raw_values, row_index
from skattr._utils.messages import warn
from skattr._utils.numbers import count, formatter, raw

if TYPE_CHECKING:
    from skattr.explanation import Explanation

HTML_ROWS, HTML_COLUMNS, HTML_OUTPUTS = 10, 20, 5


def wide_frame(explanation: Explanation) -> pd.DataFrame:
    """Return one line per row and one column per attribution, (output, feature) if several."""
    columns, names = frames.as_index(explanation.feature_names), explanation.output_names
    k = len(names)
    if k > 1:
        unique = columns.unique()  # built from codes: labels may be duplicated, or tuples
        codes = [np.repeat(range(k), len(columns)), np.tile(unique.get_indexer(columns), k)]
        levels = [frames.as_index(names), unique]
        columns = pd.MultiIndex(levels, codes, names=["output", "feature"])
    values = _by_output(explanation.values)
    return pd.DataFrame(values, index=row_index(explanation.data), columns=columns, copy=True)


def tidy_frame(explanation: Explanation) -> pd.DataFrame:
    """Return one line per row, output and attribution."""
    values, names = explanation.values, explanation.output_names
    n, g, k = *values.shape[:2], len(names)
    cells = np.tile(raw_values(explanation.data, explanation.columns), k).ravel()
    one_type = len({type(cell) for cell in cells}) == 1
    error = explanation.std_error
    columns = {
        "row": row_index(explanation.data).to_flat_index().repeat(k * g),
        "output": frames.as_index(names).repeat(g).take(np.tile(range(k * g), n)),
        "feature": frames.as_index(explanation.feature_names).take(np.tile(range(g), n * k)),
        # A single type gets a dtype; mixed integers and floats stay objects.
        "data": frames.inferred(cells) if one_type else pd.Series(cells, dtype=object),
        "value": _by_output(values).ravel(),
        "std_error": _by_output(np.full_like(values, np.nan) if error is None else error).ravel(),
    }
    if explanation.background_error is not None:
        columns["background_error"] = _by_output(explanation.background_error).ravel()
    return pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})


def _by_output(array: np.ndarray) -> np.ndarray:
    """Reshape (n, g) or (n, g, k) to (n, k * g)."""
    n, g = array.shape[:2]
    k = array.shape[2] if array.ndim == 3 else 1
    return array.reshape(n, g, k).transpose(0, 2, 1).reshape(n, k * g)


def as_shap(explanation: Explanation) -> Any:
    """Return a shap.Explanation; warnings point to the caller of `Explanation.to_shap`."""
    if explanation.singles is not None:
        raise ValueError(
            "shap has no explanation of pairs; its plots take the array to_matrix(), for "
            "example shap.summary_plot(explanation.to_matrix(), X)"
        )
    try:
        import shap
    except ImportError as error:
        raise ImportError("to_shap needs the package shap: pip install shap") from error
    data = raw_values(explanation.data, explanation.columns)
    if {type(value) for value in data.flat} <= {int, float, bool}:
        data = data.astype(float)
    else:  # shap cannot format dates
        data = np.vectorize(_date_as_text, otypes=[object])(data)
    values = explanation.values - explanation.offset
    names = [str(name) for name in explanation.feature_names]
    if explanation.predictions is None:
        warn(
            "without predictions it is not known whether the values add up to them; use "
            "explain(X, predictions=True)",
        )
    elif not explanation.adds_up():
        remainder = explanation.remainder().to_numpy()
        values = np.concatenate([values, remainder[:, None]], axis=1)
        data = np.concatenate([data, np.full((len(data), 1), np.nan)], axis=1)
        names.append(explanation.remainder_name)
        warn(
            f"the values do not add up to the prediction: the last column, {names[-1]!r}, is "
            "the difference",
        )
    outputs = [*explanation.output_names]
    return shap.Explanation(
        values=values,
        base_values=np.broadcast_to(explanation.start, (len(values), *values.shape[2:])).copy(),
        data=data,
        feature_names=names,
        output_names=outputs if len(outputs) > 1 else None,
    )


def _date_as_text(value: Any) -> Any:
    return raw(value) if isinstance(value, datetime.date) and not pd.isna(value) else value


def as_html(explanation: Explanation) -> str:
    """Return tables of the first rows, one per output, for notebooks."""
    outputs = explanation.output_names
    head, hidden = explanation[:HTML_ROWS], len(outputs) - HTML_OUTPUTS
    parts = [f"<p>{escape(repr(explanation))}</p>"]
    for name in outputs[:HTML_OUTPUTS]:
        parts.append(_table(head.select(name).to_frame(), name, len(explanation)))
    if hidden > 0:
        parts.append(f"<p>{hidden} more outputs are not shown.</p>")
    return "<div>" + "\n".join(parts) + "</div>"


def _table(frame: pd.DataFrame, output: str, n: int) -> str:
    """Return an HTML table of the first rows, with all labels escaped."""
    shown = frame.iloc[:, :HTML_COLUMNS]
    caption = (
        f"{output}: {len(frame)} of {count(n)} rows, {shown.shape[1]} of {frame.shape[1]} columns"
    )
    lines = [["", *shown.columns]]
    columns = [list(map(formatter(column), column)) for column in shown.to_numpy().T]
    lines += [[label, *row] for label, *row in zip(shown.index, *columns, strict=True)]
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in line) for line in lines)
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
