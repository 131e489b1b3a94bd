"""Tables of what is exact, made from the code when the site is built.

`exactness-matrix` fits small models of every kind of pieces with every measure, and writes down
which engine the table of engines chose. `engine-table` is that table.
"""

import warnings
from collections.abc import Iterator

import numpy as np
from docutils import nodes
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from skattr import MeasureExplainer, measures
from skattr.engines import engine_table

N_COLUMNS = 6


def models() -> Iterator[tuple[str, object, str]]:
    """Yield the name, the fitted model and the output of each row of the matrix."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, N_COLUMNS))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    above = y > 0
    wide = MLPRegressor(hidden_layer_sizes=(8, 8), max_iter=30, random_state=0)
    narrow = MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, random_state=0)
    boosting = HistGradientBoostingClassifier(max_iter=5).fit(X, above)
    yield "trees, forests, boosting", RandomForestRegressor(3, max_depth=3).fit(X, y), "auto"
    yield "boosting, probabilities (behind a link)", boosting, "proba"
    yield "linear and additive models", LinearRegression().fit(X, y), "auto"
    yield "logistic regression, probabilities", LogisticRegression().fit(X, above), "proba"
    yield "RBF kernel machines", SVR().fit(X, y), "auto"
    yield "ReLU network, one hidden layer", narrow.fit(X, y), "auto"
    yield "ReLU network, two hidden layers", wide.fit(X, y), "auto"
    yield "any other model", KNeighborsRegressor().fit(X, y), "auto"


MEASURES = {
    "`PartialDependence()`": measures.PartialDependence(),
    "`Conditional()`": measures.Conditional(),
    '`Conditional("gaussian")`': measures.Conditional("gaussian"),
    '`Conditional("gmm")`': measures.Conditional("gmm"),
    "`ProductMarginal()`": measures.ProductMarginal(),
    "`Uniform()`": measures.Uniform(),
    "`Expectation()`": measures.Expectation(),
    "`Dirac()`": measures.Dirac(),
    "`Coefficient()`": measures.Coefficient(),
    "`ALE()`": measures.ALE(),
    "`Removal()`": measures.Removal(),
    "`MarginalEffect()`": measures.MarginalEffect(),
    "`Shapley()`": measures.Shapley(),
    "`Shapley(ProductMarginal())`": measures.Shapley(measures.ProductMarginal()),
    "`Shapley(Conditional())`": measures.Shapley(measures.Conditional()),
    "`Banzhaf()`": measures.Banzhaf(),
}


def chosen(model: object, output: str, measure: measures.Measure) -> str:
    """Return the engine that serves a model and a measure, and whether it is exact."""
    X = np.random.default_rng(1).normal(size=(60, N_COLUMNS))
    explainer = MeasureExplainer(model, measure, output=output, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer.fit(X)
    return f"{'exact' if explainer.exact_ else 'estimate'}, `{explainer.engine_[0]}`"


def matrix() -> str:
    """Return the matrix of measures × models as a table in Markdown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the networks do not converge, and need not
        columns = list(models())
    lines = ["| | " + " | ".join(name for name, *_ in columns) + " |", "|---" * (len(columns) + 1)]
    lines[1] += "|"
    for name, measure in MEASURES.items():
        cells = (chosen(model, output, measure) for _, model, output in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


class Matrix(SphinxDirective):
    """The matrix of models × measures."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return self.parse_text_to_nodes(matrix())


class Engines(SphinxDirective):
    """The table of engines."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return self.parse_text_to_nodes(engine_table())


def setup(app: Sphinx) -> dict:
    """Add both directives."""
    app.add_directive("exactness-matrix", Matrix)
    app.add_directive("engine-table", Engines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
