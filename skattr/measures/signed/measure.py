"""Signed measures written out as atoms, products of one-dimensional laws, and hidden laws.

Σ_a weights_a δ_{points_a} + Σ_p weight_p ⊗_k law_{p,k} + laws known by mass and mean only.
Properties are exact up to rounding, or None: `variation` is exact for atoms with one product, and
for products that are singular to each other; several products of atoms are multiplied out if they
are few enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from skattr.measures.signed.laws import ROUNDING, Law, atom, combined, discrete

MANY = 100_000  # atoms up to which products are multiplied out
FEW = 8  # atoms up to which each may join a product


class Hidden(NamedTuple):
    """A law that is not written out; its total variation is known if it is positive.

    If it has an `own` column and law, this law is its marginal on the column and has its total
    variation, and the image on the other columns is 0.
    """

    key: tuple
    mass: float  # NaN if not known
    moments: np.ndarray  # (d,), NaN where not known
    positive: bool = True
    own: tuple[int, Law] | None = None

    @property
    def variation(self) -> float:
        """The total variation, NaN if it is not known."""
        if self.own is not None:
            return self.own[1].variation[0]
        return self.mass if self.positive else np.nan

    def on(self, columns: Sequence[int], key: tuple) -> Hidden:
        """Return the image on some columns, in this order, the own column among them."""
        own = None if self.own is None else (columns.index(self.own[0]), self.own[1])
        return self._replace(key=key, moments=self.moments[list(columns)], own=own)


class Variation(NamedTuple):
    """A total variation, or an upper bound of it."""

    value: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Signed:
    """A signed measure on d columns, made by `signed`, which joins equal parts."""

    points: np.ndarray  # (m, d)
    weights: np.ndarray  # (m,)
    products: tuple[tuple[float, tuple[Law, ...]], ...] = ()
    hidden: tuple[tuple[float, Hidden], ...] = ()

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.points.shape[1]

    @cached_property
    def mass(self) -> float:
        """The total mass; exactly 0 if it is 0 up to rounding, NaN if it is not known."""
        parts = [*self.weights.tolist()]
        parts += [w * float(np.prod([law.mass for law in laws])) for w, laws in self.products]
        parts += [weight * law.mass for weight, law in self.hidden]
        return _sum(parts)

    @cached_property
    def moments(self) -> np.ndarray:
        """∫ y dμ, (d,), NaN where a column has no numbers, or they are not known."""
        result = np.empty(self.d)
        for k in range(self.d):
            column = self.points[:, k]
            parts = (self.weights * column).tolist()
            for weight, laws in self.products:
                others = float(np.prod([law.mass for i, law in enumerate(laws) if i != k]))
                parts.append(weight * others * laws[k].moment if others else 0.0)
            parts += [weight * law.moments[k] for weight, law in self.hidden]
            result[k] = _sum(parts) if np.isfinite(parts).all() else np.nan
        return result

    @cached_property
    def sign(self) -> int:
        """1 if every part is positive, -1 if every part is negative, else 0."""
        signs = set(np.sign(self.weights).astype(int).tolist())
        for weight, laws in self.products:
            signs.add(int(np.sign(weight)) * int(np.prod([law.sign for law in laws])))
        signs |= {int(np.sign(weight)) * law.positive for weight, law in self.hidden}
        return signs.pop() if len(signs) == 1 else 0

    @property
    def is_empty(self) -> bool:
        """Whether it has no parts: then it is 0."""
        return not (len(self.weights) or self.products or self.hidden)

    @cached_property
    def at_atoms(self) -> np.ndarray:
        """The mass of each atom, including that of products, (m,)."""
        return self.weights + self._products_at_atoms.sum(axis=0)

    @cached_property
    def _products_at_atoms(self) -> np.ndarray:
        masses = np.zeros((len(self.products), len(self.weights)))
        for p, (weight, laws) in enumerate(self.products):
            masses[p] = weight
            for k, law in enumerate(laws):
                masses[p] *= law.at(self.points[:, k])
        return masses

    @cached_property
    def variation(self) -> Variation:
        """The total variation: sup of |∫ f dμ| over |f| ≤ 1."""
        if self.is_empty:
            return Variation(0.0, True)
        if self.sign:
            return Variation(abs(self.mass), True)
        only = self.only_own
        if only is not None:
            return Variation(abs(only[0]) * only[1].variation[0], only[1].variation[1])
        sizes = [float(np.prod([law.variation[0] for law in laws])) for _, laws in self.products]
        exact = all(law.variation[1] for _, laws in self.products for law in laws)
        exact = exact and not self.hidden
        exact = exact and all(_singular(p, q) for (_, p), (_, q) in combinations(self.products, 2))
        products = sum(abs(weight) * s for (weight, _), s in zip(self.products, sizes, strict=True))
        met = np.abs(self._products_at_atoms).sum()
        hidden = sum(abs(weight) * law.variation for weight, law in self.hidden)
        if not exact:  # atoms may cancel parts of products: a bound all the same
            return Variation(float(np.abs(self.weights).sum() + products + hidden), False)
        rest = products - met
        rest = rest if rest > ROUNDING * products else 0.0
        return Variation(float(np.abs(self.at_atoms).sum() + rest), True)

    @cached_property
    def only_own(self) -> tuple[float, Law, int] | None:
        """The weight, law and column that μ has its signs and total variation from, or None.

        A hidden law may have an own column. Products may share the law of a column, and be
        positive in the others.
        """
        if len(self.weights) or bool(self.hidden) == bool(self.products):
            return None
        if self.hidden:
            weight, law = self.hidden[0]
            if len(self.hidden) > 1 or law.own is None:
                return None
            return weight, law.own[1], law.own[0]
        for k in range(self.d):
            if len({laws[k].key for _, laws in self.products}) > 1:
                continue
            others = [[law for i, law in enumerate(laws) if i != k] for _, laws in self.products]
            if all(law.sign == 1 for laws in others for law in laws):
                masses = [w * float(np.prod([law.mass for law in laws]))
                          for (w, _), laws in zip(self.products, others, strict=True)]  # fmt: skip
                if min(masses) > 0 or max(masses) < 0:
                    return sum(masses), self.products[0][1][k], k
        return None

    @property
    def size(self) -> float:
        """The total variation where it is exact, else NaN."""
        return self.variation.value if self.variation.exact else np.nan

    @cached_property
    def is_zero(self) -> bool | None:
        """Whether it is 0, None if that is not known."""
        if self.variation.exact:
            sizes = float(np.abs(self.weights).sum()) + sum(abs(w) for w, _ in self.products)
            return self.variation.value <= 1e3 * ROUNDING * sizes
        moments = self.moments[np.isfinite(self.moments)]
        if abs(self.mass) > 0 or (moments != 0).any():
            return False
        if not self.hidden and (np.abs(self.at_atoms) > ROUNDING * np.abs(self.weights)).any():
            return False
        return None

    @cached_property
    def negative(self) -> float | None:
        """The mass of the negative part, None if it is not known."""
        if self.variation.exact:
            part = (self.variation.value - self.mass) / 2
            return part if part > ROUNDING * self.variation.value else 0.0
        if not self.hidden and (self.at_atoms < -ROUNDING * np.abs(self.weights)).any():
            return float(-np.minimum(self.at_atoms, 0.0).sum())
        return None

    def without(self, columns: Sequence[int]) -> Signed:
        """Return the image on the other columns."""
        kept = [k for k in range(self.d) if k not in columns]
        products = []
        for weight, laws in self.products:
            lost = float(np.prod([laws[k].mass for k in columns]))
            products.append((weight * lost, tuple(laws[k] for k in kept)))
        hidden = []
        for weight, law in self.hidden:
            if law.own is not None and [law.own[0]] == kept:
                products.append((weight, (law.own[1],)))
            elif law.own is None or law.own[0] in kept:
                hidden.append((weight, law.on(kept, (*law.key, *map(int, columns)))))
        return signed(self.points[:, kept], self.weights, products, hidden)

    def marginal(self, k: int) -> Law | None:
        """Return the image on one column, None if it is hidden."""
        if any(law.own is None for _, law in self.hidden):
            return None
        terms = [(1.0, discrete(self.points[:, k], self.weights))]
        terms += [(w, law.own[1]) for w, law in self.hidden if law.own and law.own[0] == k]
        for weight, laws in self.products:
            others = float(np.prod([law.mass for i, law in enumerate(laws) if i != k]))
            terms.append((weight * others, laws[k]))
        return combined(terms)

    def swapped(self, j: int, k: int) -> Signed:
        """Return the image under the exchange of two columns."""
        order = np.arange(self.d)
        order[[j, k]] = k, j
        products = [(weight, tuple(laws[i] for i in order)) for weight, laws in self.products]
        hidden = [
            (w, law.on(order.tolist(), ("swapped", j, k, *law.key))) for w, law in self.hidden
        ]
        return signed(self.points[:, order], self.weights, products, hidden)


def signed(
    points: np.ndarray,
    weights: np.ndarray,
    products: Sequence[tuple[float, tuple[Law, ...]]] = (),
    hidden: Sequence[tuple[float, Hidden]] = (),
) -> Signed:
    """Return a signed measure in which equal parts are joined and none cancel."""
    if points.shape[1] == 0:  # without columns: a number
        mass = _sum([*weights.tolist(), *(weight for weight, _ in products)])
        points, weights, products = np.empty((int(mass != 0), 0)), np.array([mass])[: mass != 0], ()
    products = [(w, laws) for w, laws in products if w and not any(law.is_zero for law in laws)]
    if products and 0 < len(points) <= FEW:  # an atom is a product, which may join another
        products += [
            (float(w), tuple(atom(v) for v in p)) for p, w in zip(points, weights, strict=True)
        ]
        points, weights = points[:0], weights[:0]
    products = _reduced(products)
    single = [all(not law.parts and len(law.points) == 1 for law in laws) for _, laws in products]
    if any(single):
        atoms = [_multiplied(*p) for p, is_atom in zip(products, single, strict=True) if is_atom]
        points = np.concatenate([points, *(p for p, _ in atoms)])
        weights = np.concatenate([weights, *(w for _, w in atoms)])
        products = [p for p, is_atom in zip(products, single, strict=True) if not is_atom]
    sizes = [float(np.prod([float(len(law.points)) for law in laws])) for _, laws in products]
    flat = all(not law.parts for _, laws in products for law in laws)
    if len(products) > 1 and flat and sum(sizes) <= MANY:
        atoms = [_multiplied(weight, laws) for weight, laws in products]
        points = np.concatenate([points, *(p for p, _ in atoms)])
        weights, products = np.concatenate([weights, *(w for _, w in atoms)]), []
    points, weights = _joined(points, weights)
    return Signed(points, weights, tuple(products), _hidden(hidden))


def total(terms: Sequence[tuple[float, Signed]]) -> Signed:
    """Return Σ coefficient · μ."""
    return signed(
        np.concatenate([mu.points for _, mu in terms]),
        np.concatenate([c * mu.weights for c, mu in terms]),
        [(c * weight, laws) for c, mu in terms for weight, laws in mu.products],
        [(c * weight, law) for c, mu in terms for weight, law in mu.hidden],
    )


def _sum(parts: Sequence[float]) -> float:
    """Return a sum; exactly 0 if it is 0 up to rounding."""
    result = float(np.sum(parts))
    return 0.0 if abs(result) <= ROUNDING * float(np.abs(parts).sum()) else result


def _joined(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join equal points, and drop those whose weights cancel."""
    if len(points) == 0 or points.shape[1] == 0:
        return points, weights
    rows = np.ascontiguousarray(points + 0.0)  # -0.0 is 0.0
    rows[np.isnan(rows)] = np.nan  # one missing value
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, kind = np.unique(whole, return_index=True, return_inverse=True)
    sums = np.bincount(kind, weights, len(first))
    keep = np.abs(sums) > ROUNDING * np.bincount(kind, np.abs(weights), len(first))
    return rows[first[keep]], sums[keep]


def _reduced(products: list) -> list:
    """Join products that differ in one column only, until there are none."""
    changed = len(products) > 1
    while changed:
        changed = False
        for k in range(len(products[0][1])) if products else ():
            alike: dict[tuple, list] = {}
            for weight, laws in products:
                key = tuple(law.key for i, law in enumerate(laws) if i != k)
                alike.setdefault(key, []).append((weight, laws))
            if len(alike) == len(products):
                continue
            changed = True
            joined = [group if len(group) == 1 else [_together(group, k)]
                      for group in alike.values()]  # fmt: skip
            products = [p for group in joined for p in group if not p[1][k].is_zero]
    return products


def _together(group: list, k: int) -> tuple[float, tuple[Law, ...]]:
    laws = list(group[0][1])
    laws[k] = combined((weight, each[k]) for weight, each in group)
    return 1.0, tuple(laws)


def _multiplied(weight: float, laws: tuple[Law, ...]) -> tuple[np.ndarray, np.ndarray]:
    points = np.meshgrid(*(law.points for law in laws), indexing="ij")
    masses = np.full(1, weight)
    for law in laws:
        masses = (masses[:, None] * law.masses).ravel()
    return np.stack([p.ravel() for p in points], axis=1), masses


def _hidden(hidden: Sequence[tuple[float, Hidden]]) -> tuple:
    sums: dict[tuple, tuple[list, Hidden]] = {}
    for weight, law in hidden:
        sums.setdefault(law.key, ([], law))[0].append(weight)
    terms = [(_sum(weights), law) for weights, law in sums.values()]
    return tuple((weight, law) for weight, law in terms if weight)


def _singular(p: tuple[Law, ...], q: tuple[Law, ...]) -> bool:
    """Tell whether, in some column, one law has atoms only and the other none."""
    return any(
        (not a.parts and len(b.points) == 0) or (not b.parts and len(a.points) == 0)
        for a, b in zip(p, q, strict=True)
    )
