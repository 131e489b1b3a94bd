"""MeasureExplainer: the estimator that fits a measure and explains rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skattr._files.versions import check_version
from skattr._inputs import frames, models
from skattr._inputs.checks import (
    Domain,
    attributions,
    check_parameters,
    check_X,
    positions,
    realign,
    takes_missing,
)
from skattr._inputs.pairs import read_pairs
from skattr._utils.messages import brief, check_flag
from skattr._utils.parameters import changed_parameters
from skattr._version import __version__
from skattr.curves import Curve, Curves, Surface
from skattr.engines import Engine, RunOptions
from skattr.explanation import Explanation
from skattr.measures import Measure, as_measure
from skattr.measures.background import drop_zero_weights, read_weights
from skattr.measures.base import Terms, as_terms, copy_terms
from skattr.pieces import Pieces
from skattr.solution.column_curves import column_curve
from skattr.solution.complements import solve_complements
from skattr.solution.description import describe, notes
from skattr.solution.explanations import explain_rows, join_singles, one_output
from skattr.solution.fitting import Fitting
from skattr.solution.ice import ice
from skattr.solution.read_model import ReadModel
from skattr.solution.solution import Solution
from skattr.solution.surfaces import column_pair, pair_surface

__all__ = ["MeasureExplainer"]


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
        Number of workers, as in joblib. The result does not depend on it, to the last bit, nor on
        which rows are explained together; only models that multiply matrices, if they have to be
        evaluated, may return another last bit for a row in other company (as their `predict` does).
    device : str, optional
        The device of a torch module, "cpu" or "cuda"; the module must already be there.
    verbose : int, optional
        Whether to show progress: 1 always, 0 never; by default one bar with the column, the number
        of calls and the time left, once the model has been evaluated for more than three seconds.
    output_names : list of str, optional
        One name per output; by default the classes of a classifier, "prediction", or y0, y1, …
        Useful for torch modules and functions, which have no names.
    folds : int or "auto", default="auto"
        Number of folds into which the background is divided for `Explanation.background_error`, the
        error of values that comes from its finite number of rows; 0 for none. "auto" is 32 (or the
        number of rows, if there are fewer) where this takes little time, for main effects and
        partial dependence on trees, and none elsewhere; an integer asks for it everywhere.
        `describe` says which it is, and why. Folds are a hash of the position of each row, and do
        not depend on `random_state`.

    Attributes
    ----------
    estimator_ : the fitted model.
    measure_ : the fitted measure.
    engine_ : tuple of str, the engine of each term.
    exact_ : bool, whether every value is the integral up to rounding.
    base_value_ : float or array (k,), weighted mean of f over the background.
    spread_ : array (k,), the standard deviation of f over the background, or None if exact.
    output_names_ : list of str.
    column_names_ : list, the labels of the raw columns.
    n_background_ : int, the number of background rows of positive weight.
    notes_ : list of str, about columns whose effects the measure cannot separate.
    refuted_ : str or None, why the model is a black box although it could be read.
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
        folds: int | str = "auto",
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
        self.folds = folds

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

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.base_value_
        3.0
        """
        measures, X, weights = self._begin(X, y, sample_weight)
        self._finish(self._fitting.fit(measures, X, weights, self._options()))
        return self

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
        if self.__sklearn_is_fitted__():
            X = self._rows(X)
            weights = read_weights(sample_weight, X)
            solution = self._fitting.fit_next(X, weights, self._options())
        else:
            measures, X, weights = self._begin(X, y, sample_weight)
            solution = self._fitting.fit_first(measures, X, weights, self._options())
        self._finish(solution)
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

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.explain(X).values
        array([[0., 1.],
               [4., 3.]])
        >>> explainer.explain(X, features=["x1"]).values
        array([[1.],
               [3.]])
        """
        check_is_fitted(self)
        check_flag("predictions", predictions)
        names = list(self._attributions.names)
        chosen = positions(features, names, "features", "attribution")
        rows, options = self._aligned(X), self._options()
        sums = self._fitting.fold_sums_of(self._solution, options)
        return explain_rows(self._solution, chosen, rows, X, options, sums, predictions)

    def explain_pairs(self, X: Any, *, pairs: Any = None, predictions: bool = True) -> Explanation:
        """Return the attributions of pairs: what two columns do together beyond each alone.

        For a measure μ the pair (j, k) gets ∫ f dμ_jk - ∫ f dμ_j - ∫ f dμ_k + ∫ f d(reference);
        for `Shapley` and `Banzhaf` the interaction index. The first call prepares the pairs, and
        later calls use the result.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.
        pairs : list of (label, label), or label, optional
            The pairs of columns or groups, or one of them: all pairs with it; all by default.
        predictions : bool, default=True
            Whether to also evaluate the model at the rows.

        Returns
        -------
        Explanation
            The names are tuples, in the order of the columns of X; `singles` is the explanation of
            single columns, and `to_matrix` joins both.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain_pairs(X).to_frame()
           (x0, x1)
        0       2.0
        1       2.0
        """
        check_is_fitted(self)
        wanted = read_pairs(pairs, self._attributions, self._model.names)
        singles = self.explain(X, predictions=predictions)
        rows, options = self._aligned(X), self._options()
        solution, chosen = self._fitting.solve_pairs(self._solution, wanted, options)
        sums = self._fitting.fold_sums_of(solution, options)
        values = explain_rows(solution, chosen, rows, X, options, sums)
        return join_singles(values, singles, solution)

    def transform(self, X: Any) -> np.ndarray:
        """Return the attributions as an array, (n, g), or (n, k·g) output by output.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.transform(X)
        array([[0., 1.],
               [4., 3.]])
        """
        check_is_fitted(self)
        chosen = range(len(self._attributions))
        values = self._solution.values(self._rows(X), chosen, self._options()).values
        return np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(len(values), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`, `output__feature` for several outputs.

        Parameters
        ----------
        input_features : list of str, optional
            Checked against those of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.get_feature_names_out()
        array(['x0', 'x1'], dtype=object)
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

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.curve("x0")([0.0, 1.0])
        array([-1.5,  1.5])
        """
        check_is_fitted(self)
        curve = column_curve(self._solution, self._fitting.seen, feature, self._options())
        return curve if output is None else curve.select(output)

    def ice(self, X: Any, feature: Any) -> Curves:
        """Return the prediction of each row as a function of one of its columns (ICE).

        On trees the curves have all their jumps, on ReLU networks all their knots. The weighted
        mean of the background's curves is partial dependence. They do not depend on the measure.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.
        feature : label or int
            The column, by name or, if no column has that name, by position.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.ice(X[:2], "x0")([0.0, 1.0])
        array([[0., 2.],
               [1., 5.]])
        """
        check_is_fitted(self)
        return ice(self._solution, self._fitting.seen, self._aligned(X), X, feature)

    def surface(self, a: Any, b: Any, output: Any = None) -> Surface:
        """Return the exact attribution of two columns together as a function of their values.

        Parameters
        ----------
        a, b : label or int
            The columns, by name or, if no column has that name, by position.
        output : str or int, optional
            One of several outputs; all by default.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.surface("x0", "x1").grid([1.0, 2.0], [5.0, 6.0, 7.0])
        array([[ 5.,  6.,  7.],
               [10., 12., 14.]])
        """
        check_is_fitted(self)
        options, pairs = self._options(), column_pair(a, b, self._solution)
        solution, (p,) = self._fitting.solve_pairs(self._solution, pairs, options)
        surface = pair_surface(self._solution, self._fitting.seen, solution, p, (a, b), options)
        return surface if output is None else surface.select(output)

    def with_measure(self, measure: Measure | str, *, engine: str | Engine = "auto") -> Self:
        """Return an explainer of another measure, fitted to the same background.

        Parameters
        ----------
        measure : Measure or str
            The measure, or its name.
        engine : str or Engine, default="auto"
            The engine of the new explainer.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.with_measure("shapley").explain(X).to_frame()
            x0   x1
        0 -2.0 -1.0
        1  2.0  1.0
        """
        check_is_fitted(self)
        if not self.keeps_background_:
            raise ValueError(
                "with_measure needs the background, of which partial_fit keeps no rows; use fit"
            )
        X, weights = self._fitting.pairs.rows()
        changed = {"estimator": self.estimator_, "measure": measure, "engine": engine}
        explainer = type(self)(**{**self.get_params(deep=False), **changed})
        return explainer.fit(X, sample_weight=weights)

    def describe(self) -> str:
        """Return a few lines about the model, the engines and their cost."""
        check_is_fitted(self)
        return describe(self._solution, self._options(), self._fitting.pairs.solutions)

    @property
    def pieces_(self) -> Pieces:
        """The model as pieces; read again when needed, never pickled."""
        check_is_fitted(self)
        return self._model.pieces

    @property
    def keeps_background_(self) -> bool:
        """Whether the background rows are kept, which pairs need; `partial_fit` keeps none."""
        check_is_fitted(self)
        return self._fitting.keeps_rows

    @property
    def column_ranges_(self) -> dict[Any, tuple[float, float]]:
        """The range of the background in each column of numbers whose values are kept."""
        check_is_fitted(self)
        return self._fitting.seen.ranges(self._model)

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> tuple[Terms, Any, np.ndarray]:
        """Check everything, and read the model with the first rows of the background.

        Returns the unfitted terms of the measure, the rows of positive weight, and their weights.
        """
        check_parameters(self)
        self._forget()
        models.check(self.estimator)
        measures = copy_terms(as_measure(self.measure))
        X = check_X(self, X, reset=True)
        weights = read_weights(sample_weight, X)
        names = frames.labels(X)
        self.estimator_ = models.fitted(self.estimator, X, y, sample_weight)
        models.check_width(self.estimator_, names)
        self._attributions = attributions(self.groups, names)
        domain = Domain.read(self.domain, names)
        X, weights = drop_zero_weights(X, weights)
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        self._model = ReadModel(self.estimator_, X, self.output, self.output_names)
        self._fitting = Fitting(self._model, self._attributions, domain, self.folds)
        return measures, X, weights

    def _forget(self) -> None:
        """Delete the fitted state, so that a fit that fails leaves none of it behind."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_solution"]:
            delattr(self, name)

    def _finish(self, solution: Solution) -> None:
        """Set the solution and the public attributes."""
        self._solution = solution
        self.measure_ = solution.measure
        self.engine_ = solution.engine_names
        self.exact_ = solution.is_exact
        self.base_value_ = one_output(solution.base_value)
        self.spread_ = solution.spread
        self.output_names_ = list(self._model.output.names)
        self.column_names_ = list(self._model.names)
        self.n_background_ = self._fitting.seen.n_rows
        self.notes_ = notes(solution)
        self.refuted_ = self._model.refuted

    def _complements(self) -> Callable[[Any], np.ndarray]:
        """Return the function of rows that computes, for each attribution, that of all others."""
        options = self._options()
        kept, domain = self._fitting.pairs, self._fitting.domain
        solution = solve_complements(self._solution, kept, options, domain)
        chosen = range(len(self._attributions))
        return lambda X: solution.values(self._aligned(X), chosen, options).values

    def _aligned(self, X: Any) -> Any:
        """Validate rows whose columns may be in another order."""
        return self._rows(realign(X, self._model.names) if self._model.named else X)

    def _rows(self, X: Any) -> Any:
        """Validate rows, and convert them to the dtypes of the background where possible."""
        return self._model.as_background(check_X(self, X, reset=False))

    def _options(self) -> RunOptions:
        return RunOptions(
            self.n_jobs, self.verbose, self.tol, max_evals=self.max_evals, seed=self._seed,
            engine=self.engine,
        )  # fmt: skip

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        changed = [
            # tables are shown by their shape
            f"{name}={brief(value) if len(getattr(value, 'shape', ())) else repr(value)}"
            for name, value in changed_parameters(self).items()
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_skattr_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_version(state.pop("_skattr_version", None), type(self).__name__)
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solution")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags
