"""P(dy given X_j = x_j), learned from data (docs/mathematics.md, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.factors.laws import Normal
from skattr.measures.learned.bins import as_numbers
from skattr.measures.learned.copula import learn_copula
from skattr.measures.learned.dependence import dependent_columns
from skattr.measures.learned.full_mixture import learn_full_mixture
from skattr.measures.learned.gaussian import learn_gaussian
from skattr.measures.learned.mixture import learn_mixture
from skattr.measures.learned.row_weights import learn_rows
from skattr.measures.views import BinsView, MixtureView, NormalsView

BY_ROWS = ("kernel", "local_linear", "knn")
FAMILIES: dict[str, Any] = {"gaussian": learn_gaussian, "copula": learn_copula}
MIXTURES: dict[str, Any] = {"diagonal": learn_mixture, "full": learn_full_mixture}
ENOUGH = 5  # rows from which something can be learned


class Conditional(Measure):
    """P(dy given X_j = x_j): the mean of f over rows whose own value is near x_j.

    Its attribution is E[f(X) | X_j = x_j] [the paper's Table 1, row 1]. Choose it where columns are
    correlated: it never evaluates the model at points that do not exist. A column that the model
    ignores, but on which others depend, gets an attribution too. Nothing is tuned on the model.

    Parameters
    ----------
    estimator : {"kernel", "local_linear", "knn", "gaussian", "copula", "gmm"}
        How the law is learned.

        - "kernel": background rows with x_j put into them, weighted by how near the ranks of their
          own values are. Right for almost all data: numbers, levels and missing values of any law;
          it improves with the number of rows, and is invariant to increasing functions of a
          column.
        - "local_linear": the same rows with a linear correction. Right for numbers that are close
          to jointly Gaussian; weights may be negative.
        - "knn": the nearest rows, equally weighted. Right if a fixed number of real rows, which can
          be shown, should explain a value.
        - "gaussian": right if all columns are numbers, and jointly Gaussian; best with few rows.
        - "copula": right for numbers that are jointly Gaussian after a transformation of each
          column, such as the logarithm.
        - "gmm": a mixture of Gaussians with diagonal covariances, or full ones, chosen by BIC.
          Right for numbers that form clusters; with diagonal covariances it is exact on trees
          and RBF kernels, whatever the number of rows.

        The first three are exact on every model. The others take numbers without missing values
        only. They are exact on models that are affine in each column; "gaussian" and "gmm" on
        networks with one hidden layer of ReLUs, diagonal "gmm" on trees and on RBF kernel machines
        too; elsewhere their values have a standard error.
    bandwidth : float, optional
        Of "kernel" and "local_linear": half the width of the window, in standard deviations of a
        column that is made normal by its ranks; `inf` is partial dependence. Learned for each
        column by default, from how well it predicts the others (a hundred of them, chosen by a
        hash of their names, if there are more).
    n_neighbors : int, optional
        Of "knn". Learned for each column by default. All rows of a bin are equally near: raise
        `n_bins` for very few neighbours.
    n_components : int, optional
        Of "gmm". Learned by default.
    covariance : {"diagonal", "full"}, default="diagonal"
        Of "gmm": whether columns are independent inside a component. Full covariances describe
        clusters of any shape with fewer components, and take many more rows than columns.
    n_bins : int, default=200
        Of "kernel", "local_linear" and "knn": number of bins of ranks on which weights are
        constant. Levels beyond that number, the rarest, share one.

    Attributes
    ----------
    bandwidth_ : array (d,)
        The bandwidth of each column, `inf` where the others do not depend on it; for "knn" the
        share of rows. NaN for columns of levels and of few distinct numbers.
    smoothing_ : array (d,)
        The weight of rows with another level, against 1 for those with the same; NaN for others.
    support_ : list of d arrays
        The effective number of rows behind each bin of a column; the last two are "missing" and
        "any other".
    family_ : the learned law of "gaussian", "copula" and "gmm".

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> from skattr.measures import Conditional
    >>> X = np.repeat(np.arange(20.0), 2).reshape(-1, 2)  # two equal columns
    >>> explainer = MeasureExplainer(lambda X: X[:, 0], Conditional("knn", n_neighbors=1)).fit(X)
    >>> explainer.explain(X[3:5]).values
    array([[3., 3.],
           [4., 4.]])
    """

    needs_partition = True
    adds_up = False
    no_batches = "ranks, bandwidths and laws are learned from all rows together; use fit"
    no_folds = "its law is learned from all rows together, and has no sums over rows"
    effect = "conditional effect"

    def __init__(
        self,
        estimator: str = "kernel",
        *,
        bandwidth: float | None = None,
        n_neighbors: int | None = None,
        n_components: int | None = None,
        covariance: str = "diagonal",
        n_bins: int = 200,
    ) -> None:
        self.estimator = estimator
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.covariance = covariance
        self.n_bins = n_bins

    @property
    def adds_up_given_law(self) -> bool:  # type: ignore[override]
        """Whether the law gives weights to rows."""
        return self.estimator in BY_ROWS

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        """The views of the estimator."""
        self._check_parameters()  # engines ask for views first
        if self.estimator in BY_ROWS:
            return ("bins",)
        product = self.estimator == "gmm" and self.covariance == "diagonal"
        mixture = ("mixture",) if product else ()
        normals = ("normals",) if self.estimator in ("gaussian", "gmm") else ()
        return (*mixture, *normals, "centers", "transport")

    def _check_parameters(self) -> None:
        known = (*BY_ROWS, *FAMILIES, "gmm")
        if not isinstance(self.estimator, str) or self.estimator not in known:
            raise ValueError(f"estimator must be one of {known}, got {brief(self.estimator)}")
        serves = {"bandwidth": ("kernel", "local_linear"), "n_neighbors": ("knn",),
                  "n_components": ("gmm",)}  # fmt: skip
        for name, estimators in serves.items():
            if getattr(self, name) is not None and self.estimator not in estimators:
                raise ValueError(
                    f"{name} must be None for {self.estimator!r}: it belongs to {estimators}"
                )
        if not isinstance(self.covariance, str) or self.covariance not in MIXTURES:
            raise ValueError(
                f"covariance must be one of {tuple(MIXTURES)}, got {brief(self.covariance)}"
            )
        if self.covariance != "diagonal" and self.estimator != "gmm":
            raise ValueError(
                f"covariance must be 'diagonal' for {self.estimator!r}; only 'gmm' has others"
            )
        width = self.bandwidth
        number = isinstance(width, Real) and not isinstance(width, bool)
        if width is not None and not (number and float(width) > 0):
            raise ValueError(f"bandwidth must be positive, inf or None, got {brief(width)}")
        least = {"n_neighbors": 1, "n_components": 1, "n_bins": 2}
        for name, low in least.items():
            value = getattr(self, name)
            if value is None and name != "n_bins":
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
                raise ValueError(f"{name} must be an integer, at least {low}, got {brief(value)}")

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        if len(background) < ENOUGH:
            raise ValueError(
                f"{self!r} needs at least {ENOUGH} rows of positive weight, got "
                f"{len(background)}; use PartialDependence(), or more rows"
            )
        if self.estimator in BY_ROWS:
            self._learn_rows(background, attributions)
        else:
            self._learn_family(background)
        self.dependent_ = dependent_columns(background, attributions)

    def _learn_rows(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        self.rows_ = learn_rows(
            background, attributions, self.estimator, self.bandwidth, self.n_bins, self.n_neighbors
        )
        self._set_attributes()

    def _set_attributes(self) -> None:
        columns = self.rows_.columns
        ordered = np.array([column.bins.ordered for column in columns])
        learned = np.array([column.local for column in columns])
        self.bandwidth_ = np.where(ordered, learned, np.nan)
        self.smoothing_ = np.where(ordered, np.nan, learned)
        self.support_ = [column.support for column in columns]

    def _learn_family(self, background: Background) -> None:
        numbers = np.empty((len(background), len(background.names)))
        for k, name in enumerate(background.names):
            if background.levels[k] or not frames.is_number(background.X, k):
                raise ValueError(
                    f"Conditional({self.estimator!r}) needs numbers, but column {name!r} holds "
                    "levels or dates; Conditional('kernel') takes them"
                )
            numbers[:, k] = as_numbers(background.column(k), name)
            if not np.isfinite(numbers[:, k]).all():
                raise ValueError(
                    f"Conditional({self.estimator!r}) needs finite numbers, but column {name!r} "
                    "has missing or infinite ones; Conditional('kernel') takes them"
                )
        if self.estimator == "gmm":
            learn = MIXTURES[self.covariance]
            self.family_ = learn(numbers, background.weights, self.n_components)
        else:
            self.family_ = FAMILIES[self.estimator](numbers, background.weights)
        self.names_ = background.names

    def on_batch(self, background: Background) -> Self:
        """Return a measure with the same bins and bandwidths, and the rows of a batch."""
        batch = clone(self)
        batch.background_, batch.domain_ = background, self.domain_
        batch.rows_, batch.dependent_ = self.rows_.on(background), self.dependent_
        return batch

    def merge(self, other: Self) -> Self:
        """Return the measure of two batches."""
        both = copy(other)
        both.rows_ = self.rows_.merge(other.rows_)
        return both

    def finish(self) -> None:
        """Compute the weights of the rows of all batches."""
        if self.estimator in BY_ROWS:
            self.rows_ = self.rows_.settled()
            self._set_attributes()
            self.rows_ = self.rows_.released()

    def release(self) -> None:
        """Forget the background, and rows that only it needs."""
        super().release()
        if self.estimator in BY_ROWS:
            self.rows_ = self.rows_.released()

    @property
    def by_rows(self) -> str:  # type: ignore[override]
        """How it depends on rows: bins and bandwidths are held."""
        return "held" if self.estimator in BY_ROWS else ""

    def bins(self) -> BinsView:
        """Return the background, and the learned weights of its rows."""
        return BinsView(self.background_, self.rows_)

    def mixture(self) -> MixtureView:
        """Return the learned mixture, with normal laws."""
        family, names = self.family_, self.names_
        laws = [
            [Normal(m, s, name) for m, s, name in zip(means, scales, names, strict=True)]
            for means, scales in zip(family.means, family.scales, strict=True)
        ]
        return MixtureView(family, names, laws)

    def normals(self) -> NormalsView:
        """Return the learned law."""
        return NormalsView(self.family_, self.names_)

    def _numbers(self, X: Any, columns: tuple[int, ...]) -> np.ndarray:
        """Return some columns of X as numbers, (n, len(columns))."""
        numbers = np.empty((len(X), len(columns)))
        for i, k in enumerate(columns):
            numbers[:, i] = as_numbers(frames.column(X, k), self.names_[k])
        return numbers

    def centers(self, X: Any, columns: tuple[int, ...]) -> Any:
        """Return X with the other columns at their conditional means."""
        means = self.family_.center(self._numbers(X, columns), list(columns))
        others = {k: means[:, k] for k in range(means.shape[1]) if k not in columns}
        return frames.replaced(X, others)

    @property
    def n_uniforms(self) -> int:
        """Those of the learned law."""
        return self.family_.n_uniforms

    def transport(self, u: np.ndarray, x: Any, columns: tuple[int, ...]) -> tuple[Any, None]:
        """Return points of equal weight, which have the columns of x."""
        points = self.family_.points(u, self._numbers(x, columns)[0], list(columns))
        others = {k: points[:, k] for k in range(points.shape[1]) if k not in columns}
        return frames.replaced(frames.take_rows(x, np.zeros(len(u), np.intp)), others), None

    def support(self, X: Any, columns: tuple[int, ...]) -> np.ndarray:
        """Return (Σ π)² / Σ π² of the weights π of rows, or what the learned law says."""
        if self.estimator in BY_ROWS:
            return self.rows_.support(X, columns)
        return self.family_.support(self._numbers(X, columns), list(columns))

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()
