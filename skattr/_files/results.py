"""What the command loads and writes: models, and tables of values."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from skattr._files.intact import check_model
from skattr._files.trusted import NAMES, check_file
from skattr.explanation import Explanation

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # the first characters of a formula


def load_model(path: str, trusted: list[str]) -> Any:
    """Return the model in a file: .skops with trusted types only, or a pickle, which may run code.

    Raises a ValueError that says which types of a .skops file are not trusted.
    """
    if Path(path).suffix.lower() == ".skops":
        return _load_skops(path, trusted)
    import joblib

    with _named(path, "cannot be loaded as a model"):
        return joblib.load(path)  # reads plain pickles too


def _load_skops(path: str, trusted: list[str]) -> Any:
    from skops import io as skops_io

    allowed = [*NAMES, *trusted]
    with _named(path, "cannot be loaded as a model"):
        untrusted = skops_io.get_untrusted_types(file=path)
    unknown = [kind for kind in untrusted if kind not in allowed]
    if unknown:
        flags = " ".join(f"--trust {kind}" for kind in unknown)
        raise ValueError(
            f"{path} holds types that are not trusted; if you know where they come from, add "
            f"{flags}"
        )
    with _named(path, "is damaged or was tampered with", ValueError):
        check_file(path, trusted)
        model = skops_io.load(path, trusted=allowed)
        check_model(model, trusted)
    return model


@contextmanager
def _named(path: str, problem: str, expected: type[Exception] | tuple = ()) -> Iterator[None]:
    """Turn any error into a ValueError that names the file; `expected` ones need no type name."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, expected) else f"{type(error).__name__}: "
        reason = " ".join(f"{kind}{error}".split())
        raise ValueError(f"{path} {problem}: {reason[:500]}") from error


def values_table(explanation: Explanation) -> pd.DataFrame:
    """Return one line for each row: its name, its prediction, the base value, and the values.

    With several outputs, names start with the output: `output__column`. A lone surrogate, which no
    file can hold, is written as its number behind a backslash.
    """
    several = len(explanation.output_names) > 1
    parts = []
    for output in explanation.output_names:
        one = explanation.select(output)
        values = one.to_frame()
        values.columns = pd.Index([_escaped(str(name)) for name in values.columns])
        values.index = values.index.map(_escaped) if values.index.dtype == object else values.index
        taken = set(values.columns)
        values.insert(0, _free("base_value", taken), one.base_value)
        values.insert(0, _free("prediction", taken), np.asarray(one.predictions))
        parts.append(values.add_prefix(f"{_escaped(output)}__") if several else values)
    table = pd.concat(parts, axis=1)
    row = table.index.name or _free("row", set(table.columns))
    return table.rename_axis(row).reset_index()


def _escaped(cell: Any) -> Any:
    if isinstance(cell, str):
        return cell.encode("utf-8", "backslashreplace").decode("utf-8")
    return cell


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


class TableWriter:
    """Writes tables one after the other to an open file, in the format that a name says.

    Parameters
    ----------
    file : binary file
    path : path
        Its name, or None for CSV.
    """

    def __init__(self, file: BinaryIO, path: str | os.PathLike | None = None) -> None:
        self.file = file
        self.kind = ".csv" if path is None else Path(path).suffix.lower()
        self.is_first = True
        self._parquet: Any = None

    def write(self, table: pd.DataFrame) -> None:
        """Write some rows."""
        if self.kind == ".parquet":
            self._write_parquet(table)
        elif self.kind == ".csv":
            self.file.write(table.to_csv(index=False, header=self.is_first).encode("utf-8"))
        else:
            text = json.dumps(table.to_dict("records"), indent=1, default=str)
            lead = "[" if self.is_first else ","
            self.file.write((lead + text[1 : -len("\n]")]).encode("utf-8"))
        self.is_first = False

    def _write_parquet(self, table: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._parquet is None:
            rows = pa.Table.from_pandas(table, preserve_index=False)
            self._parquet = pq.ParquetWriter(self.file, rows.schema)
        schema = self._parquet.schema
        self._parquet.write_table(pa.Table.from_pandas(table, schema, preserve_index=False))

    def close(self) -> None:
        """Write the end of the file."""
        if self._parquet is not None:
            self._parquet.close()
        elif self.kind == ".json":
            self.file.write(b"\n]")
