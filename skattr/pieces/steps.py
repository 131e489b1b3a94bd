"""How the fitted steps of a preprocessing pass columns on: RULES is the whole table.

A `Track` says for one column of a step's output from which raw column it comes and what kind of
function of it it is. A rule takes a fitted step, the tracks of its inputs and one row of its input,
and returns the tracks of its outputs. That each output comes from one raw column is so proved by
the structure of the steps; a step that mixes columns, or that nobody knows, is Unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
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

from skattr import frames
from skattr.pieces.base import Unreadable

# the kinds of functions of a raw value that a track can be
RAW = "raw"  # the value itself
SAME = "same"  # the value itself where it is present
MONOTONE = "monotone"  # monotone in a present number, in floating point too
NUMBER = "number"  # monotone but for rounding, a number for each present number
PARTIAL = "partial"  # the same, but there are numbers that it gives none for
SPLINE = "spline"  # smooth between a few places
MISSING = "missing"  # tells only whether the value is missing
CUTS = "cuts"  # constant between known cuts
LEVELS = "levels"  # tells known levels apart, all others are alike
FREE = "free"  # anything

UNKNOWN = "unknown"  # levels that are not among those known

DISCRETE = (MISSING, CUTS, LEVELS)  # what no later step can make less simple


@dataclass(frozen=True)
class Track:
    """What one column of a table is, as a function of one raw column."""

    column: int
    kind: str = RAW
    known: tuple = ()  # the levels, or the cuts: the largest numbers below each jump
    replaced: tuple = ()  # present values that an imputer takes for missing
    breaks: tuple | None = ()  # the raw numbers where it has kinks or jumps; None: not known
    straight: bool = True  # whether no step so far bent what is a line in the present numbers
    refused: tuple = ()  # what an encoder is known to refuse: of MISSING and UNKNOWN

    @property
    def effective(self) -> str:
        """The kind, if values that are taken for missing count."""
        return FREE if self.replaced and self.kind in (RAW, SAME) else self.kind

    @property
    def affine(self) -> bool:
        """Whether it is an affine function of the raw number, where that is present."""
        return self.straight and self.kind in (RAW, SAME, MONOTONE) and not self.replaced

    def then(self, kind: str, straight: bool = False) -> Track:
        """Return the track behind a step that treats each column by a function of this kind.

        `straight` says that the function is affine.
        """
        if kind == RAW or self.kind in DISCRETE or self.kind == FREE:
            return self
        if kind == SAME:
            if self.kind in (PARTIAL, SPLINE):  # what gave no number gets one
                return replace(self, kind=FREE)
            return self if self.kind != RAW else replace(self, kind=SAME)
        if self.replaced:
            return replace(self, kind=FREE)
        order = (MONOTONE, NUMBER, PARTIAL, SPLINE, FREE)
        worst = max(order.index(k) for k in (kind, self.kind) if k in order)
        return replace(self, kind=order[worst], straight=self.straight and straight)

    def breaking(self, places: Iterable) -> Track:
        """Return the track behind a step that is not smooth at some places of its input."""
        if self.kind in DISCRETE:
            return self
        known = self.kind in (RAW, SAME) and self.breaks is not None
        return replace(self, breaks=(*(self.breaks or ()), *places) if known else None)

    def replacing(self, value: Any) -> Track:
        """Return the track behind an imputer that takes a present value for missing."""
        if self.kind in DISCRETE:
            return self
        if self.kind not in (RAW, SAME):
            return replace(self, kind=FREE)
        return replace(self, kind=SAME, replaced=(*self.replaced, value))

    def told_apart(self, kind: str, known: Iterable, strict: bool = False) -> Track:
        """Return the track behind a step that only tells levels, or cuts, apart.

        `strict` says that it refuses everything else.
        """
        if self.kind in DISCRETE:
            return self
        if self.kind not in (RAW, SAME):
            return replace(self, kind=FREE)
        if kind == CUTS and self.replaced:
            return replace(self, kind=FREE)
        known = tuple(known)
        refused: tuple = (UNKNOWN,) if strict else ()
        if strict and self.kind == RAW and not any(frames.is_missing(v) for v in known):
            refused = (UNKNOWN, MISSING)
        return replace(self, kind=kind, known=known, refused=refused)

    def refuses(self, value: Any) -> bool:
        """Tell whether an encoder is known to refuse a raw value."""
        if frames.is_missing(value):
            return MISSING in self.refused
        return UNKNOWN in self.refused and value not in self._known_values

    @cached_property
    def _known_values(self) -> frozenset:
        return frozenset(self.known)

    def indicated(self) -> Track:
        """Return the track of an indicator of missing values."""
        if self.kind in DISCRETE or self.kind == FREE:
            return self
        never_lost = self.kind in (RAW, SAME, MONOTONE, NUMBER) and not self.replaced
        return replace(self, kind=MISSING if never_lost else FREE)


class Subset:
    """The columns that an ensemble hands to one of its members, as a step."""

    def __init__(self, ensemble: Any, features: np.ndarray) -> None:
        self.ensemble = ensemble
        self.features = features

    def get_support(self, indices: bool = True) -> np.ndarray:
        """Return the chosen columns."""
        return self.features

    def transform(self, X: Any) -> Any:
        """Return the chosen columns of X, checked as the ensemble does."""
        X = validate_data(
            self.ensemble,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )
        return X[:, self.features]


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
    """Pass any function of a single raw column on."""
    columns = {track.column for track in tracks}
    if len(columns) != 1:
        raise Unreadable(
            f"the step {type(step).__name__} may mix columns: it is not known to work column by "
            "column"
        )
    width = np.shape(step.transform(row))[1]
    discrete = len(tracks) == 1 and tracks[0].kind in DISCRETE
    return [tracks[0] if discrete else Track(columns.pop(), FREE)] * width


def _weighted(tracks: list[Track], weight: float | None) -> list[Track]:
    """Return tracks whose values are multiplied by a weight."""
    if weight is None or weight == 1:
        return tracks
    return [
        track.then(MONOTONE, straight=True) if np.isfinite(weight) else track.then(FREE)
        for track in tracks
    ]


def elementwise(kind: str, straight: bool = False) -> Rule:
    """Return the rule of steps that put one function of a kind on each column."""
    return lambda step, tracks, row: [track.then(kind, straight) for track in tracks]


def _imputer(step: SimpleImputer, tracks: list[Track], row: Any) -> list[Track]:
    lost = _get_mask(step.statistics_, np.nan)
    present = [t for t, is_lost in zip(tracks, lost, strict=True) if not is_lost]
    if not frames.is_missing(step.missing_values):
        present = [t.replacing(step.missing_values) for t in present]
    else:
        present = [t.then(SAME) for t in present]
    indicator = [] if step.indicator_ is None else _indicator(step.indicator_, tracks, row)
    return present + indicator


def _indicator(step: MissingIndicator, tracks: list[Track], row: Any) -> list[Track]:
    chosen = [tracks[i] for i in step.features_]
    if frames.is_missing(step.missing_values):
        return [track.indicated() for track in chosen]
    return [track if track.kind in DISCRETE else replace(track, kind=FREE) for track in chosen]


def _bins(step: KBinsDiscretizer, tracks: list[Track], row: Any) -> list[Track]:
    result = []
    for track, edges, n_bins in zip(tracks, step.bin_edges_, step.n_bins_, strict=True):
        inner = np.asarray(edges)[1:-1]  # a value on an edge belongs to the bin above
        found = track.told_apart(CUTS, np.nextafter(inner, -np.inf).tolist())
        if step.dtype is not None and np.dtype(step.dtype) != np.float64:  # it is cast first
            found = track.then(MONOTONE if step.encode == "ordinal" else FREE)
            found = replace(found, breaks=None)
        result += [found] * (1 if step.encode == "ordinal" else int(n_bins))
    return result


def _encoder(widths: Callable[[Any], Any]) -> Rule:
    """Return the rule of encoders; `widths(step)` gives the number of outputs of each input."""

    def rule(step: Any, tracks: list[Track], row: Any) -> list[Track]:
        strict = getattr(step, "handle_unknown", None) == "error"
        return [
            found
            for track, levels, width in zip(tracks, step.categories_, widths(step), strict=True)
            for found in [track.told_apart(LEVELS, frames.values_of(levels), strict)] * int(width)
        ]

    return rule


def _target_widths(step: TargetEncoder) -> list[int]:
    several = step.target_type_ == "multiclass"
    return [len(step.classes_) if several else 1] * len(step.categories_)


def _splines(step: SplineTransformer, tracks: list[Track], row: Any) -> list[Track]:
    width = step.n_features_out_ // len(tracks)
    knots = [spline.t.tolist() for spline in step.bsplines_]
    return [
        track.breaking(own).then(SPLINE)
        for track, own in zip(tracks, knots, strict=True)
        for _ in range(width)
    ]


def _binary(step: Binarizer, tracks: list[Track], row: Any) -> list[Track]:
    return [
        track.told_apart(CUTS, [step.threshold])
        if track.kind in (RAW, SAME)
        else track.breaking([]).then(MONOTONE)
        for track in tracks
    ]


def _min_max(step: MinMaxScaler, tracks: list[Track], row: Any) -> list[Track]:
    if not step.clip:
        return [track.then(MONOTONE, straight=True) for track in tracks]
    ends = zip(step.data_min_, step.data_max_, strict=True)
    return [t.breaking(e).then(MONOTONE) for t, e in zip(tracks, ends, strict=True)]


def _max_abs(step: MaxAbsScaler, tracks: list[Track], row: Any) -> list[Track]:
    if not getattr(step, "clip", False):  # which scikit-learn 1.9 brought
        return [track.then(MONOTONE, straight=True) for track in tracks]
    return [
        t.breaking((-end, end)).then(MONOTONE)
        for t, end in zip(tracks, step.max_abs_.tolist(), strict=True)
    ]


def _quantiles(step: QuantileTransformer, tracks: list[Track], row: Any) -> list[Track]:
    places = step.quantiles_.T.tolist()
    return [t.breaking(p).then(NUMBER) for t, p in zip(tracks, places, strict=True)]


def _function(step: FunctionTransformer, tracks: list[Track], row: Any) -> list[Track]:
    if step.func is None:
        return tracks
    if isinstance(step.func, np.ufunc) and step.func.nin == 1 and not step.kw_args:
        return [track.then(PARTIAL if step.func in MONOTONE_UFUNCS else FREE) for track in tracks]
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
    """Return the columns of X that a part of a ColumnTransformer sees: places, and the table.

    They are found by their names, if there are any: X may have them in another order than in
    training.
    """
    places = list(step._transformer_to_input_indices[name])
    if hasattr(step, "feature_names_in_") and frames.is_frame(X):
        wanted = step.feature_names_in_[places].tolist()
        columns = wanted[0] if np.isscalar(columns) else wanted
        labels = frames.labels(X)
        places = [labels.index(label) for label in wanted]
    return places, _safe_indexing(X, columns, axis=1)


def _columns(step: ColumnTransformer, tracks: list[Track], row: Any) -> list[Track]:
    result: list = [None] * max((place.stop for place in step.output_indices_.values()), default=0)
    for name, part, columns in step.transformers_:
        place = step.output_indices_[name]
        if place.start == place.stop:
            continue
        places, own_row = inputs_of(step, name, columns, row)
        weight = (step.transformer_weights or {}).get(name)
        found = _weighted(trace(part, [tracks[i] for i in places], own_row), weight)
        if len(found) != place.stop - place.start:
            raise Unreadable(f"the outputs of the step {name!r} are not understood")
        result[place] = found
    return result


def _table_vectorizer(step: Any, tracks: list[Track], row: Any) -> list[Track]:
    """Pass columns through skrub's TableVectorizer, which has one transformer for each."""
    found = {}
    for k, name in enumerate(frames.labels(row)):
        transformer = step.transformers_.get(name)
        kind = type(transformer).__name__
        if kind == "OneHotEncoder":
            levels = frames.values_of(transformer.categories_[0])
            found[name] = tracks[k].told_apart(LEVELS, levels)
        else:  # numbers are cast
            cast = kind == "PassThrough" and frames.is_number(row, k)
            found[name] = tracks[k].then(MONOTONE if cast else FREE)
    return [found[step.output_to_input_[output]] for output in step.all_outputs_]


# the first entry that fits; what is not here may still be a function of a single column
RULES: dict[Any, Rule] = {
    (StandardScaler, RobustScaler): elementwise(MONOTONE, straight=True),
    MaxAbsScaler: _max_abs,
    MinMaxScaler: _min_max,
    Binarizer: _binary,
    QuantileTransformer: _quantiles,
    PowerTransformer: elementwise(NUMBER),
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
# steps of libraries that are imported only by those who have them
BY_NAME: dict[str, Rule] = {"skrub.TableVectorizer": _table_vectorizer}
