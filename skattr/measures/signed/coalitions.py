"""Shapley and Banzhaf values as signed measures (docs/mathematics.md, sections 3 and 11).

    μ_{j,x} = Σ_S w(|S|) (μ_{S∪j,x} - μ_{S,x})

over the sets S of other columns, with the weights w of the semivalue. If the columns outside a
coalition keep their joint law P (rows), or are independent, then

    μ_{j,x} = E[∫ (δ_{x_j} - δ_{Z_j}) ⊗_{k≠j} (p δ_{x_k} + (1-p) δ_{Z_k}) dP(p)],  Z ~ P

so μ_{j,x} is 0 on functions that ignore y_j, has the marginal δ_{x_j} - P_j on column j, and
(positive where y_j = x_j, negative elsewhere) its total variation.
"""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np

from skattr.measures.coalitions import Semivalue
from skattr.measures.signed.laws import ROUNDING, Law, atom, combined
from skattr.measures.signed.measure import Hidden, Signed, signed, total

MANY = 20_000  # atoms up to which coalitions are written out
COLUMNS = 10  # of products that are written out

Worths = dict[tuple[int, ...], Signed]


def subsets(d: int) -> list[tuple[int, ...]]:
    """Return all sets of d columns."""
    return list(chain.from_iterable(combinations(range(d), size) for size in range(d + 1)))


def by_size(semivalue: Semivalue, d: int) -> np.ndarray:
    """Return the weights w(s) of coalitions of s of the d - 1 other columns, (d,)."""
    return semivalue.moments(d - 1)[np.arange(d), d - 1 - np.arange(d)]


def ends(semivalue: Semivalue, d: int) -> tuple[float, float] | None:
    """Return a and b if Σ_j μ_{j,x} = a δ_x - b P whatever the inner measure, else None.

    A coalition of s columns has the weight s w(s-1) - (d-s) w(s) in the sum over all columns.
    """
    w, s = by_size(semivalue, d), np.arange(1, d)
    joined, left = s * w[:-1], (d - s) * w[1:]
    if (np.abs(joined - left) > ROUNDING * joined).any():
        return None
    return d * float(w[-1]), d * float(w[0])


def sum_of_coalitions(worths: Worths, semivalue: Semivalue, d: int, j: int) -> Signed:
    """Return μ_{j,x} from the measures of all coalitions."""
    w = by_size(semivalue, d)
    return total(
        [
            (float(w[len(s) - 1]) if j in s else -float(w[len(s)]), worth)
            for s, worth in worths.items()
        ]
    )


def products_at_nodes(
    components: list[tuple[float, list[Law]]], semivalue: Semivalue, x: np.ndarray, j: int
) -> Signed:
    """Return μ_{j,x} under products of laws: one product per node in p."""
    d = len(x)
    products = [
        (weight * float(share), tuple(
            combined([(1.0, atom(x[k])), (-1.0, law)]) if k == j
            else combined([(float(p), atom(x[k])), (float(1 - p), law)])
            for k, law in enumerate(laws)
        ))
        for weight, laws in components
        for p, share in zip(*semivalue.nodes(d - 1), strict=True)
    ]  # fmt: skip
    return signed(np.empty((0, d)), np.empty(0), products)


def own_difference(key: tuple, background: Signed, x: np.ndarray, j: int) -> Signed:
    """Return μ_{j,x} as a law that is not written out, with its marginal on column j."""
    marginal = background.marginal(j)
    assert marginal is not None
    law = combined([(1.0, atom(x[j])), (-1.0, marginal)])
    moments = np.zeros(len(x))
    moments[j] = law.moment
    hidden = [] if law.is_zero else [(1.0, Hidden((*key, j), 0.0, moments, False, (j, law)))]
    return signed(np.empty((0, len(x))), np.empty(0), (), hidden)


def not_known(key: tuple, x: np.ndarray, j: int) -> Signed:
    """Return μ_{j,x} as a law of mass 0 of which nothing else is known."""
    law = Hidden((*key, j), 0.0, np.full(len(x), np.nan), False)
    return signed(np.empty((0, len(x))), np.empty(0), (), [(1.0, law)])
