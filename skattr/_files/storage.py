"""One Explanation as one .npz file: arrays as they are, everything else in a JSON header.

Nothing is pickled, so a file from a stranger can be opened.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from skattr._files.archives import Archive
from skattr._files.writing import whole_file
from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr._version import __version__

FORMAT, VERSION = "skattr.Explanation", 1
ARRAYS = ("values", "base_value", "offset", "predictions", "std_error", "centered_error",
          "reference", "support", "background_error", "centered_background_error",
          "importance_by_fold")  # fmt: skip
LABELS = ("feature_names", "columns", "output_names", "engine", "measure", "measure_name",
          "exact", "scale")  # fmt: skip
SINGLES = "singles_"  # the arrays of single attributions in a file of pairs
Arrays = dict[str, np.ndarray]

_NATIVE = "biufcmM"  # kinds of numpy dtypes that .npy holds and pandas keeps
_MASKED = {"b": pd.arrays.BooleanArray, "i": pd.arrays.IntegerArray,
           "u": pd.arrays.IntegerArray, "f": pd.arrays.FloatingArray}  # fmt: skip


def write(path: str | os.PathLike, fields: Mapping[str, Any]) -> None:
    """Write the fields of an Explanation to `path` as it is (no suffix added), whole or not at all.

    What would not come back as it was raises a ValueError that names it, and nothing is written.
    """
    arrays = _arrays(fields)
    header = {"format": FORMAT, "version": VERSION, "skattr": __version__}
    header["data"] = pack_data(fields["data"], arrays)
    header |= _labels(fields)
    if fields["singles"] is not None:  # their data are those of the pairs
        singles = vars(fields["singles"])
        arrays |= {SINGLES + name: array for name, array in _arrays(singles).items()}
        header["singles"] = _labels(singles)
    # A lone surrogate is a legal character of a label, hence "surrogatepass".
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    arrays["header"] = np.frombuffer(text, dtype=np.uint8)

    with whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _arrays(fields: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(fields[name]) for name in ARRAYS if fields[name] is not None}


def _labels(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that is neither an array nor data as JSON."""
    header = {name: _named(name, pack_value, fields[name]) for name in LABELS}
    return header | {
        "certificate": fields["certificate"],  # JSON as it is
        "shared": fields["shared"],
        "n_folds": fields["n_folds"],
    }


def _fields(header: Mapping[str, Any], arrays: Arrays, prefix: str = "") -> dict[str, Any]:
    """Return what `_arrays` and `_labels` were made of."""
    fields = {name: unpack_value(header[name]) for name in LABELS}
    fields["certificate"] = header.get("certificate")  # missing in files of the first versions
    fields["shared"] = header.get("shared", False)
    fields["n_folds"] = header.get("n_folds", 0)
    return fields | {name: arrays.get(prefix + name) for name in ARRAYS}


def read(path: str | os.PathLike) -> dict[str, Any]:
    """Read the fields that `write` wrote.

    A file that is not ours, damaged, or of a newer version raises a ValueError that names it; no
    more of it is read than it takes to see that.
    """
    with open(path, "rb") as file:
        try:
            stored = Archive(file, _is_known)
            header = json.loads(stored.read("header").tobytes().decode("utf-8", "surrogatepass"))
            version = header["version"] if header["format"] == FORMAT else None
        except Exception as error:  # a stranger's file can fail in any way
            raise ValueError(f"{path} is not an Explanation saved by skattr: {error}") from error
        if version != VERSION:
            raise ValueError(
                f"{path} has format {brief(header['format'])}, version "
                f"{brief(header.get('version'))}, written by skattr "
                f"{brief(header.get('skattr', 'unknown'))}; this is skattr {__version__}, which "
                f"reads {FORMAT!r}, version {VERSION}"
            )
        try:
            arrays = {name: stored.read(name) for name in stored.names}
            fields = _fields(header, arrays)
            fields["data"] = data = unpack_data(header["data"], arrays)
            fields["singles"] = None
            if "singles" in header:
                fields["singles"] = _fields(header["singles"], arrays, SINGLES) | {"data": data}
        except ImportError:  # the library of the frame is not installed: the file is good
            raise
        except Exception as error:
            raise ValueError(f"{path} is a damaged Explanation: {error}") from error
    return fields


def _is_known(name: str) -> bool:
    """Tell whether an Explanation may have an array of this name: see `_keep`."""
    name = name.removeprefix(SINGLES)
    is_data = name.startswith("data") and name[4:].isascii() and name[4:].isdigit()
    return name == "header" or name in ARRAYS or is_data


# Scalars and labels ----------------------------------------------------------------------------


def _pack_numpy(value: np.generic) -> list[str]:
    if value.dtype.kind not in _NATIVE:
        raise TypeError(f"{value!r} of type {type(value).__name__}")
    return [value.dtype.str, value.tobytes().hex()]


def _unpack_numpy(packed: list[str]) -> np.generic:
    return np.frombuffer(bytes.fromhex(packed[1]), dtype=packed[0])[0]


def _pack_time(value: Any) -> list:
    return [*_pack_numpy(value.asm8), str(value.tz) if getattr(value, "tz", None) else None]


def _unpack_timestamp(packed: list) -> pd.Timestamp:
    stamp = pd.Timestamp(_unpack_numpy(packed))
    return stamp if packed[2] is None else stamp.tz_localize("UTC").tz_convert(packed[2])


def _unpack_period(packed: list) -> pd.Period:
    return pd.Period(ordinal=packed[0], freq=packed[1])


# tag: (type, value -> JSON, JSON -> value); the first type that fits wins, subclasses go first.
_TAGS: dict[str, tuple] = {
    "numpy": (np.generic, _pack_numpy, _unpack_numpy),
    "float": (float, repr, float),  # nan and inf, which are not JSON
    "missing": (type(pd.NA), str, lambda _: pd.NA),
    "not_a_time": (type(pd.NaT), str, lambda _: pd.NaT),
    "timestamp": (pd.Timestamp, _pack_time, _unpack_timestamp),
    "timedelta": (pd.Timedelta, _pack_time, lambda held: pd.Timedelta(_unpack_numpy(held))),
    "period": (pd.Period, lambda value: [value.ordinal, value.freqstr], _unpack_period),
    "interval": (
        pd.Interval,
        lambda value: pack_value([value.left, value.right, value.closed]),
        lambda held: pd.Interval(*unpack_value(held)),
    ),
    "tuple": (tuple, lambda value: pack_value([*value]), lambda held: (*unpack_value(held),)),
}


def pack_value(value: Any) -> Any:
    """Return a scalar, a label, or a tuple or list of them as JSON; TypeError where none exists."""
    kind = type(value)
    if kind in (str, int, bool, type(None)) or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if kind is list:
        return [pack_value(item) for item in value]
    for tag, (known, pack, _) in _TAGS.items():
        # A subclass of the user's would come back as another type: numpy's are the exception.
        if kind is known or (tag == "numpy" and isinstance(value, known)):
            return {tag: pack(value)}
    raise TypeError(f"{value!r} of type {kind.__name__}")


def unpack_value(packed: Any) -> Any:
    """Return what `pack_value` was given."""
    if isinstance(packed, list):
        return [unpack_value(item) for item in packed]
    if isinstance(packed, dict):
        ((tag, held),) = packed.items()
        return _TAGS[tag][2](held)
    return packed


def _named(what: str, pack: Any, *args: Any) -> Any:
    """Call `pack`; an error says where (`what`) the value is that cannot be saved."""
    try:
        return pack(*args)
    except TypeError as error:
        raise ValueError(
            f"{what} cannot be saved: {error}. A file holds numbers, strings, booleans, missing "
            "values and the time types of pandas. Convert it, and put the converted data in with "
            "dataclasses.replace(explanation, data=...)."
        ) from error


# Columns, indices and frames -------------------------------------------------------------------


def _keep(array: Any, arrays: Arrays) -> str:
    """Store an array as a member of its own, and return the name of it."""
    name = f"data{len(arrays)}"
    arrays[name] = np.asarray(array)
    return name


def _pack_array(column: pd.Series | pd.Index, arrays: Arrays) -> dict:
    dtype, array = column.dtype, column.array
    packed: dict[str, Any]
    if isinstance(dtype, np.dtype) and dtype.kind in _NATIVE:
        return {"array": _keep(column.to_numpy(), arrays)}
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _pack_index(dtype.categories, arrays)
        codes = _keep(array.codes, arrays)
        return {"codes": codes, "categories": categories, "ordered": dtype.ordered}
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = array.to_numpy(dtype=f"M8[{dtype.unit}]")
        packed = {"utc": _keep(utc, arrays), "dtype": str(dtype)}
    elif type(array) in _MASKED.values():
        missing = array.isna()
        values = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
        packed = {"masked": _keep(values, arrays), "missing": _keep(missing, arrays)}
    else:
        packed = {"list": [pack_value(value) for value in array], "dtype": str(dtype)}
    with suppress(TypeError, ValueError):
        # By name: "str" is backed by pyarrow on some machines and by Python objects on others.
        if str(_unpack_array(packed, arrays).dtype) == str(dtype):
            return packed
    raise TypeError(f"pandas does not build the dtype {dtype} from its name")


def _unpack_array(packed: dict, arrays: Arrays) -> Any:
    if "array" in packed:
        return arrays[packed["array"]]
    if "codes" in packed:
        categories = _unpack_index(packed["categories"], arrays)
        dtype = pd.CategoricalDtype(categories, packed["ordered"])
        return pd.Categorical.from_codes(arrays[packed["codes"]], dtype=dtype)
    if "utc" in packed:
        zone = pd.api.types.pandas_dtype(packed["dtype"]).tz
        return pd.DatetimeIndex(arrays[packed["utc"]]).tz_localize("UTC").tz_convert(zone).array
    if "masked" in packed:
        masked = arrays[packed["masked"]]
        return _MASKED[masked.dtype.kind](masked, arrays[packed["missing"]])
    values = [unpack_value(value) for value in packed["list"]]
    if packed["dtype"] == "object":
        return np.fromiter(values, dtype=object, count=len(values))
    return pd.array(values, dtype=packed["dtype"])


def _pack_index(index: pd.Index, arrays: Arrays) -> dict:
    names = [pack_value(name) for name in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"range": [index.start, index.stop, index.step], "names": names}
    if isinstance(index, pd.MultiIndex):
        return {"levels": [_pack_index(level, arrays) for level in index.levels],
                "codes": [_keep(codes, arrays) for codes in index.codes],
                "names": names}  # fmt: skip
    packed = _pack_array(index, arrays) | {"names": names}
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex) and index.freq is not None:
        # A calendar with holidays has no name: its dates are kept, the frequency is not.
        packed["freq"] = index.freqstr if to_offset(index.freqstr) == index.freq else None
    return packed


def _unpack_index(packed: dict, arrays: Arrays) -> pd.Index:
    names = [unpack_value(name) for name in packed["names"]]
    if "range" in packed:
        return pd.RangeIndex(*packed["range"], name=names[0])
    if "levels" in packed:
        levels = [_unpack_index(level, arrays) for level in packed["levels"]]
        codes = [arrays[name] for name in packed["codes"]]
        return pd.MultiIndex(levels=levels, codes=codes, names=names)
    array = _unpack_array(packed, arrays)
    index = pd.Index(array, dtype=array.dtype, name=names[0], tupleize_cols=False)
    if packed.get("freq"):
        index.freq = packed["freq"]
    return index


def pack_data(data: Any, arrays: Arrays) -> dict:
    """Return X as JSON; its arrays are added to `arrays`."""
    if isinstance(data, np.ndarray):
        if data.dtype != object:
            if data.dtype.kind not in _NATIVE + "SU" or isinstance(data, np.ma.MaskedArray):
                raise ValueError(f"{type(data)} of {data.dtype} cannot be saved; convert it first.")
            return {"array": _keep(data, arrays)}
        columns = [_named(f"column 'x{j}'", pack_value, list(c)) for j, c in enumerate(data.T)]
        return {"objects": columns, "shape": data.shape}
    if nw.dependencies.is_pandas_dataframe(data):
        columns = [
            _named(f"column {label!r}", _pack_array, data.iloc[:, j], arrays)
            for j, label in enumerate(data.columns)
        ]
        labels = _named("column labels", _pack_index, data.columns, arrays)
        index = _named("the index of X", _pack_index, data.index, arrays)
        return {"pandas": columns, "labels": labels, "index": index}
    if nw.dependencies.is_polars_dataframe(data):
        return {"polars": _keep(_polars_bytes(data), arrays)}
    raise ValueError(f"data is a {type(data)}; save writes pandas, polars and numpy data.")


def _polars_bytes(data: Any) -> np.ndarray:
    """Return a polars frame as bytes in polars' own Arrow format: every dtype, no pyarrow."""
    for name, dtype in data.schema.items():
        if str(dtype) == "Object":
            raise ValueError(f"column {name!r} of dtype {dtype} cannot be saved; convert it first.")
    buffer = io.BytesIO()
    data.write_ipc(buffer)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def unpack_data(packed: dict, arrays: Arrays) -> Any:
    """Return X as it was when it was packed."""
    if "array" in packed:
        return arrays[packed["array"]]
    if "objects" in packed:
        n, d = packed["shape"]
        if d != len(packed["objects"]) or any(n != len(column) for column in packed["objects"]):
            raise ValueError("the columns of data do not have its shape")
        data = np.empty((n, d), dtype=object)
        for j, column in enumerate(packed["objects"]):
            data[:, j] = np.fromiter(unpack_value(column), dtype=object, count=len(column))
        return data
    if "polars" in packed:
        import polars as pl

        return pl.read_ipc(io.BytesIO(arrays[packed["polars"]].tobytes()))
    index = _unpack_index(packed["index"], arrays)
    columns = [_unpack_array(column, arrays) for column in packed["pandas"]]
    # Labels may be duplicated, so columns are placed by number; a dtype given is not inferred anew.
    frame = pd.DataFrame(
        {j: pd.Series(array, dtype=array.dtype) for j, array in enumerate(columns)},
        index=range(len(index)),
    )
    frame.index, frame.columns = index, _unpack_index(packed["labels"], arrays)
    return frame


class PicklableTable:
    """A table in a fitted state, which pickles as arrays, as skops needs it."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def __add__(self, other: PicklableTable) -> PicklableTable:
        """Return the rows of both."""
        return PicklableTable(frames.concatenate([self.X, other.X]))

    def __getstate__(self) -> dict:
        if isinstance(self.X, np.ndarray):
            return {"X": self.X}
        with suppress(ValueError):  # a column of unknown objects pickles as it is
            arrays: dict = {}
            return {"X": (pack_data(self.X, arrays), arrays)}
        return {"X": self.X}

    def __setstate__(self, state: dict) -> None:
        packed = state["X"]
        self.X = unpack_data(*packed) if isinstance(packed, tuple) else packed
