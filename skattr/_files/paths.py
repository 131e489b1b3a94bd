"""File names of the command, checked before anything is loaded. Imports nothing that takes time."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from skattr._files.writing import check_writable

TABLES = (".csv", ".parquet")
PICKLES = (".joblib", ".pkl", ".pickle")
MODELS = (".skops", *PICKLES)
RESULTS = (".csv", ".json", ".parquet")


def check_model(path: str, allow_pickle: bool) -> None:
    """Refuse a file that is not a model, or is a pickle without permission."""
    _check_input(path, MODELS, "a model is a .skops, .joblib or .pkl file")
    if is_pickle(path) and not allow_pickle:
        raise ValueError(
            f"{path} is a pickle: loading it runs whatever code is in it. If you made it yourself, "
            "or trust its author, add --allow-pickle; files written by skops.io.dump run no code"
        )

    if not is_pickle(path):
        _check_installed(path, "skops", "a .skops model needs skops")


def is_pickle(path: str) -> bool:
    """Tell whether the name of a model is that of a pickle."""
    return Path(path).suffix.lower() in PICKLES


def check_table(path: str) -> None:
    """Refuse a file that is not a table."""
    _check_input(path, TABLES, "a table is a .csv or .parquet file")
    _check_parquet(path)


def check_values(path: str, inputs: list[str], safe_csv: bool = False) -> None:
    """Refuse a file that the values cannot be written to."""
    if Path(path).suffix.lower() not in RESULTS:
        raise ValueError(f"{path}: values are written as .csv, .json or .parquet")
    if safe_csv and Path(path).suffix.lower() != ".csv":
        raise ValueError(f"{path}: --safe-csv is for .csv files, other formats need none")
    check_target(path, inputs)
    _check_parquet(path)


def check_target(path: str, inputs: list[str] | None = None) -> None:
    """Refuse a file that cannot be written, or would replace what is read."""
    check_writable(path)
    for name in inputs or []:
        if os.path.exists(path) and os.path.samefile(path, name):
            raise ValueError(f"{path} is read and would be written: choose another name for -o")


def _check_input(path: str, suffixes: tuple[str, ...], words: str) -> None:
    if "://" in path:
        raise ValueError(f"{path} is an address: nothing is fetched, so download the file first")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, and {words}")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}")
    if Path(path).suffix.lower() not in suffixes:
        raise ValueError(f"{path}: {words}, not {Path(path).suffix or 'this'}")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is a device, a pipe or a socket: {words}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{path} cannot be read")


def _check_parquet(path: str) -> None:
    if Path(path).suffix.lower() == ".parquet":
        _check_installed(path, "pyarrow", "Parquet files need pyarrow")


def _check_installed(path: str, library: str, words: str) -> None:
    if find_spec(library) is None:
        raise ImportError(f"{path}: {words}: pip install {library}")
