"""The dispatch: all engines in order of preference. The first that can serve a term does.

| engine            | pieces   | view of μ           | gives                                      |
|-------------------|----------|---------------------|--------------------------------------------|
| one_violation     | Boxes    | rows                | exact curves; groups                       |
| binned_rows       | Boxes    | bins                | exact curves; groups row by row            |
| box_products      | Boxes    | factors             | exact curves; groups                       |
| box_mixture       | Boxes    | mixture             | exact curves; groups                       |
| increments        | Boxes    | increments          | exact, row by row; groups                  |
| additive          | Additive | rows, factors       | exact; groups                              |
| binned_additive   | Additive | bins                | exact; groups row by row                   |
| affine            | Additive | centers             | exact, if all terms are affine; groups     |
| products          | Products | rows, factors       | exact; groups                              |
| binned_products   | Products | bins                | exact; groups row by row                   |
| mixed_products    | Products | mixture             | exact, if all columns are affine; groups   |
| one_layer_normal  | ReLU     | normals             | exact, if one hidden layer; groups         |
| one_layer_uniform | ReLU     | factors             | exact, if uniform and one layer; groups    |
| polytopes         | ReLU     | factors             | exact, if uniform and few columns; groups  |
| lines             | Relu…    | rows, bins          | exact curves; groups row by row            |
| addends           | Sum      | those of its parts  | exact; groups                              |
| finite_sum        | any      | rows, bins          | exact, one model call for a distinct value |
| evaluation        | any      | atoms               | exact, one evaluation an atom              |
| finite_grid       | any      | factors             | exact, if they have few values             |
| riemann           | any      | factors, density,   | approximate, with an error; auto takes it  |
|                   |          | increments          | for few columns                            |
| quasi_monte_carlo | any      | factors, transport, | approximate, with standard errors          |
|                   |          | draws               |                                            |
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from skattr.engines.addends import Addends
from skattr.engines.additive import AdditiveTerms
from skattr.engines.affine import AffineMeans
from skattr.engines.base import Engine, Jobs
from skattr.engines.binned_additive import BinnedAdditive
from skattr.engines.binned_products import BinnedProducts
from skattr.engines.binned_rows import BinnedRows
from skattr.engines.box_mixture import BoxMixture
from skattr.engines.box_products import BoxProducts
from skattr.engines.evaluation import Evaluation
from skattr.engines.finite_grid import FiniteGrid
from skattr.engines.finite_sum import FiniteSum
from skattr.engines.increments import Increments
from skattr.engines.lines import Lines
from skattr.engines.mixed_products import MixedProducts
from skattr.engines.one_layer_normal import OneLayerNormal
from skattr.engines.one_layer_uniform import OneLayerUniform
from skattr.engines.one_violation import OneViolation
from skattr.engines.polytopes import Polytopes
from skattr.engines.products import ProductTerms
from skattr.engines.quasi_monte_carlo import QuasiMonteCarlo
from skattr.engines.riemann import Riemann
from skattr.measures.base import Measure
from skattr.messages import brief
from skattr.pieces import Pieces

ENGINES = (
    OneViolation(),
    BinnedRows(),
    BoxProducts(),
    BoxMixture(),
    Increments(),
    AdditiveTerms(),
    BinnedAdditive(),
    AffineMeans(),
    ProductTerms(),
    BinnedProducts(),
    MixedProducts(),
    OneLayerNormal(),
    OneLayerUniform(),
    Polytopes(),
    Lines(),
    Addends(),
    FiniteSum(),
    Evaluation(),
    FiniteGrid(),
    Riemann(),
    QuasiMonteCarlo(),
)


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


def choose(engine: Any, pieces: Pieces, terms: list[Measure], jobs: Jobs) -> list[Engine]:
    """Choose an engine for each term; a named engine must serve at least one of them."""
    order, named = candidates(engine)
    order = tuple(e for e in order if e.name not in jobs.without)
    chosen = []
    for term in terms:
        found = _best(order, named, pieces, term, jobs)
        if found is None:
            raise ValueError(_no_engine(engine, pieces, term))
        chosen.append(found)
    if named and order[0] not in chosen:
        reasons = "; ".join(f"{term!r}: {order[0].refuses(pieces, term)}" for term in terms)
        raise ValueError(f"engine={order[0].name!r} serves no term of the measure ({reasons})")
    return chosen


def _best(order: tuple, named: bool, pieces: Pieces, term: Measure, jobs: Jobs) -> Engine | None:
    """Return the engine that was asked for, the first that suits, or the first that can serve."""
    if named and order[0].refuses(pieces, term) is None:
        return order[0]
    able = (e for e in order if e.refuses(pieces, term) is None)
    first = next(able, None)
    for engine in () if first is None else chain([first], able):
        if engine.suits(pieces, term, jobs) is None:
            return engine
    return first


def _no_engine(engine: Any, pieces: Pieces, term: Measure) -> str:
    assert __doc__ is not None
    table = __doc__[__doc__.index("|") :]
    what = "exact engine" if engine == "exact" else "engine"
    near = [e for e in ENGINES if e.needs[0] is not Pieces and isinstance(pieces, e.needs[0])]
    reasons = "".join(f"{e.name}: {e.refuses(pieces, term)}\n" for e in near)
    return (
        f"there is no {what} for {term!r} on {pieces.describe()}. There are:\n{table}{reasons}"
        f"{term!r} has the view {', '.join(term.views)}; take a measure with another view "
        "(PartialDependence has rows) or a model that is read as boxes, as an additive model or "
        "as a sum of products."
    )
