"""The dispatch: all engines in order of preference. The first that can serve a term does."""

from __future__ import annotations

from itertools import chain
from typing import Any

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
from skattr.messages import brief
from skattr.pieces import Pieces

BOXES = (OneViolation(), BinnedRows(), BoxProducts(), BoxMixture(), Increments())
ADDITIVE = (AdditiveTerms(), BinnedAdditive(), AffineMeans())
PRODUCTS = (ProductTerms(), BinnedProducts(), MixedProducts())
RELU = (OneLayerNormal(), OneLayerUniform(), Polytopes(), Lines())
# of rows and of laws, whose cost is known before they run
SUMMABLE = (*BOXES[:3], *ADDITIVE[:2], *PRODUCTS[:2], RELU[-1])
ANY_MODEL = (FiniteSum(), Evaluation(), FiniteGrid(), Riemann(), QuasiMonteCarlo())
ENGINES: tuple[Engine, ...] = (*BOXES, *ADDITIVE, *PRODUCTS, *RELU, Addends(SUMMABLE), *ANY_MODEL)


def engine_table() -> str:
    """Return a table of all engines: what each needs and gives."""
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
    """Return the engines to try in order, and whether the first was asked for by the user."""
    if isinstance(engine, Engine):
        return (engine, *ENGINES), True
    name = engine if isinstance(engine, str) else None
    if name in ("auto", "exact"):
        return tuple(e for e in ENGINES if name == "auto" or e.exact), False
    named = [e for e in ENGINES if e.name == name]
    if not named:
        names = ["auto", "exact", *(e.name for e in ENGINES)]
        raise ValueError(f"engine={brief(engine)} is not known; it is one of {names} or an Engine")
    return (*named, *ENGINES), True


def choose(
    engine: Any, pieces: Pieces, measures: list[Measure], options: RunOptions
) -> list[Engine]:
    """Choose an engine for each measure; a named engine must serve at least one of them."""
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
        raise ValueError(f"engine={order[0].name!r} serves no term of the measure ({reasons})")
    return chosen


def _best(
    order: tuple, named: bool, pieces: Pieces, measure: Measure, options: RunOptions
) -> Engine | None:
    """Return the engine that was asked for, the first that suits, or the first that can serve."""
    if named and order[0].refuses(pieces, measure) is None:
        return order[0]
    able = (e for e in order if e.refuses(pieces, measure) is None)
    first = next(able, None)
    for engine in () if first is None else chain([first], able):
        if engine.suits(pieces, measure, options) is None:
            return engine
    return first


def _no_engine(engine: Any, pieces: Pieces, measure: Measure) -> str:
    what = "exact engine" if engine == "exact" else "engine"
    near = [e for e in ENGINES if e.kind is not Pieces and isinstance(pieces, e.kind)]
    reasons = "".join(f"{e.name}: {e.refuses(pieces, measure)}\n" for e in near)
    return (
        f"there is no {what} for {measure!r} on {pieces.describe()}. There are:\n"
        f"{engine_table()}\n{reasons}"
        f"{measure!r} has the view {', '.join(measure.views)}; take a measure with another view "
        "(PartialDependence has rows) or a model that is read as boxes, as an additive model or "
        "as a sum of products."
    )
