"""MeasureExplainer: stores, fits, explains. The numerics are in pieces, measures and engines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
)

from skattr import frames, models
from skattr.curves import (
    BinnedTable,
    BooleanTable,
    CellTable,
    ConstantTable,
    Curve,
    FunctionTable,
    LevelTable,
    LinearTable,
)
from skattr.engines import Approximation, Engine, Jobs, TooCostly, is_asked_for
from skattr.explanation import Explanation
from skattr.inputs import (
    attributions,
    check_parameters,
    check_X,
    named_outputs,
    position,
    read_domain,
    realign,
    takes_missing,
)
from skattr.measures import LinearCombination, Measure, as_measure
from skattr.measures.background import Background, check_weights, that_count
from skattr.measures.base import as_terms, copy_terms
from skattr.messages import brief
from skattr.parallel import in_order
from skattr.pieces import Boxes, Grid, Output, Pieces, as_pieces, choose_output
from skattr.pieces.preprocessing.row_independence import check_row_independence
from skattr.solution import Found, Solution, joined, merge, plan, prepare, solve
from skattr.storage import Kept

NAMED = 5  # pairs of dependent columns that are named
BLOCK = 2**21  # numbers of X that are encoded together: bounds the memory of `explain`


def _can_add_batches(explainer: MeasureExplainer) -> bool:
    if not models.is_fitted(explainer.estimator):
        raise AttributeError(
            "partial_fit needs an estimator that is fitted already: batches of the background "
            "cannot fit it"
        )
    for _, term in as_terms(as_measure(explainer.measure)):
        if not term.adds_up:
            raise AttributeError(
                f"partial_fit: {term!r} does not add up over batches: {term.no_batches}"
            )
    return True


class MeasureExplainer(TransformerMixin, MetaEstimatorMixin, BaseEstimator):
    """Attributions as integrals: phi_j(x, f) = ∫ f dμ_{j,x}, with the measure μ of your choice.

    Parameters
    ----------
    estimator : fitted scikit-learn estimator, boosting model, torch module, or callable
        The model f: an estimator, a Pipeline, a search, a FrozenEstimator; an xgboost, lightgbm or
        catboost model; a torch module in eval mode; or a callable that maps X to (n,) or (n, k). It
        is never refitted. If it is not fitted and `fit` gets y, a clone is fitted. Attributions
        belong to the columns that are handed to it, so give a Pipeline whole, with raw columns.
    measure : Measure or str, default="main_effect"
        μ, or its name. "main_effect" is `PartialDependence() - Expectation()`: what a column adds
        to the mean prediction, values around 0. "conditional_effect" is `Conditional() -
        Expectation()`. Without the mean taken off: "partial_dependence", "conditional",
        "product_marginal", "uniform"; the mean alone: "expectation".
    output : {"auto", "raw", "proba", "predict"}, default="auto"
        What is explained. Auto takes the scale on which the model is a sum of pieces:
        probabilities of a forest, margins of boosting, decision functions of linear classifiers,
        the prediction of a regressor (before its link: with the poisson or gamma loss that is the
        log scale). Outlier detectors and mixtures, which predict labels, are explained by their
        `decision_function` or `score_samples`; clusterings without a score are refused.
    engine : {"auto", "exact"}, an engine's name, or an Engine, default="auto"
        How it is integrated; never changes what is computed.
    groups : dict, optional
        {"name": ["col_a", "col_b"]}: columns that are pinned together and get one attribution.
    domain : array (d, 2) or dict, optional
        {column: (low, high)}, for uniform measures; the background's range by default.
    tol : float, default=1e-2
        Standard error at which an approximation stops, in units of the spread of f: 1e-2 is one
        percent of the standard deviation of f over the background. Ten times less takes ten to a
        hundred times as many evaluations. Exact values do not depend on it.
    max_evals : int, default=100_000
        Bound on the evaluations for one approximate value.
    random_state : int, RandomState or None
        Seed of approximations.
    n_jobs : int, optional
        Number of workers, as in joblib. It changes no bit of the result.
    device : str, optional
        Where a torch module is evaluated, "cpu" or "cuda": where it is, and nowhere else.
    verbose : int, optional
        Whether to show progress: 1 always, 0 never; by default one bar with the column, the number
        of calls and the time left, once the model has been evaluated for more than three seconds.
    output_names : list of str, optional
        What the outputs are called, one name for each; by default the classes of a classifier,
        "prediction", or y0, y1, … Of use for torch modules and functions, which have no names.

    Attributes
    ----------
    estimator_ : the fitted model.
    measure_ : the fitted measure.
    engine_ : tuple of str, the engine of each term.
    exact_ : bool, whether every value is the integral up to rounding.
    base_value_ : float or array (k,), weighted mean of f over the background.
    output_names_ : list of str.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skattr import MeasureExplainer
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(random_state=0).fit(X, y)
    >>> explainer = MeasureExplainer(forest).fit(X)
    >>> explainer.explain(X).to_frame().shape
    (442, 10)
    """

    _pieces: Pieces | None
    _output: Output
    _grid: Grid | None
    _solution: Solution | None

    def __init__(
        self,
        estimator: Any,
        measure: Measure | str = "main_effect",
        *,
        output: str = "auto",
        engine: str | Engine = "auto",
        groups: dict | None = None,
        domain: Any = None,
        tol: float = 1e-2,
        max_evals: int = 100_000,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int | None = None,
        output_names: list[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.measure = measure
        self.output = output
        self.engine = engine
        self.groups = groups
        self.domain = domain
        self.tol = tol
        self.max_evals = max_evals
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.output_names = output_names

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the measure from background rows, and integrate all that does not depend on x.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The background.
        y : array (n,), optional
            Used only to fit a clone of an estimator that is not fitted.
        sample_weight : array (n,), optional
            Weights of the background's rows.

        Returns
        -------
        self
        """
        check_parameters(self)
        for name in [name for name in vars(self) if name.endswith("_") or name == "_solution"]:
            delattr(self, name)  # a fit that fails leaves nothing half done
        models.check(self.estimator)
        terms = copy_terms(as_measure(self.measure))
        X = check_X(self, X, reset=True)
        weights = _weights(sample_weight, X)
        self._names = frames.labels(X)
        self._named = frames.is_frame(X)
        self.estimator_ = models.fitted(self.estimator, X, y, sample_weight)
        models.check_width(self.estimator_, self._names)
        self._attributions, self._own = attributions(self.groups, self._names)
        self._domain = read_domain(self.domain, self._names)
        X, weights = that_count(X, weights)
        self._n_background = len(X)
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        self._refuted: str | None = None
        self._points: dict[int, np.ndarray] = {}
        self._with_missing: list[int] = []
        self._first_look(X)
        self._check_reading(X)
        self._scale = self._output.scale_in_words(_spread_out(X))
        self._read().name_levels(X)
        self._n_terms = len(terms)
        planned = self._planned(terms, X, weights)
        self._keep_points(X)
        self._keep_missing(X)
        self._publish(planned)
        return self

    def _planned(self, terms: list, X: Any, weights: np.ndarray) -> list:
        """Plan and prepare the terms, again without an engine that turns out to cost too much."""
        jobs = self._jobs()
        fit_to = self._fit_to(X, weights)
        for _, measure in terms:
            fit_to(measure)
        while True:
            planned = plan(self._read(), terms, self.engine, jobs, fit_to)
            self._plan = [replace(term, measure=clone(term.measure)) for term in planned]
            try:
                return self._prepare(planned)
            except TooCostly as error:
                if is_asked_for(self.engine, error.engine):
                    raise
                warnings.warn(f"{error}; another engine takes over", stacklevel=3)
                jobs = jobs._replace(without=(*jobs.without, error.engine))

    @available_if(_can_add_batches)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch to the background; the result is that of one `fit` on all batches.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            Rows of the background.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows.

        Returns
        -------
        self
        """
        if not self.__sklearn_is_fitted__():
            self.fit(X, y, sample_weight)
            try:
                self._refuse_open_columns()
            except ValueError:
                self._solution = None
                raise
            return self
        self._refuse_open_columns()
        X = self._rows(X)
        X, weights = that_count(X, _weights(sample_weight, X))
        self._keep_points(X)
        self._keep_missing(X)
        fit_to = self._fit_to(X, weights)
        batch = [replace(term, measure=fit_to(clone(term.measure))) for term in self._plan]
        self._publish(merge(self._solved().terms, self._prepare(batch)))
        self._n_background += len(X)
        return self

    def explain(self, X: Any, *, features: Any = None, predictions: bool = True) -> Explanation:
        """Return the attributions of rows.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows; the columns of a frame may stand in another order than in `fit`.
        features : list, optional
            Names (or positions) of the attributions wanted; all by default.
        predictions : bool, default=True
            Whether to evaluate the model at the rows too.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        chosen = self._choose(features)
        rows = self._rows(realign(X, self._names) if self._named else X)
        certificate: dict = {}
        values, error, offset, centered_error = (
            _one_output(array) for array in self._values(rows, chosen, certificate)
        )
        labels = frames.labels(rows)
        return Explanation(
            values=values,
            base_value=self.base_value_,
            offset=offset,
            predictions=self._predict(rows) if predictions else None,
            data=X if frames.is_frame(X) else rows,
            feature_names=tuple(self._attributions[a] for a in chosen),
            columns=tuple(tuple(labels[k] for k in self._own[a]) for a in chosen),
            output_names=tuple(self.output_names_),
            std_error=error,
            centered_error=centered_error,
            exact=self.exact_ and error is None,
            engine=self.engine_,
            measure=repr(self.measure_),
            measure_name=self.measure_.in_words(),
            support=self._support(rows, chosen),
            scale=self._scale,
            certificate=certificate or None,
        )

    def transform(self, X: Any) -> np.ndarray:
        """Return the attributions as one table, (n, g), or (n, k·g) output by output.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        values = self._values(rows, range(len(self._own))).values
        return np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(len(values), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`, `output__feature` for several outputs.

        Parameters
        ----------
        input_features : list of str, optional
            Checked against those of `fit`.
        """
        check_is_fitted(self)
        given = _check_feature_names_in(self, input_features)
        names = [
            str(given[own[0]]) if len(own) == 1 and name == self._names[own[0]] else str(name)
            for name, own in zip(self._attributions, self._own, strict=True)
        ]
        if len(self.output_names_) > 1:
            names = [f"{output}__{name}" for output in self.output_names_ for name in names]
        return np.array(names, dtype=object)

    def curve(self, feature: Any, output: Any = None) -> Curve:
        """Return the exact attribution of a column as a function of its value.

        Parameters
        ----------
        feature : label or int
            The column, by name or, where no column has that name, by position.
        output : str or int, optional
            One of several outputs; all by default.
        """
        check_is_fitted(self)
        is_label = isinstance(feature, Hashable)
        if is_label and feature in self._attributions and feature not in self._names:
            raise ValueError(f"{feature!r} is a group, and groups have no curve")
        k = position(feature, self._names, "curve")
        a = next(a for a, own in enumerate(self._own) if k in own)
        if len(self._own[a]) > 1:
            raise ValueError(
                f"column {feature!r} is part of the group {self._attributions[a]!r}, "
                "a function of several columns"
            )
        rows = [repr(t.measure) for t in self._active() if t.measure.depends == "row"]
        if rows:
            raise ValueError(f"{', '.join(rows)} depends on the whole row: there is no curve")
        outputs = self.output_names_
        chosen = list(range(len(outputs)))
        if output is not None:
            chosen = [position(output, list(outputs), "curve", "output")]
        names = tuple(outputs[o] for o in chosen)
        offset = self._solved().offset.value[chosen]
        table: Any = self._table(a, k, chosen)
        span = None
        if isinstance(table, LinearTable):
            points = frames.to_float(self._points[k])
            points = points[np.isfinite(points)]
            span = (float(points.min()), float(points.max())) if len(points) else None
        if frames.is_boolean(self._row.X, k):
            table = BooleanTable(table)
        order = frames.level_order(self._row.X, k)
        return Curve(
            self._names[k],
            names,
            table,
            offset,
            self._scale,
            span,
            measure_name=self.measure_.in_words(),
            order=order,
            missing_seen=k in self._with_missing,
        )

    def describe(self) -> str:
        """Return a few lines: what will run, why, and what it costs."""
        check_is_fitted(self)
        pieces = self.pieces_
        model = type(self._output.estimator).__name__
        lines = [
            f"model: {model}, {self._output.scale} of {', '.join(self.output_names_)}",
            f"read as: {pieces.describe()}",
            f"measure: {self.measure_!r}",
        ]
        for term in self._active():
            cost = "nothing more: another term knows it"
            if term.state is not None:
                cost = term.engine.cost(pieces, term.measure)
            how = "exact"
            if isinstance(term.engine, Approximation):
                how = f"approximate (tol={self.tol:g}, max_evals={self.max_evals})"
                cost += self._expected(term)
            line = f"{term.measure!r}: engine {term.engine.name}, {how}; {cost}"
            parts = [line]
            if term.state is not None and term.measure.depends != "attribution":
                parts.append(term.engine.outlook(term.state, self._own))
                parts.append(term.engine.certificate(term.state))
            lines.append("; ".join(part for part in parts if part))
        together = self._dependent_in_words()
        return "\n".join([*lines, f"note: {together}"] if together else lines)

    def _dependent_in_words(self) -> str:
        """Say which columns a conditional measure cannot tell apart, and what to do; "" if none."""
        pairs = {pair for term in self._active() for pair in term.measure.dependent_}
        if not pairs:
            return ""
        strongest = sorted(pairs, key=lambda pair: -abs(pair[2]))
        names = [(self._names[k], self._names[m], r) for k, m, r in strongest[:NAMED]]
        listed = ", ".join(f"{a!r} and {b!r} ({r:.2f})" for a, b, r in names)
        more = f" and {len(pairs) - NAMED} more pairs" if len(pairs) > NAMED else ""
        first = [names[0][0], names[0][1]]
        return (
            f"strongly dependent columns (rank correlation): {listed}{more}. Given one, the other "
            "is known as well, so that both get what either does; explain them as one, "
            f"groups={{'together': {first!r}}}"
        )

    def _expected(self, term: Any) -> str:
        """Say how many evaluations an approximate term takes, and to what error."""
        error = self._solved().error
        assert error is not None
        counts = ""
        if term.state is not None:
            counts = f"; {term.engine.evaluations(term.state, self._jobs())}"
        errors = ", ".join(f"{size:.2g}" for size in error)
        return f"{counts}; done at a standard error of {errors}"

    @property
    def pieces_(self) -> Pieces:
        """The model as pieces; read again when needed, never pickled."""
        check_is_fitted(self)
        return self._read()

    def _read(self) -> Pieces:
        pieces = getattr(self, "_pieces", None)
        if pieces is None:
            pieces = as_pieces(self._output, self._row.X, self._refuted)
            self._pieces = pieces
        return pieces

    def _first_look(self, X: Any) -> None:
        """Choose the output and read the model, at the first row that it takes."""
        refusal: ValueError | None = None
        for row in frames.some_rows(X):
            self._row = Kept(frames.copy(row))
            self._pieces = None
            try:
                self._output = choose_output(self.estimator_, self.output, row)
                self._read()
                break
            except ValueError as error:
                refusal = refusal or error
        else:
            assert refusal is not None
            raise refusal
        self._output.names = named_outputs(self.output_names, self._output.names)

    def _check_reading(self, X: Any) -> None:
        """Compare what was read with what the model says; a wrong reading is a black box."""
        pieces = self._read()
        self._refuted = pieces.refuted(_spread_out(X))
        check_row_independence(self.estimator_, X, self._row.X)
        if self._refuted is not None:
            self._pieces = None
            warnings.warn(f"{self._refuted}; it is explained as a black box", stacklevel=3)

    def _refuse_open_columns(self) -> None:
        """Refuse batches where a column's cells are only those met."""
        grids = [addend.grid for addend in self._read().addends if addend.grid is not None]
        columns = sorted({k for grid in grids for k in grid.open_columns})
        if columns:
            names = [self._names[k] for k in columns]
            raise ValueError(
                f"partial_fit: what the model tells apart in the columns {names} depends on the "
                "data, because of the steps in front of it; use fit with the whole background"
            )

    def _fit_to(self, X: Any, weights: np.ndarray) -> Callable[[Measure], Measure]:
        """Return the function that fits a measure to rows."""
        background = Background(X, weights, self._read().levels)
        # an array has a row for columns of levels too; a dict that names one is a mistake
        domain = {
            k: side
            for k, side in self._domain.items()
            if isinstance(self.domain, dict) or not background.levels[k]
        }
        return lambda measure: measure.fit(background, None, domain, self._own)

    def _prepare(self, terms: list) -> list:
        """Prepare terms with fitted measures, which forget the background then."""
        prepare(self._read(), terms, self._own, self._jobs())
        for term in terms:
            term.measure.release()
        return terms

    def _keep_points(self, X: Any) -> None:
        """Keep the distinct values of the columns whose curve has no table to be read from."""
        pieces = self._read()
        evaluated = any(term.engine.needs[0] is Pieces or term.engine.smooth for term in self._plan)
        for k in range(len(self._names)) if evaluated else pieces.without_table():
            values = frames.sorted_values(frames.column(X, k))
            if k in self._points:
                values = frames.sorted_values(np.concatenate([self._points[k], values]))
            self._points[k] = values

    def _keep_missing(self, X: Any) -> None:
        """Keep which columns of the background have missing values."""
        new = [k for k in range(len(self._names)) if frames.any_missing(frames.column(X, k))]
        self._with_missing = sorted({*self._with_missing, *new})

    def _rows(self, X: Any) -> Any:
        """Return rows, checked and with the dtypes of the background wherever these hold them."""
        return frames.settled(check_X(self, X, reset=False), self._row.X)

    def _solved(self) -> Solution:
        check_is_fitted(self)
        assert self._solution is not None
        return self._solution

    def _active(self) -> list:
        """Return the terms of the measure, without those that only carry references."""
        return self._solved().terms[: self._n_terms]

    def _publish(self, prepared: list) -> None:
        """Solve the prepared terms, and say what came of it."""
        pieces = self._read()
        self._solution = solve(pieces, prepared, self._own, self._jobs())
        terms = self._active()
        fitted = [(term.coefficient, term.measure) for term in terms]
        whole = len(fitted) == 1 and fitted[0][0] == 1.0
        self.measure_ = fitted[0][1] if whole else LinearCombination(fitted)
        self.engine_ = tuple(term.engine.name for term in terms)
        self.exact_ = self._solution.is_exact
        self.base_value_ = _scalar(self._solution.base_value)
        self.output_names_ = list(self._output.names)
        self._grid = pieces.grid

    def _choose(self, features: Any) -> list[int]:
        if features is None:
            return list(range(len(self._attributions)))
        wanted = list(features) if np.iterable(features) and not isinstance(features, str) else []
        if not wanted:
            raise ValueError(f"features is a list of columns, not {brief(features)}")
        names = list(self._attributions)
        return [position(name, names, "features", "attribution") for name in wanted]

    def _jobs(self) -> Jobs:
        return Jobs(
            self.n_jobs, self.verbose, self.tol, max_evals=self.max_evals, seed=self._seed,
            engine=self.engine,
        )  # fmt: skip

    def _blocks(self, X: Any) -> list[slice]:
        step = max(256, BLOCK // len(self._names))
        return [slice(start, start + step) for start in range(0, len(X), step)]

    def _values(self, X: Any, chosen: Any, certificate: dict | None = None) -> Found:
        """Return the values of some attributions, (n, g, k), and what is known of them.

        What exact engines can prove of them is put into `certificate`.
        """
        solution = self._solved()
        pieces = self.pieces_ if any(solution.needs_pieces(a) for a in chosen) else None

        def values(block: slice) -> Found:
            return self._block_values(frames.take_rows(X, block), pieces, chosen, certificate)

        if self._grid is None:  # equal values in all rows share evaluations
            result = values(slice(len(X)))
        else:
            # engines that integrate use the workers themselves
            n_jobs = self.n_jobs if pieces is None else 1
            result = joined(in_order(values, self._blocks(X), n_jobs), len(X))
        self._say_what_is_not_done(result.error)
        return result

    def _block_values(
        self, rows: Any, pieces: Pieces | None, chosen: Any, certificate: dict | None = None
    ) -> Found:
        codes = None
        if self._grid is not None:
            grid, codes = self._grid.meet(rows)
            pieces = pieces.on(grid) if isinstance(pieces, Boxes) else pieces
        jobs = self._jobs()._replace(certificate=certificate)
        return self._solved().values(pieces, rows, codes, self._own, chosen, jobs)

    def _support(self, X: Any, chosen: list[int]) -> np.ndarray | None:
        """Return the effective number of rows behind each value: of the thinnest term."""
        result = None
        for term in self._active():
            for place, a in enumerate(chosen):
                found = term.measure.support(X, self._own[a]) if term.coefficient else None
                if found is not None:
                    if result is None:
                        result = np.full((len(X), len(chosen)), np.inf)
                    result[:, place] = np.minimum(result[:, place], found)
        return result

    def _say_what_is_not_done(self, errors: np.ndarray | None) -> None:
        """Warn of values whose standard error max_evals keeps above tol."""
        if errors is None:
            return
        sizes = errors / self._solved().spread  # (n, g, k)
        far = sizes > self.tol * (1 + 1e-9)  # sums of terms round
        if far.any():
            n_far, n = far.any(axis=2).sum(), far[:, :, 0].size
            warnings.warn(
                f"{n_far} of {n} values stopped at max_evals={self.max_evals} with a standard "
                f"error above tol={self.tol:g} (in units of the spread of f), the largest "
                f"{sizes[far].max():.2g}; raise max_evals or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _predict(self, X: Any) -> np.ndarray:
        blocks = [self._output(frames.take_rows(X, block)) for block in self._blocks(X)]
        result = np.concatenate(blocks)
        return result[:, 0] if result.shape[1] == 1 else result

    def _table(
        self, a: int, k: int, outputs: list[int]
    ) -> BinnedTable | CellTable | ConstantTable | LevelTable | LinearTable | FunctionTable:
        solution = self._solved()
        grid = self._grid
        if grid is not None and not solution.rest[a] and grid.describe_cells(k) is not None:
            cells = CellTable(grid, k, solution.curve(a, grid.cells[k].n_codes)[:, outputs])
            curves = [(solution.terms[t].coefficient, curve) for t, curve in solution.binned[a]]
            if not curves:
                return cells
            if all(curve.bins is not None for _, curve in curves):
                return BinnedTable(cells, curves, outputs, partial(self._at_values, a, k, outputs))
        constant = solution.constants[a] + solution.estimates[a].value
        if grid is None and solution.binned[a] and not solution.rest[a]:
            curves = [(solution.terms[t].coefficient, curve) for t, curve in solution.binned[a]]
            return LinearTable(curves, constant, outputs)
        if all(term.is_constant for term in self._active()):
            return ConstantTable(constant[outputs])
        function = partial(self._at_values, a, k, outputs)
        levels = self.pieces_.level_values(k)
        if levels is not None:
            return LevelTable(function, *levels)
        return FunctionTable(function, self._points[k])

    def _at_values(self, a: int, k: int, outputs: list[int], values: Any) -> np.ndarray:
        rows = frames.with_columns(self._row.X, {k: values})
        found = self._block_values(rows, self.pieces_, [a])
        self._say_what_is_not_done(found.error)
        return found.values[:, 0, outputs]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        known = signature(type(self)).parameters
        changed = [
            # of tables the shape says more than the first rows
            f"{name}={brief(value) if len(getattr(value, 'shape', ())) else repr(value)}"
            for name, value in self.get_params(deep=False).items()
            if value is not known[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_solution", None) is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_pieces", None)
        return state


def _spread_out(X: Any) -> Any:
    """Return a few rows from all over X."""
    return frames.take_rows(X, np.unique(np.linspace(0, len(X) - 1, 64).astype(int)))


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    return check_weights(_check_sample_weight(sample_weight, X, dtype=np.float64), len(X))


def _one_output(array: np.ndarray | None) -> Any:
    """Return an array whose last axis is the outputs without that axis, if there is one."""
    if array is None or array.shape[-1] > 1:
        return array
    return float(array[0]) if array.ndim == 1 else array[..., 0]


def _scalar(values: np.ndarray) -> float | np.ndarray:
    return float(values[0]) if len(values) == 1 else values
