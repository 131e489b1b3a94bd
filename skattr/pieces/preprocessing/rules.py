"""The rules by which fitted steps pass columns on: RULES is the whole table.

A rule takes a fitted step, the tracks of its input columns and one row of its input, and returns
the tracks of its output columns. The structure of the steps thus proves that each output comes from
one raw column; a step that mixes columns, or that is not known, is Unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils import _safe_indexing
from sklearn.utils._mask import _get_mask
from sklearn.utils.validation import validate_data

from skattr._inputs import frames
from skattr.pieces.base import Unreadable
from skattr.pieces.preprocessing.tracks import Kind, Track


class Subset:
    """A step that selects the columns which an ensemble passes to one of its members."""

    def __init__(self, ensemble: Any, features: np.ndarray) -> None:
        self.ensemble = ensemble
        self.features = features

    def get_support(self, indices: bool = True) -> np.ndarray:
        """Return the selected columns."""
        return self.features

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X, checked as the ensemble does."""
        checks = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
        return validate_data(self.ensemble, X, reset=False, **checks)[:, self.features]


MONOTONE_UFUNCS = (
    np.log, np.log1p, np.log2, np.log10, np.exp, np.expm1, np.exp2, np.sqrt, np.cbrt, np.arctan,
    np.arcsinh, np.sinh, np.tanh, np.negative, np.positive,
)  # fmt: skip
Rule = Callable[[Any, list[Track], Any], list[Track]]


def trace(step: Any, tracks: list[Track], row: Any) -> list[Track]:
    """Return the tracks behind a fitted step; `row` is one row of its input."""
    step = step.estimator if isinstance(step, FrozenEstimator) else step
    if step is None or isinstance(step, str):  # "passthrough"
        return tracks
    for kind, rule in RULES.items():
        if isinstance(step, kind):
            return rule(step, tracks, row)
    name = f"{type(step).__module__.partition('.')[0]}.{type(step).__name__}"
    return BY_NAME.get(name, _one_column)(step, tracks, row)


def _one_column(step: Any, tracks: list[Track], row: Any) -> list[Track]:
    """Accept any step whose inputs all come from one raw column."""
    columns = {track.column for track in tracks}
    if len(columns) != 1:
        raise Unreadable(
            f"the step {type(step).__name__} may mix columns: it is not known to work column by "
            "column"
        )
    width = np.shape(step.transform(row))[1]
    discrete = len(tracks) == 1 and tracks[0].kind in Kind.DISCRETE
    return [tracks[0] if discrete else Track(columns.pop(), Kind.FREE)] * width


def _weighted(tracks: list[Track], weight: float | None) -> list[Track]:
    """Return tracks whose values are multiplied by a weight."""
    if weight is None or weight == 1:
        return tracks
    finite = bool(np.isfinite(weight))
    return [track.then(Kind.MONOTONE if finite else Kind.FREE, straight=finite) for track in tracks]


def elementwise(kind: str, straight: bool = False) -> Rule:
    """Return the rule of steps that apply a function of one kind to each column."""
    return lambda step, tracks, row: [track.then(kind, straight) for track in tracks]


def _imputer(step: SimpleImputer, tracks: list[Track], row: Any) -> list[Track]:
    empty = _get_mask(step.statistics_, np.nan)  # columns that the imputer drops
    kept = [t for t, is_empty in zip(tracks, empty, strict=True) if not is_empty]
    if frames.is_missing(step.missing_values):
        imputed = [t.then(Kind.SAME) for t in kept]
    else:
        imputed = [t.replacing(step.missing_values) for t in kept]
    indicator = [] if step.indicator_ is None else _indicator(step.indicator_, tracks, row)
    return imputed + indicator


def _indicator(step: MissingIndicator, tracks: list[Track], row: Any) -> list[Track]:
    chosen = [tracks[i] for i in step.features_]
    if frames.is_missing(step.missing_values):
        return [track.as_indicator() for track in chosen]
    return [t if t.kind in Kind.DISCRETE else replace(t, kind=Kind.FREE) for t in chosen]


def _bins(step: KBinsDiscretizer, tracks: list[Track], row: Any) -> list[Track]:
    result = []
    for track, edges, n_bins in zip(tracks, step.bin_edges_, step.n_bins_, strict=True):
        inner = np.asarray(edges)[1:-1]  # a value on an edge belongs to the bin above
        binned = track.discretized(Kind.CUTS, np.nextafter(inner, -np.inf).tolist())
        if step.dtype is not None and np.dtype(step.dtype) != np.float64:  # it is cast first
            binned = track.then(Kind.MONOTONE if step.encode == "ordinal" else Kind.FREE)
            binned = replace(binned, breaks=None)
        result += [binned] * (1 if step.encode == "ordinal" else int(n_bins))
    return result


def _encoder(widths: Callable[[Any], Any]) -> Rule:
    """Return the rule of encoders; `widths(step)` gives the number of outputs of each input."""

    def rule(step: Any, tracks: list[Track], row: Any) -> list[Track]:
        strict = getattr(step, "handle_unknown", None) == "error"
        result = []
        for track, levels, width in zip(tracks, step.categories_, widths(step), strict=True):
            encoded = track.discretized(Kind.LEVELS, frames.values_of(levels), strict)
            result += [encoded] * int(width)
        return result

    return rule


def _target_widths(step: TargetEncoder) -> list[int]:
    several = step.target_type_ == "multiclass"
    return [len(step.classes_) if several else 1] * len(step.categories_)


def _splines(step: SplineTransformer, tracks: list[Track], row: Any) -> list[Track]:
    width = step.n_features_out_ // len(tracks)
    knots = [spline.t.tolist() for spline in step.bsplines_]
    return [
        track.with_breaks(breaks).then(Kind.SPLINE)
        for track, breaks in zip(tracks, knots, strict=True)
        for _ in range(width)
    ]


def _binary(step: Binarizer, tracks: list[Track], row: Any) -> list[Track]:
    return [
        track.discretized(Kind.CUTS, [step.threshold])
        if track.kind in Kind.UNCHANGED
        else track.with_breaks([]).then(Kind.MONOTONE)
        for track in tracks
    ]


def _scaler(ends: Callable[[Any], Any]) -> Rule:
    """Return the rule of affine scalers that may clip, at `ends(step)` of each column."""

    def rule(step: Any, tracks: list[Track], row: Any) -> list[Track]:
        if not getattr(step, "clip", False):  # MaxAbsScaler has it from scikit-learn 1.9 on
            return [track.then(Kind.MONOTONE, straight=True) for track in tracks]
        clipped = zip(tracks, ends(step), strict=True)
        return [track.with_breaks(pair).then(Kind.MONOTONE) for track, pair in clipped]

    return rule


def _quantiles(step: QuantileTransformer, tracks: list[Track], row: Any) -> list[Track]:
    quantiles = step.quantiles_.T.tolist()
    return [t.with_breaks(q).then(Kind.NUMBER) for t, q in zip(tracks, quantiles, strict=True)]


def _function(step: FunctionTransformer, tracks: list[Track], row: Any) -> list[Track]:
    if step.func is None:
        return tracks
    if isinstance(step.func, np.ufunc) and step.func.nin == 1 and not step.kw_args:
        kind = Kind.PARTIAL if step.func in MONOTONE_UFUNCS else Kind.FREE
        return [track.then(kind) for track in tracks]
    return _one_column(step, tracks, row)


def _selection(step: Any, tracks: list[Track], row: Any) -> list[Track]:
    return [tracks[i] for i in step.get_support(indices=True)]


def _union(step: FeatureUnion, tracks: list[Track], row: Any) -> list[Track]:
    weights = step.transformer_weights or {}
    parts = [(name, part) for name, part in step.transformer_list if part != "drop"]
    return [
        track
        for name, part in parts
        for track in _weighted(trace(part, tracks, row), weights.get(name))
    ]


def _pipeline(step: Pipeline, tracks: list[Track], row: Any) -> list[Track]:
    for _, part in step.steps:
        tracks = trace(part, tracks, row)
        if part is not None and not isinstance(part, str):
            row = part.transform(row)
    return tracks


def inputs_of(step: ColumnTransformer, name: str, columns: Any, X: Any) -> tuple[list[int], Any]:
    """Return the columns of X that a transformer of a ColumnTransformer sees: indices and table.

    They are looked up by name, if they have names: X may have another order than in training.
    """
    indices = list(step._transformer_to_input_indices[name])
    if hasattr(step, "feature_names_in_") and frames.is_frame(X):
        wanted = step.feature_names_in_[indices].tolist()
        columns = wanted[0] if np.isscalar(columns) else wanted
        labels = frames.labels(X)
        indices = [labels.index(label) for label in wanted]
    return indices, _safe_indexing(X, columns, axis=1)


def _columns(step: ColumnTransformer, tracks: list[Track], row: Any) -> list[Track]:
    result: list = [None] * max((out.stop for out in step.output_indices_.values()), default=0)
    for name, transformer, columns in step.transformers_:
        outputs = step.output_indices_[name]
        if outputs.start == outputs.stop:
            continue
        indices, inputs = inputs_of(step, name, columns, row)
        traced = trace(transformer, [tracks[i] for i in indices], inputs)
        if len(traced) != outputs.stop - outputs.start:
            raise Unreadable(f"the outputs of the step {name!r} are not understood")
        result[outputs] = _weighted(traced, (step.transformer_weights or {}).get(name))
    return result


def _table_vectorizer(step: Any, tracks: list[Track], row: Any) -> list[Track]:
    """Trace skrub's TableVectorizer, which has one transformer per column."""
    traced = {}
    for k, name in enumerate(frames.labels(row)):
        transformer = step.transformers_.get(name)
        kind = type(transformer).__name__
        if kind == "OneHotEncoder":
            levels = frames.values_of(transformer.categories_[0])
            traced[name] = tracks[k].discretized(Kind.LEVELS, levels)
        else:  # numbers are cast
            cast = kind == "PassThrough" and frames.is_number(row, k)
            traced[name] = tracks[k].then(Kind.MONOTONE if cast else Kind.FREE)
    return [traced[step.output_to_input_[output]] for output in step.all_outputs_]


# the first match wins; a step that is not listed may still be a function of a single column
RULES: dict[Any, Rule] = {
    (StandardScaler, RobustScaler): elementwise(Kind.MONOTONE, straight=True),
    MaxAbsScaler: _scaler(lambda step: zip(-step.max_abs_, step.max_abs_, strict=True)),
    MinMaxScaler: _scaler(lambda step: zip(step.data_min_, step.data_max_, strict=True)),
    Binarizer: _binary,
    QuantileTransformer: _quantiles,
    PowerTransformer: elementwise(Kind.NUMBER),
    SimpleImputer: _imputer,
    MissingIndicator: _indicator,
    KBinsDiscretizer: _bins,
    OneHotEncoder: _encoder(lambda step: step._n_features_outs),
    OrdinalEncoder: _encoder(lambda step: [1] * len(step.categories_)),
    TargetEncoder: _encoder(_target_widths),
    SplineTransformer: _splines,
    FunctionTransformer: _function,
    (SelectorMixin, Subset): _selection,
    ColumnTransformer: _columns,
    FeatureUnion: _union,
    Pipeline: _pipeline,
}
# steps of optional libraries
BY_NAME: dict[str, Rule] = {"skrub.TableVectorizer": _table_vectorizer}
