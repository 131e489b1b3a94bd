"""Frames beyond memory and beyond one machine: Dask, Spark, polars, DuckDB, Arrow, iterators.

States of the background add up, and a fitted explainer is a small object. So `fit` is a tree
reduction over the partitions, and `explain` a map over them; both give what `MeasureExplainer.fit`
and `.explain` give on all rows in memory.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skattr.distributed.fitting import fit_frame
from skattr.distributed.kinds import source_of
from skattr.distributed.results import ResultColumns
from skattr.distributed.shipping import check_pickles
from skattr.distributed.work import Explaining

__all__ = ["explain", "fit"]


def fit(explainer: Any, frame: Any, sample_weight: Any = None) -> Any:
    """Fit an explainer to all rows of a frame, partition by partition.

    The result is that of `explainer.fit` on all rows, up to rounding, whatever the partitions. Each
    partition is prepared where it is, and what was prepared is merged on the workers. Measures that
    use the range of columns (`Uniform`, `Coefficient`, …) take two passes. So does `Conditional`:
    the first learns its bins and bandwidths (`n_neighbors` as a share of rows) from a seeded sample
    of 50,000 rows, or of all rows if there are no more; the second sums over all rows. Measures
    whose sums do not add up given such a law (`Conditional` by a family of laws, `ALE`,
    `MarginalEffect`, `Removal`) are learned from that sample. `describe` says which were.

    Parameters
    ----------
    explainer : MeasureExplainer
        Its estimator is fitted.
    frame : frame
        A dask.dataframe, a pyspark.sql.DataFrame, a polars.LazyFrame, a DuckDB relation, a pyarrow
        Dataset or RecordBatchReader, anything with `__arrow_c_stream__`, or an iterable of pandas
        or polars frames. It has the columns that the estimator takes, and no others except the
        weights.
    sample_weight : str, optional
        The column with the weights of the rows.

    Returns
    -------
    explainer
        The same object, fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skattr import MeasureExplainer, distributed
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y)
    >>> parts = [X[:100], X[100:300], X[300:]]  # or chunks of a file
    >>> explainer = distributed.fit(MeasureExplainer(forest), parts)
    >>> explainer.n_background_
    442
    """
    return fit_frame(explainer, frame, sample_weight)


def explain(
    explainer: Any,
    frame: Any,
    *,
    keep: Any = None,
    predictions: bool = True,
    errors: bool = False,
    background_errors: bool = False,
) -> Any:
    """Return the attributions of all rows of a frame as a lazy frame of the same kind.

    Nothing is computed before the result is used, and its columns are declared, not found out by
    running the model. They are `prediction`, `base_value` and one per attribution, all float64; if
    the model has several outputs, names start with `OUTPUT__`. Values are those of
    `explainer.explain`, bit for bit. The explainer is sent to each worker once.

    Parameters
    ----------
    explainer : MeasureExplainer
        Fitted, by its own `fit` or by `skattr.distributed.fit`.
    frame : frame
        A frame as in `fit`. It has the columns of the background, in any order, and those to keep.
    keep : list, optional
        Columns to carry along, such as keys. The index of pandas partitions (Dask, iterables) is
        always kept.
    predictions : bool, default=True
        Whether to also evaluate the model at the rows.
    errors : bool, default=False
        Whether to add a column `NAME__std_error` per attribution, NaN where values are exact.
    background_errors : bool, default=False
        Whether to add a column `NAME__background_error` per attribution, the error from a finite
        background, NaN where there is none (`explainer.describe()` says why).

    Returns
    -------
    frame
        Dask, Spark, polars and DuckDB: a frame of the same kind. Arrow: a RecordBatchReader. An
        iterable: an iterator of frames.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skattr import MeasureExplainer, distributed
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y)
    >>> explainer = MeasureExplainer(forest).fit(X)
    >>> [part.shape for part in distributed.explain(explainer, [X[:100], X[100:]])]
    [(100, 12), (342, 12)]
    """
    check_is_fitted(explainer)
    source = source_of(frame)
    kept = _checked_keep(keep)
    inputs = _inputs(explainer, source.labels(), kept)
    columns = ResultColumns.declared(
        list(explainer._attributions.names),
        explainer.output_names_,
        inputs,
        predictions,
        errors,
        background_errors,
    )
    clash = [name for name in kept if str(name) in columns.names]
    if clash:
        raise ValueError(
            f"keep: {clash} are also columns of the result {columns.names}; rename them first"
        )
    if source.remote:
        check_pickles(explainer)
        explainer = copy(explainer)
        explainer.n_jobs, explainer.verbose = 1, 0  # the partitions are what runs in parallel
    wanted = [*kept, *(name for name in inputs if name not in kept)]
    return source.select(wanted).map(Explaining(explainer, columns, source.part), kept)


def _checked_keep(keep: Any) -> list[Any]:
    if keep is None:
        return []
    if isinstance(keep, str) or not isinstance(keep, list | tuple):
        raise TypeError(f"keep must be a list of columns, got {keep!r}")
    if len(set(keep)) < len(keep):
        raise ValueError(f"keep must name each column once, got {list(keep)}")
    return list(keep)


def _inputs(explainer: Any, labels: list[Any], keep: list[Any]) -> list[Any]:
    """Return the columns of the frame that the explainer takes, or say what is wrong with them."""
    unknown = [name for name in keep if name not in labels]
    if unknown:
        raise ValueError(f"keep: the frame has no columns {unknown}; it has {labels}")
    model = explainer._model
    if not model.named:  # fitted on an array: by position
        rest = [name for name in labels if name not in keep]
        if len(rest) != len(model.names):
            raise ValueError(
                f"the explainer was fitted on an array of {len(model.names)} columns, the frame "
                f"has {len(rest)} without those to keep: {rest}"
            )
        return rest
    missing = [name for name in model.names if name not in labels]
    extra = [name for name in labels if name not in model.names and name not in keep]
    if missing or extra:
        words = [f"{what}: {which}" for what, which in
                 (("missing", missing), ("not known from fit", extra)) if which]  # fmt: skip
        raise ValueError(
            f"the frame must have the columns of fit. Columns {'; '.join(words)}. Name the "
            "columns to carry along in keep, and drop the others"
        )
    return list(model.names)
