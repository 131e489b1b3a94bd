"""The definition of every built-in measure, written out by slow loops over raw rows.

    phi_j(x, f) = ∫ f dμ_{j,x} = Σ over the atoms of μ_{j,x} of weight · f(point)

Nothing here knows cells, boxes, curves or engines: f is a callable on raw rows, and only its own
answers count. A measure is described by a list of terms ``(coefficient, name, parameters)``;
`described` makes it from a skattr measure by class name and ``get_params``, and reads nothing else
but, of a fitted `Conditional`, how local it is: one learned number a column.

Laws with a density (`Uniform`) become finite sums because a tree model is constant between the
places where it can jump: `breaks` reads these from the fitted scikit-learn model, and each piece
gets one atom. A smooth model gets the atoms of a Gauss-Legendre sum.
"""

import re
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb, fsum
from statistics import NormalDist

import numpy as np
import pandas as pd

REFERENCE = {
    "partial_dependence": ("expectation", {"version": "joint"}),
    "product_marginal": ("expectation", {"version": "product"}),
    "uniform": ("expectation", {"version": "uniform"}),
    "dirac": ("expectation", {"version": "joint"}),
    "conditional": ("expectation", {"version": "joint"}),
    "coefficient": ("expectation", {"version": "corner"}),
    "scaled_coefficient": ("expectation", {"version": "corner"}),
}  # expectations and baselines are their own reference
MASS = {"coefficient": 2.0, "shapley": 0.0, "banzhaf": 0.0}  # the others have mass 1
MASSLESS = ("ale", "removal", "marginal_effect")  # differences of probabilities
COALITIONS = {  # the weight of one coalition of s among n other players
    "shapley": lambda s, n: 1 / ((n + 1) * comb(n, s)),
    "banzhaf": lambda s, n: 0.5**n,
}


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


def has_trees(model):
    """Whether a model is one of scikit-learn's trees, or made of nothing else."""
    if hasattr(model, "tree_") or hasattr(model, "_predictors"):
        return True
    found = getattr(model, "estimators_", None)
    return found is not None and all(has_trees(member) for member, _ in members(model))


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
    if parameters.pop("mass_zero", False):
        corner = (-MASS.get(name, 1.0), "expectation", {"version": "corner"})
        return [(1.0, name, parameters), corner]
    if name in COALITIONS:
        ((_, inner, settings),) = described(getattr(measure, "measure_", measure.measure))
        return [(1.0, name, {"inner": inner, "settings": settings})]
    if name == "conditional":
        local = np.where(np.isnan(measure.bandwidth_), measure.smoothing_, measure.bandwidth_)
        parameters = {**parameters, "local": local}
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
    nodes : Gauss-Legendre nodes between two breaks; 1, the midpoint, where f is affine there
    """

    f: object
    X: object
    weight: object = None
    breaks: object = None
    domain: object = None
    levels: object = ()
    nodes: int = 1

    def __post_init__(self):
        weight = np.ones(len(self.X)) if self.weight is None else np.asarray(self.weight, float)
        self.X = rows(self.X, np.flatnonzero(weight > 0))
        self.weight = weight[weight > 0] / weight.sum()
        self.largest = 0.0  # max |f| over everything that was evaluated
        self._given, self._expectations, self._columns = {}, {}, {}

    def columns(self, X):
        """The columns of a table, which is taken apart once."""
        if id(X) not in self._columns:
            self._columns[id(X)] = X, columns(X)  # X is kept, so that its id stays its own
        return self._columns[id(X)][1]

    def values(self, terms, X, own):
        """phi, (rows of X, attributions, k); `own` has a tuple of columns for each attribution."""
        total = 0.0
        for coefficient, name, parameters in terms:
            if name in ("expectation", "baseline"):  # the same for every row and attribution
                mean = self.constant(name, parameters)
                phi = np.broadcast_to(mean, (len(X), len(own), len(mean)))
            elif name in COALITIONS:
                phi = self.coalitions(name, **parameters, X=X, players=own)
            else:
                phi = np.stack([self.term(name, parameters, X, pinned) for pinned in own], axis=1)
                phi = MASS.get(name, 1.0) * phi
            total = total + coefficient * phi
        return total

    def term(self, name, parameters, X, own):
        """One measure's integral for one attribution, (rows of X, k)."""
        return self.sums([self.atoms(name, parameters, X, i, own) for i in range(len(X))])

    def pairs(self, terms, X, own, members):
        """What two attributions do beyond each alone, (rows of X, pairs, k); members: positions."""
        total = np.zeros((len(X), len(members), self.base_value().size))
        for coefficient, name, parameters in terms:
            if name in ("expectation", "baseline"):
                continue  # pinning changes nothing
            mean = self.constant(*REFERENCE[name])
            alone = [self.term(name, parameters, X, columns) for columns in own]
            for p, (a, b) in enumerate(members):
                union = tuple(sorted((*own[a], *own[b])))
                both = self.term(name, parameters, X, union)
                beyond = both - alone[a] - alone[b] + mean
                total[:, p] += coefficient * MASS.get(name, 1.0) * beyond
        return total

    def coalitions(self, name, inner, settings, X, players):
        """Weighted differences that each player makes, over all coalitions of the others."""
        worth, n = self.worths(inner, settings, X, players), len(players) - 1
        total = []
        for j in range(len(players)):
            others = [player for player in range(len(players)) if player != j]
            total.append(
                sum(
                    COALITIONS[name](s, n) * (worth((*members, j)) - worth(members))
                    for s in range(n + 1)
                    for members in combinations(others, s)
                )
            )
        return np.stack(total, axis=1)

    def interactions(self, name, inner, settings, X, players, pairs=None):
        """Weighted second differences of pairs of players, (rows of X, pairs, k), all by default.

        What both add to a coalition of the others, less what each adds alone.
        """
        worth, n = self.worths(inner, settings, X, players), len(players) - 2
        total = []
        for j, k in combinations(range(len(players)), 2) if pairs is None else pairs:
            others = [player for player in range(len(players)) if player not in (j, k)]
            value = np.zeros_like(worth(()))
            for s in range(n + 1):
                for members in combinations(others, s):
                    both = worth((*members, j, k)) - worth(members)
                    first, second = (worth((*members, i)) - worth(members) for i in (j, k))
                    value = value + COALITIONS[name](s, n) * (both - first - second)
            total.append(value)
        return np.stack(total, axis=1)

    def worths(self, inner, settings, X, players):
        """The function from a coalition, a tuple of players, to its worth at all rows of X."""
        known = {}

        def worth(members):
            members = tuple(sorted(members))
            pinned = tuple(sorted(k for player in members for k in players[player]))
            if members not in known:
                if not pinned:
                    mean = self.sums([self.atoms(*REFERENCE[inner], None, None, ())])
                    known[members] = np.repeat(mean, len(X), axis=0)
                elif len(members) == len(players):
                    known[members] = self.evaluate(X)
                else:
                    known[members] = self.term(inner, settings, X, pinned)
            return known[members]

        return worth

    def offset(self, terms):
        """Σ coefficient · mass · ∫ f d reference, (k,)."""
        total = np.zeros(len(self.base_value()))
        for coefficient, name, parameters in terms:
            coefficient = coefficient * MASS.get(name, 1.0)
            if name in COALITIONS or name in MASSLESS:
                continue  # of mass 0
            name, parameters = REFERENCE.get(name, (name, parameters))
            total = total + coefficient * self.constant(name, parameters)
        return total

    def constant(self, name, parameters):
        """The integral of a measure that is the same for every row and attribution, (k,)."""
        version = parameters.get("version")
        if version is None or version not in self._expectations:
            (mean,) = self.sums([self.atoms(name, parameters, None, None, ())])
            self._expectations[version] = mean
        return self._expectations[version]

    def base_value(self):
        """Weighted mean of f over the background, (k,)."""
        return self.constant("expectation", {"version": "joint"})

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
        d = len(self.columns(self.X))
        if name == "dirac":
            return rows(X, [i]), np.ones(1)
        if name == "baseline":
            return one_row(parameters["point"], self.X), np.ones(1)
        if name == "expectation":
            name, own = parameters["version"], ()
        if name in MASSLESS:
            return getattr(self, name)(X, i, own, **parameters)
        pins = {k: take(self.columns(X)[k], [i]) for k in own}
        if name in ("joint", "partial_dependence"):
            n = len(self.X)
            background = self.columns(self.X)
            values = [take(pins[k], np.zeros(n)) if k in pins else background[k] for k in range(d)]
            return table(self.X, values), self.weight
        if name == "conditional":
            points, _ = self.atoms("partial_dependence", {}, X, i, own)
            return points, self.given(parameters, X, own)[i]
        if name == "coefficient":
            return self.product([self.uniform(k) if k in own else self.low(k) for k in range(d)])
        law = {"product": self.marginal, "product_marginal": self.marginal, "uniform": self.uniform,
               "corner": self.low, "scaled_coefficient": self.low}  # fmt: skip
        laws = [(pins[k], np.ones(1)) if k in pins else law[name](k) for k in range(d)]
        return self.product(laws)

    def removal(self, X, i, own):
        """The row, less copies with its own columns from each background row."""
        n = len(self.X)
        mixed = [
            column if k in own else take(self.columns(X)[k], np.full(n, i))
            for k, column in enumerate(self.columns(self.X))
        ]
        return stack([rows(X, [i]), table(self.X, mixed)]), np.append(1.0, -self.weight)

    def marginal_effect(self, X, i, own, step):
        """The row with its own number moved by a step to both sides."""
        (k,) = own
        numbers = np.asarray(self.columns(self.X)[k], float)
        here = np.isfinite(numbers)
        if step is None and len(set(numbers[here])) < 2:
            step = 1.0
        elif step is None:
            weight = self.weight[here] / self.weight[here].sum()
            step = 0.1 * np.sqrt(weight @ (numbers[here] - weight @ numbers[here]) ** 2)
        x = float(np.asarray(self.columns(X)[k], float)[i])
        both = [take(column, [i, i]) for column in self.columns(X)]
        both[k] = np.array([x + step, x - step])
        sign = 0.0 if np.isnan(x) else 1.0
        return table(X, both), sign * np.array([1.0, -1.0]) / (2 * step)

    def ale(self, X, i, own, n_bins):
        """Rows at both ends of their bins; each effect counts as far as the row's value reaches."""
        (k,) = own
        values, ordered = self.plain(self.X, k)
        x = self.plain(X, k)[0][i]
        present = [r for r, v in enumerate(values) if v is not None and np.isfinite(as_float(v))]
        bins = (
            self.number_bins
            if ordered and not is_date(self.columns(self.X)[k])
            else self.level_bins
        )
        ends, members, shares, reach = bins(k, values, present, x, n_bins or 20)
        points, weights = [], []
        for m in range(len(ends) - 1):
            total = self.weight[members[m]].sum()
            for end, sign in ((ends[m + 1], 1.0), (ends[m], -1.0)):
                moved = [take(column, members[m]) for column in self.columns(self.X)]
                moved[k] = take(self.columns(self.X)[k], [end] * len(members[m]))
                points.append(table(self.X, moved))
                share = 0.0 if reach is None else reach[m] - shares[m]
                weights.append(sign * share * self.weight[members[m]] / total)
        if not points:
            return rows(X, [i]), np.zeros(1)
        return stack(points), np.concatenate(weights)

    def number_bins(self, k, values, present, x, n_bins):
        """Ends (as background rows), members and mean reach of bins, and the reach of x in each."""
        total = sum(self.weight[r] for r in present)
        found = []
        for q in np.arange(n_bins + 1) / n_bins:
            reached = [
                values[r]
                for r in present
                if sum(self.weight[s] for s in present if values[s] <= values[r])
                >= q * total * (1 - 1e-12)
            ]
            found.append(min(reached) if reached else None)
        ends = sorted({float(v) for v in found if v is not None})
        at = [next(r for r in present if values[r] == end) for end in ends]
        members = [
            [r for r in present if (low < values[r] or (low == ends[0] == values[r]))
             and values[r] <= high]
            for low, high in pairwise(ends)
        ]  # fmt: skip
        mass = [sum(self.weight[r] for r in some) / total for some in members]
        shares = [sum(mass[m + 1 :]) + mass[m] / 2 for m in range(len(mass))]
        if x is None:
            return at, members, shares, None
        reach = [min(max((x - low) / (high - low), 0.0), 1.0) for low, high in pairwise(ends)]
        return at, members, shares, reach

    def level_bins(self, k, values, present, x, n_bins):
        """The same for neighbouring levels, in their order or by name."""
        levels = {values[r] for r in present}
        known = getattr(getattr(self.columns(self.X)[k], "dtype", None), "categories", None)
        declared = known is not None and getattr(self.columns(self.X)[k].dtype, "ordered", True)
        order = [v for v in known if v in levels] if declared else sorted(levels, key=level_key)
        at = [next(r for r in present if values[r] == level) for level in order]
        members = [[r for r in present if values[r] in pair] for pair in pairwise(order)]
        total = sum(self.weight[r] for r in present)
        mass = [sum(self.weight[r] for r in present if values[r] == v) / total for v in order]
        shares = [sum(mass[m + 1 :]) for m in range(len(members))]
        if x not in levels:
            return at, members, shares, None
        reach = [float(m < order.index(x)) for m in range(len(members))]
        return at, members, shares, reach

    def plain(self, X, k):
        """Column k as Python's own values, None where missing; whether they have an order."""
        values = self.columns(X)[k]
        ordered = k not in self.levels and (numeric(values) or is_date(values))
        return plain_values(values), ordered

    def given(self, parameters, X, own):
        """The weights of all background rows given the own values of each row of X, (m, n)."""
        key = repr(sorted(parameters.items())), id(X), own
        if key not in self._given:
            members = [self.column(parameters, k) for k in own]
            asked = zip(*(self.plain(X, k)[0] for k in own), strict=True)
            found = np.array([weights_given(members, t, self.weight) for t in asked])
            self._given[key] = X, found  # X is kept, so that its id stays its own
        return self._given[key][1]

    def column(self, parameters, k):
        """One column of the background with what a conditional measure says of it."""
        values, ordered = self.plain(self.X, k)
        kind, n_bins = parameters["estimator"], parameters["n_bins"]
        bins = Bins(values, self.weight, ordered, n_bins)
        return Member(bins, kind, parameters["local"][k])

    def support(self, parameters, X, own):
        """The effective number of rows behind each row of X, 1 / Σ π²."""
        return np.array([1 / fsum(w * w for w in row) for row in self.given(parameters, X, own)])

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
        return self.columns(self.X)[k], self.weight

    def side(self, k):
        """Side k of the domain."""
        if k in (self.domain or {}):
            return self.domain[k]
        values = self.columns(self.X)[k].astype(np.float64)
        finite = values[np.isfinite(values)]
        return finite.min(), finite.max()

    def low(self, k):
        """A point: the lower end of side k of the domain."""
        return np.array([self.side(k)[0]]), np.ones(1)

    def uniform(self, k):
        """Uniform on side k of the domain, `nodes` atoms a piece, or on levels without order."""
        values = self.columns(self.X)[k]
        if not numeric(values) or k in self.levels:
            first = {}
            for place in np.flatnonzero(~missing(values)):
                first.setdefault(values[int(place)], place)
            return take(values, list(first.values())), np.full(len(first), 1 / len(first))
        low, high = self.side(k)
        if low == high:
            return np.array([low]), np.ones(1)
        cuts = np.array([low, *(b for b in self.breaks[k] if low <= b < high), high])
        nodes, shares = np.polynomial.legendre.leggauss(self.nodes)
        atoms, weights = [], []
        for left, right in pairwise(cuts):  # the piece is left < y <= right
            if left < right:
                inside = left + (right - left) / 2 * (1 + nodes)
                atoms.extend(np.maximum(inside, np.nextafter(left, right)))
                weights.extend(shares / 2 * (right - left) / (high - low))
        return np.array(atoms), np.array(weights)


# -- conditional measures by rows ----------------------------------------------------------------

FEW = 10  # distinct numbers up to which a column of numbers is one of levels
FAR = 1e3  # distance of levels that differ, and of a row that is missing
TEMPER = 0.02  # ranks run from here to 1 minus it before they become normal scores
WIDTHS = [*np.geomspace(0.04, 6.0, 24), np.inf]
SHARES = [*np.geomspace(0.01, 0.9, 20), 1.0]
LAMBDAS = [0.0, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0]
PARTS = 10  # of each other column, for leaving one row out


def as_float(value):
    """A number as it is, anything else as 0."""
    return value if isinstance(value, int | float) else 0.0


def level_key(level):
    """Numbers first, by size, then everything else by name."""
    return (0, level, "") if isinstance(level, int | float) else (1, 0, str(level))


def is_date(values):
    """Whether a column holds dates or durations."""
    if is_polars(values):
        return values.dtype.is_temporal()
    kind = values.dtype
    return isinstance(kind, pd.DatetimeTZDtype) or getattr(kind, "kind", "") in ("m", "M")


def plain_values(values):
    """A column as Python's own values, None where missing; dates as numbers."""
    gone = missing(values)
    if is_date(values):
        if is_polars(values):
            values = values.to_numpy()
        elif isinstance(values.dtype, pd.DatetimeTZDtype):
            values = values.tz_convert(None)
        return [None if g else int(v) for v, g in zip(as_integers(values), gone, strict=True)]
    return [None if g else v for v, g in zip(values, gone, strict=True)]


def as_integers(dates):
    """Dates in microseconds."""
    array = np.asarray(dates)
    return array.astype(f"{array.dtype.kind}8[us]").astype(np.int64)


def score(rank):
    """The normal score of a rank between 0 and 1."""
    return NormalDist().inv_cdf(TEMPER + (1 - 2 * TEMPER) * rank)


def rank_of(score):
    """The rank that has a score."""
    return (NormalDist().cdf(score) - TEMPER) / (1 - 2 * TEMPER)


class Bins:
    """The bins of one column, and the mass of its rows in each.

    A column of more than ten numbers is cut at data values, bins are (lower, upper]; its places are
    the normal scores of their mid-ranks. Any other has a bin for each number or level; levels
    beyond `n_bins`, the rarest, share one.
    """

    def __init__(self, values, weight, ordered, n_bins):
        present = [(v, w) for v, w in zip(values, weight, strict=True) if v is not None]
        mass = {}
        for v, w in present:
            mass.setdefault(v, []).append(w)
        mass = {v: fsum(ws) for v, ws in mass.items()}
        # levels in an order that does not depend on that of the rows
        names = {v: v if ordered else (type(v).__name__, str(v)) for v in mass}
        mass = {v: mass[v] for v in sorted(mass, key=names.get)}
        self.ordered = ordered and len(mass) > FEW
        if self.ordered:
            self.edges = self.cut(mass, n_bins)
            self.n = len(self.edges) + 1
        else:
            n_bins = len(mass) if ordered else n_bins  # few numbers never share a bin
            self.n = min(len(mass), n_bins)
            self.levels = dict(zip(mass, range(len(mass)), strict=True))
            if len(mass) > n_bins:
                total = fsum(mass.values())
                often = sorted(mass, key=lambda v: -round(mass[v] / total, 9))[: n_bins - 1]
                self.levels = {v: often.index(v) if v in often else n_bins - 1 for v in mass}
        self.rows = [self.of(v) for v in values]
        self.mass = [
            fsum(w for b, w in zip(self.rows, weight, strict=True) if b == s) for s in range(self.n)
        ]
        self.total = fsum(self.mass)
        self.ranks = [(fsum(self.mass[:s]) + self.mass[s] / 2) / self.total for s in range(self.n)]
        self.places = [score(rank) for rank in self.ranks]
        self.any_missing = None in values

    def cut(self, mass, n_bins):
        """All values but the last, or those at which the score of the mass passes a step."""
        distinct = list(mass)
        if len(distinct) <= n_bins:
            return distinct[:-1]
        total = fsum(mass.values())
        upto = [fsum(list(mass.values())[: i + 1]) for i in range(len(distinct))]
        found = set()
        for i in range(1, n_bins):
            goal = rank_of(score(0) + i / n_bins * (score(1) - score(0))) * total * (1 - 1e-9)
            found.add(next(v for v, m in zip(distinct, upto, strict=True) if m >= goal))
        return sorted(found - {distinct[-1]})

    def of(self, value):
        """The bin of a value, or "missing" or "unseen"."""
        if value is None:
            return "missing"
        if not self.ordered:
            return self.levels.get(value, "unseen")
        return sum(edge < value for edge in self.edges)


class Member:
    """A column's kernel: how much a row counts given a value, and how far it is."""

    def __init__(self, bins, kind, local):
        self.bins, self.kind, self.local = bins, kind, local
        self._radius = {}

    def given(self, value):
        """K and distance of each row, and its place minus that of the value (0 for levels)."""
        bins, at = self.bins, self.bins.of(value)
        n = len(bins.rows)
        if at == "unseen" or (at == "missing" and not bins.any_missing):
            return [1.0] * n, [0.0] * n, [0.0] * n
        if at == "missing":
            gone = [row == "missing" for row in bins.rows]
            return [float(g) for g in gone], [0.0 if g else FAR for g in gone], [0.0] * n
        found = [self.pair(at, row) if row != "missing" else (0.0, FAR, 0.0) for row in bins.rows]
        return tuple(map(list, zip(*found, strict=True)))

    def pair(self, at, row):
        """The same for the bins of one value and one row."""
        if not self.bins.ordered:
            return (1.0, 0.0, 0.0) if at == row else (self.local, FAR, 0.0)
        gap = self.bins.places[row] - self.bins.places[at]
        if self.kind == "knn":
            if at not in self._radius:
                self._radius[at] = self.radius(at)
            radius = self._radius[at]
            near = abs(gap) <= radius * (1 + 1e-9)
            return float(near), abs(gap) / max(radius, 1e-300), gap
        u = abs(gap) / self.local
        return max(1 - u * u, 0.0), u, gap

    def radius(self, at):
        """How far the bins reach that have the share of the mass together."""
        bins = self.bins
        gaps = [abs(place - bins.places[at]) for place in bins.places]
        goal = self.local * bins.total * (1 - 1e-12)
        for radius in sorted(gaps):
            near = [m for m, gap in zip(bins.mass, gaps, strict=True) if gap <= radius]
            if fsum(near) >= goal:
                return radius
        return max(gaps)


def weights_given(members, values, weight):
    """π: the weights of all rows, which sum to 1, given the values of one or several columns."""
    parts = [member.given(value) for member, value in zip(members, values, strict=True)]
    if len(members) == 1:
        ((kernel, _, gap),) = parts
        (member,) = members
        weights = [w * k for w, k in zip(weight, kernel, strict=True)]
        sloped = member.kind == "local_linear" and member.bins.ordered and member.local < np.inf
        if sloped and member.bins.of(values[0]) != "missing":
            weights = line_weights(weights, gap)
        return normalised(weights)
    weights = list(weight)
    for kernel, _, _ in parts:
        weights = [w * k for w, k in zip(weights, kernel, strict=True)]
    if not any(weights):
        far = [fsum(row) for row in zip(*(distance for _, distance, _ in parts), strict=True)]
        nearest = min(far) * (1 + 1e-9)
        weights = [w if f <= nearest else 0.0 for w, f in zip(weight, far, strict=True)]
    return normalised(weights)


def normalised(weights):
    """Weights that sum to 1."""
    return np.array(weights) / fsum(weights)


def line_weights(weights, gaps):
    """The weights with which the rows enter the value at gap 0 of a line fitted to them."""
    mass, first, second = (
        fsum(w * g**p for w, g in zip(weights, gaps, strict=True)) for p in range(3)
    )
    if second / mass - (first / mass) ** 2 <= 1e-12:
        return weights
    return [w * (second - first * g) for w, g in zip(weights, gaps, strict=True)]


def indicators(bins):
    """0 / 1 numbers of each row that say where in a column it lies."""
    if bins.ordered:
        part = [min(int(rank * PARTS + 1e-9), PARTS - 1) for rank in bins.ranks]
    else:
        heavy = sorted(range(bins.n), key=lambda b: -round(bins.mass[b], 12))[:PARTS]
        part = [heavy.index(b) if b in heavy else PARTS - 1 for b in range(bins.n)]
    rows = [None if b == "missing" else part[b] for b in bins.rows]
    gone = [float(p is None) for p in rows]
    if bins.ordered:
        return [[float(p is not None and p <= c) for p in rows] for c in range(PARTS - 1)] + [gone]
    return [[float(p == c) for p in rows] for c in range(PARTS)] + [gone]


def leave_one_out(bins, kind, others):
    """The squared error of each candidate, rows of weight 1 really left out one after the other.

    Bins, ranks and the windows of "knn" stay those of all rows. Where no row is left with weight
    (or, of a line, none that it could be drawn through), the neighbouring bins say what they have,
    of levels all the others.
    """
    candidates = LAMBDAS if not bins.ordered else SHARES if kind == "knn" else WIDTHS
    present = [r for r, b in enumerate(bins.rows) if b != "missing"]
    ys = [y for column in others for y in indicators(column)]
    ys = np.array([y for y in ys if any(y[r] for r in present)]).T  # (rows, indicators)
    scores = []
    for local in candidates:
        member = Member(bins, kind, local)
        total = 0.0
        for r in present:
            weights = left_weights(member, r)
            total += fsum((weights @ ys - ys[r]) ** 2)
        scores.append(total)
    return candidates, np.array(scores)


def left_weights(member, r):
    """The weights of all other rows given the bin of row r, which sum to 1."""
    bins, at = member.bins, member.bins.rows[r]
    pairs = [member.pair(at, b) if b != "missing" else (0.0, FAR, 0.0) for b in bins.rows]
    weights = [0.0 if s == r else k for s, (k, _, _) in enumerate(pairs)]
    gaps = [gap for _, _, gap in pairs]
    if bins.ordered and member.kind == "local_linear" and member.local < np.inf:
        within = {b for b, w in zip(bins.rows, weights, strict=True) if w > 0}
        if len(within) == 1 and at not in within:
            weights = [0.0] * len(weights)
        elif any(weights):
            weights = line_weights(weights, gaps)
    if not any(weights):
        near = {at - 1, at + 1} if bins.ordered else set(range(bins.n)) - {at}
        weights = [float(b in near) for b in bins.rows]
    return normalised(weights)
