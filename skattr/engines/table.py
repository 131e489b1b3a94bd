"""All engines in order of preference: each term gets the first one that can integrate it."""

from __future__ import annotations

from itertools import chain
from typing import Any

from skattr._utils.messages import brief
from skattr.engines.addends import Addends
from skattr.engines.additive.additive import AdditiveTerms
from skattr.engines.additive.additive_coalitions import AdditiveCoalitions
from skattr.engines.additive.additive_pairs import AdditivePairs
from skattr.engines.additive.affine import AffineMeans
from skattr.engines.additive.binned_additive import BinnedAdditive
from skattr.engines.base import Engine, RunOptions
from skattr.engines.boxes.binned_rows import BinnedRows
from skattr.engines.boxes.box_coalitions import BoxCoalitions
from skattr.engines.boxes.box_interactions import BoxInteractions
from skattr.engines.boxes.box_mixture import BoxMixture
from skattr.engines.boxes.box_products import BoxProducts
from skattr.engines.boxes.increments import Increments
from skattr.engines.boxes.one_violation import OneViolation
from skattr.engines.boxes.pair_products import PairProducts
from skattr.engines.boxes.product_coalitions import ProductCoalitions
from skattr.engines.boxes.product_interactions import ProductInteractions
from skattr.engines.boxes.replaced_columns import RemovalOfBoxes
from skattr.engines.boxes.two_violations import TwoViolations
from skattr.engines.evaluation.accumulated import AccumulatedEffects
from skattr.engines.evaluation.enumerated_coalitions import EnumeratedCoalitions, too_many
from skattr.engines.evaluation.enumerated_interactions import EnumeratedInteractions
from skattr.engines.evaluation.evaluation import Evaluation
from skattr.engines.evaluation.finite_grid import FiniteGrid
from skattr.engines.evaluation.finite_sum import FiniteSum
from skattr.engines.evaluation.quasi_monte_carlo import QuasiMonteCarlo
from skattr.engines.evaluation.riemann import Riemann
from skattr.engines.evaluation.sampled_coalitions import SampledCoalitions
from skattr.engines.evaluation.sampled_interactions import SampledInteractions
from skattr.engines.linked.linked_boxes import LinkedBoxes
from skattr.engines.linked.linked_margins import LinkedMargins
from skattr.engines.linked.linked_removal import LinkedRemoval
from skattr.engines.pair_differences import EstimatedDifferences, ExactDifferences
from skattr.engines.products.binned_products import BinnedProducts
from skattr.engines.products.bump_coalitions import BumpCoalitions
from skattr.engines.products.bump_interactions import BumpInteractions
from skattr.engines.products.mixed_products import MixedProducts
from skattr.engines.products.products import ProductTerms
from skattr.engines.relu.lines import Lines
from skattr.engines.relu.one_layer_normal import OneLayerNormal
from skattr.engines.relu.one_layer_uniform import OneLayerUniform
from skattr.engines.relu.polytopes import Polytopes
from skattr.measures import views
from skattr.measures.base import Measure
from skattr.pieces import Pieces

BOXES = (
    OneViolation(), BinnedRows(), BoxProducts(), BoxMixture(), Increments(),
    BoxCoalitions(), ProductCoalitions(), TwoViolations(), PairProducts(), RemovalOfBoxes(),
)  # fmt: skip
ADDITIVE = (AdditiveTerms(), BinnedAdditive(), AffineMeans(), AdditiveCoalitions(), AdditivePairs())
PRODUCTS = (ProductTerms(), BinnedProducts(), MixedProducts(), BumpCoalitions())
RELU = (OneLayerNormal(), OneLayerUniform(), Polytopes(), Lines())
INTERACTIONS = (BoxInteractions(), ProductInteractions(), BumpInteractions())
LINKED = (LinkedBoxes(), LinkedMargins(), LinkedRemoval())
ONE_KIND: tuple[Engine, ...] = (*BOXES, *ADDITIVE, *PRODUCTS, *RELU, *LINKED, *INTERACTIONS)
SUMMABLE = tuple(e for e in ONE_KIND if e.always_finishes and set(e.views) & set(Addends.views))
ANY_MODEL = (
    FiniteSum(), AccumulatedEffects(), Evaluation(), FiniteGrid(), Riemann(), QuasiMonteCarlo(),
)  # fmt: skip
COALITIONS = (
    EnumeratedCoalitions(), SampledCoalitions(), EnumeratedInteractions(), SampledInteractions(),
)  # fmt: skip
OF_VALUES: tuple[Engine, ...] = (*ONE_KIND, Addends(SUMMABLE), *ANY_MODEL, *COALITIONS)
PAIRS = (ExactDifferences(OF_VALUES), EstimatedDifferences(OF_VALUES))
ENGINES: tuple[Engine, ...] = (*OF_VALUES, *PAIRS)
INTERACTIONS_OF = {  # engines of Shapley and Banzhaf values → of their interaction indices
    "box_coalitions": "box_interactions",
    "product_coalitions": "product_interactions",
    "additive_coalitions": "additive_pairs",
    "bump_coalitions": "bump_interactions",
    "enumerated_coalitions": "enumerated_interactions",
}


def engine_table() -> str:
    """Return a table of all engines: the pieces and views each needs, and its results.

    Examples
    --------
    >>> print(engine_table().splitlines()[2].split("|")[1].strip())
    one_violation
    """
    rows = [("engine", "pieces", "view of μ", "gives")]
    for engine in ENGINES:
        kind = "any" if engine.kind is Pieces else engine.kind.__name__
        rows.append((engine.name, kind, ", ".join(engine.views), engine.gives))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def candidates(engine: Any) -> tuple[tuple[Engine, ...], bool]:
    """Return the engines to try, in order, and whether the user asked for the first one."""
    if isinstance(engine, Engine):
        return (engine, *ENGINES), True
    name = engine if isinstance(engine, str) else None
    if name in ("auto", "exact"):
        return tuple(e for e in ENGINES if name == "auto" or e.exact), False
    named = [e for e in ENGINES if e.name == name]
    if not named:
        first = (BOXES[0], ADDITIVE[0], PRODUCTS[0], *ANY_MODEL, *COALITIONS)
        names = ", ".join(e.name for e in first if not is_of_pairs(e))
        raise ValueError(
            f"engine must be 'auto', 'exact', an Engine or its name, got {brief(engine)}; names "
            f"are {names} and more: print(skattr.engines.engine_table())"
        )
    return (*named, *ENGINES), True


def is_of_pairs(engine: Engine) -> bool:
    """Return whether an engine integrates pairs of attributions only."""
    return set(engine.views) <= set(views.PAIRS)


def engine_of_pairs(engine: Any, measures: list[Measure]) -> Any:
    """Return the engine for pairs if the user asked for one of single values.

    Parameters
    ----------
    engine : as in `MeasureExplainer`
    measures : list of Measure
        Those of the pairs.
    """
    if isinstance(engine, str) and engine in ("auto", "exact"):
        return engine
    (first, *_), _ = candidates(engine)
    if any(set(first.views) & set(measure.views) for measure in measures):
        return engine
    if isinstance(first, SampledCoalitions):
        return SampledInteractions(first.replicates)
    if first.name in INTERACTIONS_OF:
        return INTERACTIONS_OF[first.name]
    kind = ExactDifferences if first.exact else EstimatedDifferences
    return kind((first, *OF_VALUES))


def choose(
    engine: Any, pieces: Pieces, measures: list[Measure], options: RunOptions
) -> list[Engine]:
    """Choose an engine for each measure; a named engine must suit at least one of them.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> from skattr.measures import PartialDependence
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    >>> explainer = MeasureExplainer(LinearRegression().fit(X, [1.0, 2.0, 3.0])).fit(X)
    >>> measure = PartialDependence().fit(X)
    >>> [engine.name for engine in choose("auto", explainer.pieces_, [measure], RunOptions())]
    ['additive']
    """
    order, named = candidates(engine)
    order = tuple(e for e in order if e.name not in options.without)
    chosen = []
    for measure in measures:
        best = _best(order, named, pieces, measure, options)
        if best is None:
            raise ValueError(_no_engine(engine, pieces, measure, options))
        chosen.append(best)
    if named and order[0] not in chosen:
        reasons = "; ".join(f"{each!r}: {order[0].refuses(pieces, each)}" for each in measures)
        raise ValueError(f"engine={order[0].name!r} cannot integrate any term: {reasons}")
    return chosen


def _best(
    order: tuple, named: bool, pieces: Pieces, measure: Measure, options: RunOptions
) -> Engine | None:
    """Return the engine asked for, the first preferred one, or the first that can be used."""
    if named and order[0].suits(pieces, measure):
        return order[0]
    usable = (e for e in order if e.suits(pieces, measure))
    first = next(usable, None)
    for engine in () if first is None else chain([first], usable):
        if engine.why_not_preferred(pieces, measure, options) is None:
            return engine
    return first


def _no_engine(engine: Any, pieces: Pieces, measure: Measure, options: RunOptions) -> str:
    what = "exact engine" if engine == "exact" else "engine"
    near = [e for e in ENGINES if e.kind is not Pieces and isinstance(pieces, e.kind)]
    reasons = "".join(f"{e.name}: {e.refuses(pieces, measure)}\n" for e in near)
    return (
        f"there is no {what} for {measure!r} on {pieces.describe()}. The engines are:\n"
        f"{engine_table()}\n{reasons}"
        f"{measure!r} has the view {', '.join(measure.views)}; use {_other(measure, options)}, or "
        "a model that is read as boxes, as an additive model or as a sum of products."
    )


def _other(measure: Any, options: RunOptions) -> str:
    """Return measures that are exact on more models, in words."""
    if set(measure.views).isdisjoint(views.COALITIONS):
        return "a measure with another view (PartialDependence has rows)"
    name, rows = type(measure).__name__, len(measure.background_)
    inner = " or ".join(f"{name}({each})" for each in ("PartialDependence()", "Conditional()"))
    reason = too_many(measure.n_players_, rows, options)
    return inner if reason is None else f"{inner} (there {reason})"
