"""The definition of every built-in measure, written out by slow loops over raw rows.

    phi_j(x, f) = ∫ f dμ_{j,x} = Σ over the atoms of μ_{j,x} of weight · f(point)

Nothing here knows cells, boxes, curves or engines: f is a callable on raw rows, and only its own
answers count. A measure is described by a list of terms ``(coefficient, name, parameters)``;
`described` makes it from a skattr measure by class name and ``get_params``, and reads nothing else.

Laws with a density (`Uniform`) become finite sums because a tree model is constant between the
places where it can jump: `breaks` reads these from the fitted scikit-learn model, and each piece
gets one atom.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

REFERENCE = {
    "partial_dependence": ("expectation", {"version": "joint"}),
    "product_marginal": ("expectation", {"version": "product"}),
    "uniform": ("expectation", {"version": "uniform"}),
    "dirac": ("expectation", {"version": "joint"}),
}  # expectations and baselines are their own reference


# -- raw tables: arrays, pandas and polars frames ------------------------------------------------


def is_polars(X):
    """Whether X is a polars frame or series (polars itself is optional)."""
    return type(X).__module__.startswith("polars")


def columns(X):
    """Columns of a table; numbers as float64 arrays, anything else in its own dtype."""
    if isinstance(X, np.ndarray):
        return [column if X.dtype == object else column.astype(np.float64) for column in X.T]
    if is_polars(X):
        series = [X.to_series(k) for k in range(X.width)]
        return [s.cast(float).to_numpy() if s.dtype.is_numeric() else s for s in series]
    return [_pandas_column(X.iloc[:, k]) for k in range(X.shape[1])]


def _pandas_column(series):
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return series.array


def table(like, values):
    """Columns put together as the kind of table that `like` is."""
    if isinstance(like, np.ndarray):
        out = np.empty((len(values[0]), len(values)), object if like.dtype == object else float)
        for k, column in enumerate(values):
            out[:, k] = column
        return out
    if is_polars(like):
        return type(like)(dict(zip(like.columns, values, strict=True)))
    return pd.DataFrame(dict(enumerate(values))).set_axis(like.columns, axis=1)


def take(values, index):
    """Entries of one column; the dtype stays, also when the entry is missing."""
    index = np.asarray(index, dtype=np.intp)
    if is_polars(values):
        return values.gather(index)
    return values[index] if isinstance(values, np.ndarray) else values.take(index)


def rows(X, index):
    """Rows of a table."""
    return table(X, [take(column, index) for column in columns(X)])


def stack(tables):
    """Tables under one another; the dtypes of each column are equal."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    if is_polars(tables[0]):
        import polars

        return polars.concat(tables)
    return pd.concat(tables, ignore_index=True)


def missing(values):
    """Which entries of a column are missing."""
    if is_polars(values):
        return values.is_null().to_numpy()
    return np.asarray(pd.isna(values))


def numeric(values):
    """Whether a column holds numbers (an object array: whether all that is present are)."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return all(isinstance(v, int | float) for v in values[~missing(values)])
    return isinstance(values, np.ndarray) and values.dtype == np.float64


def one_row(point, like):
    """A baseline (array, dict, Series or one-row frame) as a table like the background."""
    if hasattr(point, "columns"):
        return point
    if isinstance(point, dict | pd.Series):
        point = [point[name] for name in like.columns]
    point = list(np.ravel(np.asarray(point, dtype=object)))
    if isinstance(like, np.ndarray):
        return table(like, [np.array([v]) for v in point])
    if is_polars(like):
        series = [like.to_series(k) for k in range(like.width)]
        return type(like)(
            {
                s.name: type(s)([v], dtype=None if s.dtype.is_numeric() else s.dtype)
                for s, v in zip(series, point, strict=True)
            }
        )
    cells = [
        np.array([np.nan if v is pd.NA else v], float)
        if numeric(column)
        else pd.array([v], dtype=column.dtype)
        for column, v in zip(columns(like), point, strict=True)
    ]
    return table(like, cells)


# -- where a fitted scikit-learn model can jump --------------------------------------------------


def float32_edge(threshold):
    """Largest float64 v with float32(v) <= threshold, by bisection: scikit-learn's trees cast x."""
    low = np.float32(threshold)
    if np.float64(low) > threshold:
        low = np.nextafter(low, np.float32(-np.inf))
    low, high = np.float64(low), np.float64(np.nextafter(low, np.float32(np.inf)))
    while np.nextafter(low, high) < high:
        middle = low + (high - low) / 2
        if np.float64(np.float32(middle)) <= threshold:
            low = middle
        else:
            high = middle
    return float(low)


def splits(model):
    """All (raw column, threshold, largest float64 that goes left) of a fitted model."""
    if hasattr(model, "tree_"):
        found = tree_splits(model.tree_)
    elif hasattr(model, "_predictors"):
        found = hist_splits(model)
    else:
        found = (
            (int(seen[column]), threshold, edge)
            for member, seen in members(model)
            for column, threshold, edge in splits(member)
        )
    # a threshold at +inf asks for missing or not, and is no place to jump
    return [split for split in found if np.isfinite(split[1])]


def tree_splits(tree):
    """Splits of one of scikit-learn's own trees: x is cast to float32, the threshold is not."""
    for node in np.flatnonzero(tree.children_left != -1):
        threshold = float(tree.threshold[node])
        edge = float32_edge(threshold) if np.isfinite(threshold) else threshold
        yield int(tree.feature[node]), threshold, edge


def hist_splits(model):
    """Numeric splits of HistGradientBoosting, which compares in float64."""
    order = np.arange(model.n_features_in_)
    if model.is_categorical_ is not None:  # the model puts its categories first
        order = np.argsort(~model.is_categorical_, kind="stable")
    for tree in (tree for iteration in model._predictors for tree in iteration):
        for node in tree.nodes:
            if not node["is_leaf"] and not node["is_categorical"]:
                threshold = float(node["num_threshold"])
                yield int(order[node["feature_idx"]]), threshold, threshold


def members(model):
    """Each member of an ensemble with the raw columns that it sees."""
    everything = np.arange(model.n_features_in_)
    estimators = np.ravel(np.asarray(model.estimators_, dtype=object))
    seen = getattr(model, "estimators_features_", [everything] * len(estimators))
    return zip(estimators, seen, strict=True)


def breaks(model):
    """For each raw column the sorted places where f can jump (from there on, exclusive)."""
    found = [set() for _ in range(model.n_features_in_)]
    for column, _, edge in splits(model):
        found[column].add(edge)
    return [sorted(edges) for edges in found]


def declared_levels(model):
    """Raw columns that the model itself treats as categories."""
    if hasattr(model, "tree_"):
        return set()
    if hasattr(model, "_predictors"):
        declared = [] if model.is_categorical_ is None else np.flatnonzero(model.is_categorical_)
        return {int(c) for c in declared}
    return {int(seen[c]) for member, seen in members(model) for c in declared_levels(member)}


# -- measures ------------------------------------------------------------------------------------


def described(measure):
    """Terms ``(coefficient, name, parameters)`` of a skattr measure; reads parameters only."""
    parameters = measure.get_params(deep=False)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(measure).__name__).lower()
    if name == "linear_combination":
        return [
            (coefficient * inner, term, settings)
            for coefficient, part in parameters["terms"]
            for inner, term, settings in described(part)
        ]
    if name == "expectation":
        (version,) = parameters.values()
        parameters = {"version": version}
    return [(1.0, name, parameters)]


@dataclass
class Oracle:
    """phi, base value and offset of f by the definition.

    Parameters
    ----------
    f : callable, raw rows -> (n, k)
    X : background, raw rows
    weight : (n,) or None
    breaks : for each column the sorted places where f can jump; only uniform laws need it
    domain : {column number: (low, high)}; the background's range where it says nothing
    levels : numbers of columns of numbers that f treats as categories
    """

    f: object
    X: object
    weight: object = None
    breaks: object = None
    domain: object = None
    levels: object = ()

    def __post_init__(self):
        weight = np.ones(len(self.X)) if self.weight is None else np.asarray(self.weight, float)
        self.X = rows(self.X, np.flatnonzero(weight > 0))
        self.weight = weight[weight > 0] / weight.sum()
        self.largest = 0.0  # max |f| over everything that was evaluated

    def values(self, terms, X, own):
        """phi, (rows of X, attributions, k); `own` has a tuple of columns for each attribution."""
        total = 0.0
        for coefficient, name, parameters in terms:
            if name in ("expectation", "baseline"):  # the same for every row and attribution
                (mean,) = self.sums([self.atoms(name, parameters, None, None, ())])
                phi = np.broadcast_to(mean, (len(X), len(own), len(mean)))
            else:
                phi = np.stack([self.term(name, parameters, X, pinned) for pinned in own], axis=1)
            total = total + coefficient * phi
        return total

    def term(self, name, parameters, X, own):
        """One measure's integral for one attribution, (rows of X, k)."""
        return self.sums([self.atoms(name, parameters, X, i, own) for i in range(len(X))])

    def offset(self, terms):
        """Σ coefficient · mass · ∫ f d reference, (k,); every mass here is 1."""
        total = 0.0
        for coefficient, name, parameters in terms:
            name, parameters = REFERENCE.get(name, (name, parameters))
            (mean,) = self.sums([self.atoms(name, parameters, None, None, ())])
            total = total + coefficient * mean
        return total

    def base_value(self):
        """Weighted mean of f over the background, (k,)."""
        return self.sums([(self.X, self.weight)])[0]

    def spread(self):
        """Weighted standard deviation of f over the background, (k,); 1 where f is constant."""
        y = self.evaluate(self.X)
        spread = np.sqrt(self.weight @ (y - self.weight @ y) ** 2)
        return np.where(np.ptp(y, axis=0) > 0, spread, 1.0)

    def tolerance(self):
        """1e-10 of the spread plus 1e-14 of max |f|, (k,)."""
        return 1e-10 * self.spread() + 1e-14 * self.largest

    def evaluate(self, points):
        """f, (n, k), one row of k numbers for each point."""
        y = np.asarray(self.f(points), dtype=np.float64)
        assert y.shape[0] == len(points) and y.ndim == 2
        self.largest = max(self.largest, np.abs(y).max())
        return y

    def sums(self, atoms):
        """Σ weight · f(point) for each list of atoms; all points in one call of f."""
        ends = np.cumsum([len(weight) for _, weight in atoms])[:-1]
        answers = np.split(self.evaluate(stack([points for points, _ in atoms])), ends)
        return np.array([w @ y for (_, w), y in zip(atoms, answers, strict=True)])

    def atoms(self, name, parameters, X, i, own):
        """Points and weights of μ for row i of X and the columns `own`."""
        d = len(columns(self.X))
        if name == "dirac":
            return rows(X, [i]), np.ones(1)
        if name == "baseline":
            return one_row(parameters["point"], self.X), np.ones(1)
        if name == "expectation":
            name, own = parameters["version"], ()
        pins = {k: take(columns(X)[k], [i]) for k in own}
        if name in ("joint", "partial_dependence"):
            n = len(self.X)
            background = columns(self.X)
            values = [take(pins[k], np.zeros(n)) if k in pins else background[k] for k in range(d)]
            return table(self.X, values), self.weight
        law = {"product": self.marginal, "product_marginal": self.marginal, "uniform": self.uniform}
        laws = [(pins[k], np.ones(1)) if k in pins else law[name](k) for k in range(d)]
        return self.product(laws)

    def product(self, laws):
        """All combinations of one atom a column."""
        places = np.indices([len(weight) for _, weight in laws]).reshape(len(laws), -1)
        values = [take(v, place) for (v, _), place in zip(laws, places, strict=True)]
        weight = np.ones(places.shape[1])
        for (_, w), place in zip(laws, places, strict=True):
            weight = weight * w[place]
        return table(self.X, values), weight

    def marginal(self, k):
        """The weighted empirical law of column k, missing included."""
        return columns(self.X)[k], self.weight

    def uniform(self, k):
        """Uniform on side k of the domain, one atom a piece; on levels where there is no order."""
        values = columns(self.X)[k]
        if not numeric(values) or k in self.levels:
            first = {}
            for place in np.flatnonzero(~missing(values)):
                first.setdefault(values[int(place)], place)
            return take(values, list(first.values())), np.full(len(first), 1 / len(first))
        values = values.astype(np.float64)
        finite = values[np.isfinite(values)]
        if k in (self.domain or {}):
            low, high = self.domain[k]
        else:
            low, high = finite.min(), finite.max()
        if low == high:
            return np.array([low]), np.ones(1)
        cuts = np.array([low, *(b for b in self.breaks[k] if low <= b < high), high])
        atoms, lengths = [], []
        for left, right in pairwise(cuts):  # the piece is left < y <= right
            if left < right:
                atoms.append(max(left + (right - left) / 2, np.nextafter(left, right)))
                lengths.append((right - left) / (high - low))
        return np.array(atoms), np.array(lengths)
