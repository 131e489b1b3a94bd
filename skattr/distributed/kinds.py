"""The kinds of frames, in order: the first that a frame belongs to serves it.

A frame is recognised by the module of its class, so that no library is imported that is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.distributed.source import Source, check_names


class Kind(NamedTuple):
    """One kind of frame."""

    words: str
    matches: Callable[[Any], bool]
    module: str  # in this package, with a class of the next name
    source: str
    extra: str  # that installs the library


def _is(frame: Any, library: str, *names: str) -> bool:
    """Tell whether a class of a library is among those of a frame."""
    return any(
        base.__module__.split(".")[0] == library and base.__name__ in names
        for base in type(frame).__mro__
    )


def _is_arrow(frame: Any) -> bool:
    return _is(frame, "pyarrow", "Dataset") or hasattr(frame, "__arrow_c_stream__")


KINDS = (
    Kind("dask.dataframe.DataFrame", lambda frame: _is(frame, "dask", "DataFrame"),
         "dask_frames", "DaskFrame", "dask"),
    Kind("pyspark.sql.DataFrame", lambda frame: _is(frame, "pyspark", "DataFrame"),
         "spark_frames", "SparkFrame", "spark"),
    Kind("polars.LazyFrame", lambda frame: _is(frame, "polars", "LazyFrame"),
         "polars_frames", "PolarsFrame", "arrow"),
    Kind("duckdb relation",
         lambda frame: _is(frame, "duckdb", "DuckDBPyRelation")
         or _is(frame, "_duckdb", "DuckDBPyRelation"),
         "duckdb_relations", "DuckDBRelation", "arrow"),
    Kind("pyarrow Dataset, RecordBatchReader, or anything with __arrow_c_stream__", _is_arrow,
         "arrow_streams", "ArrowStream", "arrow"),
    Kind("iterable of pandas or polars frames", lambda frame: isinstance(frame, Iterable),
         "iterators", "Frames", "arrow"),
)  # fmt: skip


def source_of(frame: Any) -> Source:
    """Return a frame as a source of rows, or raise a TypeError that lists the kinds."""
    _refuse(frame)
    for kind in KINDS:
        if kind.matches(frame):
            try:
                module = import_module(f"skattr.distributed.{kind.module}")
            except ImportError as error:
                raise ImportError(
                    f"a {kind.words} needs {error.name}: pip install 'skattr[{kind.extra}]'"
                ) from error
            source = getattr(module, kind.source)(frame)
            check_names(source.labels(), "the frame")
            return source
    raise TypeError(f"frame must be {known_kinds()}; got {brief(frame)}")


def known_kinds() -> str:
    """Return all kinds in words."""
    return "a " + ", a ".join(kind.words for kind in KINDS).replace("a iterable", "an iterable")


def _refuse(frame: Any) -> None:
    """Refuse what looks like a frame and is served elsewhere."""
    if frames.is_frame(frame) and not _is(frame, "pyarrow", "Table", "RecordBatch"):
        raise TypeError(
            f"this {type(frame).__name__} is in memory: call fit and explain of the explainer"
        )
    module = type(frame).__module__
    if module.startswith("pyspark.pandas"):
        raise TypeError(
            "the index of a pyspark.pandas frame cannot be kept: use "
            "frame.to_spark(index_col='index') and keep=['index']"
        )
    single = _is(frame, "dask", "Series", "Index", "Array", "Bag", "Delayed")
    single = single or _is(frame, "pandas", "Series", "Index") or _is(frame, "polars", "Series")
    if single or _is(frame, "pyarrow", "Array", "ChunkedArray") or isinstance(frame, np.ndarray):
        library = type(frame).__module__.split(".")[0]
        raise TypeError(f"frame must be {known_kinds()}; got a {library} {type(frame).__name__}")
    if isinstance(frame, str | bytes | dict):
        raise TypeError(f"frame must be {known_kinds()}; got {brief(frame)}")
