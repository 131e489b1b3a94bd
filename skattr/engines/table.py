"""All engines in order of preference: each term gets the first one that can integrate it."""

from __future__ import annotations

from itertools import chain
from typing import Any

from skattr._utils.messages import brief
from skattr.engines.addends import Addends
from skattr.engines.additive.additive import AdditiveTerms
from skattr.engines.additive.affine import AffineMeans
from skattr.engines.additive.binned_additive import BinnedAdditive
from skattr.engines.base import Engine, RunOptions
from skattr.engines.boxes.binned_rows import BinnedRows
from skattr.engines.boxes.box_mixture import BoxMixture
from skattr.engines.boxes.box_products import BoxProducts
from skattr.engines.boxes.increments import Increments
from skattr.engines.boxes.one_violation import OneViolation
from skattr.engines.evaluation.evaluation import Evaluation
from skattr.engines.evaluation.finite_grid import FiniteGrid
from skattr.engines.evaluation.finite_sum import FiniteSum
from skattr.engines.evaluation.quasi_monte_carlo import QuasiMonteCarlo
from skattr.engines.evaluation.riemann import Riemann
from skattr.engines.products.binned_products import BinnedProducts
from skattr.engines.products.mixed_products import MixedProducts
from skattr.engines.products.products import ProductTerms
from skattr.engines.relu.lines import Lines
from skattr.engines.relu.one_layer_normal import OneLayerNormal
from skattr.engines.relu.one_layer_uniform import OneLayerUniform
from skattr.engines.relu.polytopes import Polytopes
from skattr.measures.base import Measure
from skattr.pieces import Pieces

BOXES = (OneViolation(), BinnedRows(), BoxProducts(), BoxMixture(), Increments())
ADDITIVE = (AdditiveTerms(), BinnedAdditive(), AffineMeans())
PRODUCTS = (ProductTerms(), BinnedProducts(), MixedProducts())
RELU = (OneLayerNormal(), OneLayerUniform(), Polytopes(), Lines())
# engines of rows and of laws whose cost is known before they run: addends use them
SUMMABLE = (*BOXES[:3], *ADDITIVE[:2], *PRODUCTS[:2], RELU[-1])
ANY_MODEL = (FiniteSum(), Evaluation(), FiniteGrid(), Riemann(), QuasiMonteCarlo())
ENGINES: tuple[Engine, ...] = (*BOXES, *ADDITIVE, *PRODUCTS, *RELU, Addends(SUMMABLE), *ANY_MODEL)


def engine_table() -> str:
    """Return a table of all engines: the pieces and views each needs, and its results."""
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
        names = ["auto", "exact", *(e.name for e in ENGINES)]
        raise ValueError(f"engine must be one of {names} or an Engine, got {brief(engine)}")
    return (*named, *ENGINES), True


def choose(
    engine: Any, pieces: Pieces, measures: list[Measure], options: RunOptions
) -> list[Engine]:
    """Choose an engine for each measure; a named engine must suit at least one of them."""
    order, named = candidates(engine)
    order = tuple(e for e in order if e.name not in options.without)
    chosen = []
    for measure in measures:
        best = _best(order, named, pieces, measure, options)
        if best is None:
            raise ValueError(_no_engine(engine, pieces, measure))
        chosen.append(best)
    if named and order[0] not in chosen:
        reasons = "; ".join(f"{each!r}: {order[0].refuses(pieces, each)}" for each in measures)
        raise ValueError(f"engine={order[0].name!r} cannot integrate any term: {reasons}")
    return chosen


def _best(
    order: tuple, named: bool, pieces: Pieces, measure: Measure, options: RunOptions
) -> Engine | None:
    """Return the engine asked for, the first preferred one, or the first that can be used."""
    if named and order[0].refuses(pieces, measure) is None:
        return order[0]
    usable = (e for e in order if e.refuses(pieces, measure) is None)
    first = next(usable, None)
    for engine in () if first is None else chain([first], usable):
        if engine.why_not_preferred(pieces, measure, options) is None:
            return engine
    return first


def _no_engine(engine: Any, pieces: Pieces, measure: Measure) -> str:
    what = "exact engine" if engine == "exact" else "engine"
    near = [e for e in ENGINES if e.kind is not Pieces and isinstance(pieces, e.kind)]
    reasons = "".join(f"{e.name}: {e.refuses(pieces, measure)}\n" for e in near)
    return (
        f"there is no {what} for {measure!r} on {pieces.describe()}. The engines are:\n"
        f"{engine_table()}\n{reasons}"
        f"{measure!r} has the view {', '.join(measure.views)}; use a measure with another view "
        "(PartialDependence has rows), or a model that is read as boxes, as an additive model or "
        "as a sum of products."
    )
