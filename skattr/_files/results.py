"""What the command loads and writes: models, and tables of values."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skattr._files.intact import check_model
from skattr._files.tables import parquet
from skattr._files.trusted import NAMES, check_file
from skattr._files.writing import whole_file
from skattr.explanation import Explanation

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what spreadsheets take a cell for, by its start


def load_model(path: str, trusted: list[str]) -> Any:
    """Return the model in a file: .skops with trusted types only, or a pickle, which may run code.

    Raises a ValueError that says which types of a .skops file are not trusted.
    """
    if Path(path).suffix.lower() == ".skops":
        return _load_skops(path, trusted)
    import joblib

    with _named(path):
        return joblib.load(path)  # reads plain pickles too


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the file of a model that cannot be loaded, for whatever reason."""
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{path} cannot be loaded as a model: {reason[:500]}") from error


def _load_skops(path: str, trusted: list[str]) -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        raise ImportError("a .skops model needs skops: pip install skops") from error
    allowed = [*NAMES, *trusted]
    with _named(path):
        untrusted = skops_io.get_untrusted_types(file=path)
    unknown = [kind for kind in untrusted if kind not in allowed]
    if unknown:
        flags = " ".join(f"--trust {kind}" for kind in unknown)
        raise ValueError(
            f"{path} holds types that are not trusted; if you know where they come from, add "
            f"{flags}"
        )
    with _intact(path):
        check_file(path, trusted)
        model = skops_io.load(path, trusted=allowed)
        check_model(model, trusted)
    return model


@contextmanager
def _intact(path: str) -> Iterator[None]:
    """Name the file of a model that is not what skops writes, however that came out."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = " ".join(f"{kind}{error}".split())
        raise ValueError(f"{path} is damaged or was tampered with: {reason[:500]}") from error


def values_table(explanation: Explanation) -> pd.DataFrame:
    """Return one line for each row: its name, its prediction, the base value, and the values.

    With several outputs, names start with the output: `output__column`.
    """
    several = len(explanation.output_names) > 1
    parts = []
    for output in explanation.output_names:
        one = explanation.select(output)
        values = one.to_frame()
        values.columns = pd.Index([str(name) for name in values.columns])
        taken = set(values.columns)
        values.insert(0, _free("base_value", taken), one.base_value)
        values.insert(0, _free("prediction", taken), np.asarray(one.predictions))
        parts.append(values.add_prefix(f"{output}__") if several else values)
    table = pd.concat(parts, axis=1)
    row = table.index.name or _free("row", set(table.columns))
    return table.rename_axis(row).reset_index()


def _free(name: str, taken: set) -> str:
    while name in taken:
        name += "_"
    return name


def neutralised(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no name or label is a formula to a spreadsheet: it starts with '."""
    table = table.set_axis([_plain(name) for name in table], axis=1)
    texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    return table.assign(**{name: table[name].map(_plain) for name in texts})


def _plain(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULAS) else cell


def write_table(table: pd.DataFrame, path: str | os.PathLike) -> None:
    """Write a table in the format that its name says, whole or not at all."""
    kind = Path(path).suffix.lower()
    if kind == ".parquet":
        buffer = io.BytesIO()
        parquet(lambda: table.to_parquet(buffer, index=False))
        content = buffer.getvalue()
    elif kind == ".csv":
        content = table.to_csv(index=False).encode("utf-8")
    else:
        content = json.dumps(table.to_dict("records"), indent=1, default=str).encode("utf-8")
    with whole_file(path) as file:
        file.write(content)
