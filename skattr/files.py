"""What the command reads and writes: models, tables, and values."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from skattr.explanation import Explanation
from skattr.storage import whole_file

TABLES = (".csv", ".parquet")
PICKLES = (".joblib", ".pkl", ".pickle")
RESULTS = (".csv", ".json", ".parquet")


def load_model(path: str, trusted: list[str], allow_pickle: bool) -> Any:
    """Return the model in a file: .skops with trusted types only, or a pickle if that is allowed.

    Raises a ValueError that says which types are not trusted, or how to allow a pickle.
    """
    kind = Path(path).suffix.lower()
    if kind == ".skops":
        return _load_skops(path, trusted)
    if kind not in PICKLES:
        raise ValueError(f"{path}: a model is a .skops, .joblib or .pkl file, not {kind or 'this'}")
    if not allow_pickle:
        raise ValueError(
            f"{path} is a pickle: loading it runs whatever code is in it. If you made it yourself, "
            "or trust who did, add --allow-pickle; skops.io.dump writes files without that danger"
        )
    import joblib

    return joblib.load(path)  # reads plain pickles too


def _load_skops(path: str, trusted: list[str]) -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        raise ImportError("a .skops model needs skops: pip install skops") from error
    unknown = [kind for kind in skops_io.get_untrusted_types(file=path) if kind not in trusted]
    if unknown:
        flags = " ".join(f"--trust {kind}" for kind in unknown)
        raise ValueError(
            f"{path} holds types that are not trusted yet; if you know them, add {flags}"
        )
    return skops_io.load(path, trusted=trusted)


def read_table(path: str, index: str | None = None, like: pd.DataFrame | None = None) -> Any:
    """Return a CSV or Parquet file as a DataFrame; columns that are text in `like` stay text."""
    kind = Path(path).suffix.lower()
    if kind not in TABLES:
        raise ValueError(f"{path}: a table is a .csv or .parquet file, not {kind or 'this'}")
    if kind == ".csv":
        text = [] if like is None else [c for c in like if _is_text(like[c])]
        table = pd.read_csv(path, dtype=dict.fromkeys(text, str))
    else:
        table = _parquet(lambda: pd.read_parquet(path))
    if table.empty:
        raise ValueError(f"{path} has no rows")
    if index is None:
        return table
    if index not in table:
        raise ValueError(f"{path} has no column {index!r} for the index")
    return table.set_index(index)


def _is_text(column: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mM")


def _parquet(call: Any) -> Any:
    try:
        return call()
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error


def own_columns(model: Any, table: pd.DataFrame, path: str) -> tuple[pd.DataFrame, list]:
    """Return the columns that the model was fitted on, and the names of the others.

    A model that knows no names takes all columns, if their number is right.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(model, "feature_name_", None) or getattr(model, "feature_names_", None)
    if names is None:
        wanted = getattr(model, "n_features_in_", table.shape[1])
        if wanted != table.shape[1]:
            raise ValueError(
                f"{path} has {table.shape[1]} columns, the model takes {wanted} and does not know "
                "their names: leave the others out of the file"
            )
        return table, []
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(f"{path} lacks the columns {missing} that the model was fitted on")
    return table[list(names)], [name for name in table.columns if name not in set(names)]


def values_table(explanation: Explanation) -> pd.DataFrame:
    """Return the values with the index as first column, `output__feature` for several outputs."""
    frame = explanation.to_frame()
    if len(explanation.output_names) > 1:
        frame.columns = pd.Index([f"{output}__{name}" for output, name in frame.columns])
    else:
        frame.columns = pd.Index([str(name) for name in frame.columns])
    free = [name for name in ("row", "index", "row_") if name not in frame.columns]
    return frame.rename_axis(frame.index.name or free[0]).reset_index()


def check_result(path: str) -> None:
    """Refuse what could not be written, before anything is computed."""
    if Path(path).suffix.lower() not in RESULTS:
        raise ValueError(f"{path}: values are written as .csv, .json or .parquet")
    if not Path(path).resolve().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).resolve().parent}")
    if Path(path).suffix.lower() == ".parquet":
        _parquet(lambda: pd.DataFrame({"row": [0]}).to_parquet(io.BytesIO()))


def write_table(table: pd.DataFrame, path: str) -> None:
    """Write a table in the format that its name says, whole or not at all."""
    kind = Path(path).suffix.lower()
    if kind == ".parquet":
        buffer = io.BytesIO()
        _parquet(lambda: table.to_parquet(buffer, index=False))
        content = buffer.getvalue()
    elif kind == ".csv":
        content = table.to_csv(index=False).encode("utf-8")
    else:
        content = json.dumps(table.to_dict("records"), indent=1, default=str).encode("utf-8")
    with whole_file(path) as file:
        file.write(content)
