"""MeasureExplainer: the estimator that fits a measure and explains rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
)

from skattr._inputs import frames, models
from skattr._inputs.checks import (
    attributions,
    check_parameters,
    check_X,
    position,
    positions,
    read_domain,
    realign,
    takes_missing,
)
from skattr._utils.messages import brief
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves import Curve
from skattr.curves.base import ColumnFunction
from skattr.curves.evaluated import Booleans, Evaluated, EvaluatedLevels
from skattr.engines import Engine, RunOptions, TooCostly, is_asked_for
from skattr.explanation import Explanation
from skattr.measures import LinearCombination, Measure, as_measure
from skattr.measures.background import Background, check_weights, drop_zero_weights
from skattr.measures.base import as_terms, copy_terms
from skattr.measures.learned.dependence import dependent_in_words
from skattr.pieces import Pieces
from skattr.solution.read_model import ReadModel
from skattr.solution.seen import SeenColumns
from skattr.solution.solution import Solution, Values, solve
from skattr.solution.terms import Term, plan, prepare


def _can_add_batches(explainer: MeasureExplainer) -> bool:
    if not models.is_fitted(explainer.estimator):
        raise AttributeError(
            "partial_fit needs a fitted estimator: batches of the background cannot fit it"
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
        belong to the columns that it takes, so pass a whole Pipeline, with raw columns.
    measure : Measure or str, default="main_effect"
        μ, or its name. "main_effect" is `PartialDependence() - Expectation()`: what a column adds
        to the mean prediction, values around 0. "conditional_effect" is `Conditional() -
        Expectation()`. Without subtracting the mean: "partial_dependence", "conditional",
        "product_marginal", "uniform"; the mean alone: "expectation".
    output : {"auto", "raw", "proba", "predict"}, default="auto"
        The output to explain. "auto" is the scale on which the model is a sum of pieces:
        probabilities of a forest, margins of boosting, decision functions of linear classifiers,
        the prediction of a regressor (before its link: with the poisson or gamma loss that is the
        log scale). Outlier detectors and mixtures, which predict labels, are explained by their
        `decision_function` or `score_samples`; clusterings without a score are refused.
    engine : {"auto", "exact"}, an engine's name, or an Engine, default="auto"
        The algorithm for the integral; it changes cost and error, never what is computed.
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
        Number of workers, as in joblib. The result does not depend on it, to the last bit.
    device : str, optional
        The device of a torch module, "cpu" or "cuda"; the module must already be there.
    verbose : int, optional
        Whether to show progress: 1 always, 0 never; by default one bar with the column, the number
        of calls and the time left, once the model has been evaluated for more than three seconds.
    output_names : list of str, optional
        One name per output; by default the classes of a classifier, "prediction", or y0, y1, …
        Useful for torch modules and functions, which have no names.

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

    _solution: Solution | None

    def __init__(
        self,
        estimator: Any,
        measure: Measure | str = "main_effect",
        *,
        output: str = "auto",
        engine: str | Engine = "auto",
        groups: dict[str, Any] | None = None,
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
        """Fit the measure to background rows, and compute what does not depend on x.

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
            delattr(self, name)  # a fit that fails leaves no state behind
        models.check(self.estimator)
        terms = copy_terms(as_measure(self.measure))
        X = check_X(self, X, reset=True)
        weights = _weights(sample_weight, X)
        names = frames.labels(X)
        self.estimator_ = models.fitted(self.estimator, X, y, sample_weight)
        models.check_width(self.estimator_, names)
        self._attributions = attributions(self.groups, names)
        self._domain = read_domain(self.domain, names)
        X, weights = drop_zero_weights(X, weights)
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        self._model = ReadModel(self.estimator_, X, self.output, self.output_names)
        self._n_terms = len(terms)
        prepared = self._prepare(terms, X, weights)
        self._seen = SeenColumns()
        self._seen.add(X, self._columns_without_table())
        self._publish(prepared)
        return self

    def _prepare(self, measures: list[Any], X: Any, weights: np.ndarray) -> list[Term]:
        """Plan and prepare terms, again without an engine that turns out to cost too much."""
        options, fit = self._options(), self._fit_measure(X, weights)
        for _, measure in measures:
            fit(measure)
        while True:
            terms = plan(self._model.pieces, measures, options, fit)
            self._plan = [term.unfitted() for term in terms]
            try:
                return prepare(self._model.pieces, terms, self._attributions, options, fit)
            except TooCostly as error:
                if is_asked_for(self.engine, error.engine):
                    raise
                warnings.warn(f"{error}; another engine takes over", stacklevel=3)
                options = replace(options, without=(*options.without, error.engine))

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
                self._model.refuse_open_columns()
            except ValueError:
                self._solution = None
                raise
            return self
        self._model.refuse_open_columns()
        X = self._rows(X)
        X, weights = drop_zero_weights(X, _weights(sample_weight, X))
        self._model.name_levels(X)
        fit = self._fit_measure(X, weights)
        batch = [term.unfitted() for term in self._plan]
        for term in batch:
            fit(term.measure)
        batch = prepare(self._model.pieces, batch, self._attributions, self._options(), fit)
        self._seen.add(X, self._columns_without_table())
        self._publish([a.merge(b) for a, b in zip(self._solved.terms, batch, strict=True)])
        return self

    def explain(self, X: Any, *, features: Any = None, predictions: bool = True) -> Explanation:
        """Return the attributions of rows.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows; the columns of a frame may be in another order than in `fit`.
        features : list, optional
            Names or positions of the attributions to compute; all by default.
        predictions : bool, default=True
            Whether to also evaluate the model at the rows.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        names = self._attributions.names
        chosen = positions(features, list(names), "features", "attribution")
        rows = self._rows(realign(X, self._model.names) if self._model.named else X)
        *arrays, certificate = self._values(rows, chosen)
        values, error, offset, centered_error = (_one_output(array) for array in arrays)
        labels = frames.labels(rows)
        return Explanation(
            values=values,
            base_value=self.base_value_,
            offset=offset,
            predictions=self._model.predict(rows) if predictions else None,
            data=X if frames.is_frame(X) else rows,
            feature_names=tuple(names[a] for a in chosen),
            columns=tuple(tuple(labels[k] for k in self._attributions[a]) for a in chosen),
            output_names=tuple(self.output_names_),
            std_error=error,
            centered_error=centered_error,
            exact=self.exact_ and error is None,
            engine=self.engine_,
            measure=repr(self.measure_),
            measure_name=self.measure_.in_words(),
            support=self._support(rows, chosen),
            scale=self._model.scale,
            certificate=certificate or None,
        )

    def transform(self, X: Any) -> np.ndarray:
        """Return the attributions as an array, (n, g), or (n, k·g) output by output.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.
        """
        check_is_fitted(self)
        values = self._values(self._rows(X), range(len(self._attributions))).values
        return np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(len(values), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`, `output__feature` for several outputs.

        Parameters
        ----------
        input_features : list of str, optional
            Checked against those of `fit`.
        """
        check_is_fitted(self)
        labels = _check_feature_names_in(self, input_features)
        known = self._model.names
        names = [
            str(labels[columns[0]])
            if len(columns) == 1 and name == known[columns[0]]
            else str(name)
            for name, columns in zip(self._attributions.names, self._attributions, strict=True)
        ]
        if len(self.output_names_) > 1:
            names = [f"{output}__{name}" for output in self.output_names_ for name in names]
        return np.array(names, dtype=object)

    def curve(self, feature: Any, output: Any = None) -> Curve:
        """Return the exact attribution of a column as a function of its value.

        Parameters
        ----------
        feature : label or int
            The column, by name or, if no column has that name, by position.
        output : str or int, optional
            One of several outputs; all by default.
        """
        check_is_fitted(self)
        model, solution = self._model, self._solved
        k, a = self._curved(feature)
        row_terms = [repr(t.measure) for t in self._terms if t.measure.depends == "row"]
        if row_terms:
            raise ValueError(f"{', '.join(row_terms)} depends on the whole row: there is no curve")
        integrate = partial(self._at_values, a, k)
        function = solution.curve(a, model.grid, integrate) or self._evaluated(k, integrate)
        curve = Curve(
            model.names[k],
            tuple(self.output_names_),
            Booleans(function) if frames.is_boolean(model.row.X, k) else function,
            offset=solution.offset.value,
            scale=model.scale,
            span=self._seen.span(k) if function.kind == "linear" else None,
            measure_name=self.measure_.in_words(),
            order=frames.level_order(model.row.X, k),
            missing_seen=k in self._seen.with_missing,
        )
        return curve if output is None else curve.select(output)

    def _curved(self, feature: Any) -> tuple[int, int]:
        """Return the positions of a column and of its attribution."""
        groups, names = self._attributions.names, self._model.names
        if isinstance(feature, Hashable) and feature in groups and feature not in names:
            raise ValueError(f"{feature!r} is a group, and only single columns have curves")
        k = position(feature, names, "curve")
        having = [a for a, columns in enumerate(self._attributions) if k in columns]
        a = min(having, key=lambda a: len(self._attributions[a]))
        if len(self._attributions[a]) > 1:
            raise ValueError(
                f"column {feature!r} belongs to the group {groups[a]!r}, and only single columns "
                "have curves"
            )
        return k, a

    def _evaluated(self, k: int, integrate: Callable[..., Any]) -> ColumnFunction:
        """Return a function of a column that is evaluated on demand."""
        levels = self._model.pieces.level_values(k)
        if levels is not None:
            return EvaluatedLevels(integrate, *levels)
        return Evaluated(integrate, self._seen.points[k])

    def describe(self) -> str:
        """Return a few lines about the model, the engines and their cost."""
        check_is_fitted(self)
        pieces = self.pieces_
        options = replace(self._options(), error=self._solved.error)
        lines = [
            f"model: {models.in_words(self._model.output.estimator)}",
            f"explains: {models.output_in_words(self._model.scale, self.output_names_)}",
            f"read as: {pieces.describe()}",
            f"measure: {self.measure_.in_words()}, {self.measure_!r}",
            *(term.describe(pieces, self._attributions, options) for term in self._terms),
            *(f"note: {note}" for note in self.notes_),
        ]
        return "\n".join(lines)

    @property
    def pieces_(self) -> Pieces:
        """The model as pieces; read again when needed, never pickled."""
        check_is_fitted(self)
        return self._model.pieces

    @property
    def column_names_(self) -> list[Any]:
        """The labels of the raw columns, in the order of `fit`."""
        check_is_fitted(self)
        return list(self._model.names)

    @property
    def n_background_(self) -> int:
        """The number of background rows of positive weight."""
        check_is_fitted(self)
        return self._seen.n_rows

    @property
    def notes_(self) -> list[str]:
        """Notes about columns whose effects the measure cannot separate."""
        check_is_fitted(self)
        pairs = {pair for term in self._terms for pair in term.measure.dependent_}
        return [dependent_in_words(pairs, self._model.names)] if pairs else []

    @property
    def refuted_(self) -> str | None:
        """Why the model is a black box although it could be read, or None."""
        check_is_fitted(self)
        return self._model.refuted

    @property
    def spread_(self) -> np.ndarray | None:
        """The standard deviation of f over the background, (k,), if values are approximate."""
        check_is_fitted(self)
        return self._solved.spread

    @property
    def column_ranges_(self) -> dict[Any, tuple[float, float]]:
        """The range of the background in each column of numbers whose values are kept."""
        check_is_fitted(self)
        model, seen = self._model, self._seen
        spans = {k: seen.span(k) for k in seen.points if frames.is_number(model.row.X, k)}
        return {model.names[k]: span for k, span in spans.items() if span is not None}

    @property
    def _solved(self) -> Solution:
        assert self._solution is not None
        return self._solution

    @property
    def _terms(self) -> list[Term]:
        """The terms of the measure, without those that only carry references."""
        return self._solved.terms[: self._n_terms]

    def _fit_measure(self, X: Any, weights: np.ndarray) -> Callable[..., Measure]:
        """Return the function that fits a measure to rows, for these or other attributions."""
        background = Background(X, weights, self._model.pieces.levels)
        # an array has a row for columns of levels too; a dict that names one is a mistake
        domain = {
            k: side
            for k, side in self._domain.items()
            if isinstance(self.domain, dict) or not background.levels[k]
        }

        def fit(measure: Measure, attributions: Attributions = self._attributions) -> Measure:
            if measure.needs_partition:
                _, attributions = attributions.partitions()[0]
            return measure.fit(background, None, domain, attributions)

        return fit

    def _columns_without_table(self) -> list[int]:
        """Return the columns whose curves are shown at the values of the background."""
        if any(term.engine.kind is Pieces or term.engine.smooth for term in self._plan):
            return list(range(len(self._model.names)))
        return self._model.pieces.without_table()

    def _rows(self, X: Any) -> Any:
        """Validate rows, and convert them to the dtypes of the background where possible."""
        return self._model.as_background(check_X(self, X, reset=False))

    def _publish(self, prepared: list[Term]) -> None:
        """Solve the prepared terms, and set the public attributes."""
        pieces = self._model.pieces
        self._solution = solve(pieces, prepared, self._attributions, self._options())
        fitted = [(term.coefficient, term.measure) for term in self._terms]
        whole = len(fitted) == 1 and fitted[0][0] == 1.0
        self.measure_ = fitted[0][1] if whole else LinearCombination(fitted)
        self.engine_ = tuple(term.engine.name for term in self._terms)
        self.exact_ = self._solved.is_exact
        self.base_value_ = _one_output(self._solved.base_value)
        self.output_names_ = list(self._model.output.names)

    def _options(self) -> RunOptions:
        return RunOptions(
            self.n_jobs, self.verbose, self.tol, max_evals=self.max_evals, seed=self._seed,
            engine=self.engine,
        )  # fmt: skip

    def _values(self, X: Any, chosen: Any) -> Values:
        """Return the values of some attributions, (n, g, k), with errors and offsets."""
        model = self._model
        integrated = any(self._solved.needs_pieces(a) for a in chosen)
        pieces = model.pieces if integrated else None

        def values(block: slice) -> Values:
            return self._block_values(frames.take_rows(X, block), pieces, chosen)

        if model.grid is None:  # all rows at once, as equal values share evaluations
            result = values(slice(len(X)))
        else:
            # engines that integrate use the workers themselves
            n_jobs = 1 if integrated else self.n_jobs
            result = Values.joined(in_order(values, model.blocks(X), n_jobs), len(X))
        self._warn_unconverged(result.error)
        return result

    def _block_values(self, X: Any, pieces: Pieces | None, chosen: Any) -> Values:
        pieces, rows = self._model.encode(X, pieces)
        return self._solved.values(pieces, rows, self._attributions, chosen, self._options())

    def _at_values(self, a: int, k: int, values: Any) -> np.ndarray:
        """Return an attribution of one column at raw values, (n, n_outputs), by integrating it."""
        if len(values) == 0:  # the background has no values
            return np.empty((0, len(self.output_names_)))
        result = self._block_values(self._model.rows_with(k, values), self._model.pieces, [a])
        self._warn_unconverged(result.error)
        return result.values[:, 0]

    def _support(self, X: Any, chosen: list[int]) -> np.ndarray | None:
        """Return the effective number of rows behind each value, the least of all terms."""
        result = None
        for term in self._terms:
            for i, a in enumerate(chosen):
                support = term.support(X, a) if term.coefficient else None
                if support is not None:
                    if result is None:
                        result = np.full((len(X), len(chosen)), np.inf)
                    result[:, i] = np.minimum(result[:, i], support)
        return result

    def _warn_unconverged(self, errors: np.ndarray | None) -> None:
        """Warn about values that stopped at max_evals with a standard error above tol."""
        if errors is None:
            return
        sizes = errors / self._solved.spread  # (n, g, k)
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

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        known = signature(type(self)).parameters
        changed = [
            # tables are shown by their shape
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


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    return check_weights(_check_sample_weight(sample_weight, X, dtype=np.float64), len(X))


def _one_output(array: np.ndarray | None) -> Any:
    """Return an array without its last axis, the outputs, if there is one output."""
    if array is None or array.shape[-1] > 1:
        return array
    return float(array[0]) if array.ndim == 1 else array[..., 0]
