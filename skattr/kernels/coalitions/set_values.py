"""The values of players in one box, for all sets of failed players or for a few of them.

Let W_A be the weight of the background rows that fail exactly the players A of a box with D
players. An explained row that fails the players B meets the weight

    H_a(B) = Σ W_A  over the sets A of a players that are disjoint from B,

and a player gets (walk.py)

    P(B) - Q(B ∪ j)  if j is not in B,   P(B)     = Σ_a m(a - 1, |B|) H_a(B),
                                         Q(B ∪ j) = Σ_a m(a - 1, |B|) H_a(B ∪ j),
    - R(B)           if j is in B,       R(B)     = Σ_a m(a, |B| - 1) H_a(B).

`fill_values` finds H for all 2^D sets B at once, by adding sets to sets that have one more player,
in O(D 2^D) vectors of all sizes a. `sum_disjoint` goes through the sets A that are disjoint from
one B, which it finds as bits: where D is large or rows are few, there are few of them.

Weights are whole numbers, so that H is exact whatever the order, and both give the same bits.
"""

import numpy as np

from skattr.kernels.boxes.bits import ONE, ZERO, lowest, n_words, popcount, tail
from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.vectors import common, load, number, put, spread, store, times, times_plus

WIDE = 16  # players beyond which there are no tables of their sets
BYTE = np.uint64(255)
RATES = 8  # numbers per set, of which P, Q and R are the first


def rates_of_sizes(moments):
    """Return the factors of H_a(B) in P, Q and R for each |B| and a, flat."""
    n = min(len(moments), WIDE + 1)
    rates = np.zeros((WIDE + 1, WIDE + 1, RATES))  # [|B|, a]
    of_sizes = moments[:n, :n].T
    rates[:n, 1:n, 0] = of_sizes[:, : n - 1]
    rates[1:n, 1:n, 1] = of_sizes[: n - 1, : n - 1]
    rates[1:n, :n, 2] = of_sizes[: n - 1]
    return rates.reshape(-1)


@inlined
def n_sizes(n_players):
    """Return the numbers per set, one per size, as vectors of eight."""
    return np.int64(8) if n_players < 8 else np.int64(16)


@called
def fill_values(n_players, factors, sizes, rates, lane_of, mask, lanes, values):
    """Fill the values of all players for all sets.

    Parameters
    ----------
    n_players : int
        D, at most 15.
    factors : array
        From `rates_of_sizes`.
    sizes : array
        W_A in row A and column |A|, at least 4 rows of `n_sizes` numbers; on return all are 0.
    rates : array
        A buffer of 2^D rows, at least 4.
    lane_of, mask : arrays
        The lane of each player, and 1 in these lanes.
    lanes : int
        The number of lanes, 8 or 16.
    values : array
        The values if an explained row fails all players but those of a set, one row per set.
    """
    step_of_size = n_sizes(n_players)
    n_sets = np.int64(1) << n_players
    one = spread(1.0)
    none = spread(0.0)
    for j in range(n_players):
        step = step_of_size << j
        for start in range(step, n_sets * step_of_size, 2 * step):
            for at in range(start, start + step, 8):
                store(sizes, at, times_plus(one, load(sizes, at - step), load(sizes, at)))
    of_size = RATES * (WIDE + 1)
    for s in range(0, n_sets, 4):  # four at a time, as each sum waits for its last term
        b = n_players - np.int64(popcount(np.uint64(s)))
        row, row_1, row_2 = of_size * b, of_size * (b - 1), of_size * max(b - 2, 0)
        at = s * step_of_size
        of_0, of_1, of_2, of_3 = none, none, none, none
        for a in range(n_players + 1):  # beyond n_players - b the sizes are 0
            factor = load(factors, row + RATES * a)
            factor_1 = load(factors, row_1 + RATES * a)
            factor_2 = load(factors, row_2 + RATES * a)
            of_0 = times_plus(spread(number(sizes, at + a)), factor, of_0)
            of_1 = times_plus(spread(number(sizes, at + step_of_size + a)), factor_1, of_1)
            of_2 = times_plus(spread(number(sizes, at + 2 * step_of_size + a)), factor_1, of_2)
            of_3 = times_plus(spread(number(sizes, at + 3 * step_of_size + a)), factor_2, of_3)
        store(rates, RATES * s, of_0)
        store(rates, RATES * (s + 1), of_1)
        store(rates, RATES * (s + 2), of_2)
        store(rates, RATES * (s + 3), of_3)
    for at in range(0, n_sets * step_of_size, 8):
        store(sizes, at, none)
    low, high = load(mask, 0), load(mask, 8)
    for s in range(n_sets):
        minus = spread(-number(rates, RATES * s + 2))
        store(values, s * lanes, times(minus, low))
        if lanes > 8:
            store(values, s * lanes + 8, times(minus, high))
    for j in range(n_players):
        bit = np.int64(1) << j
        lane = lane_of[j]
        for i in range(n_sets >> 1):
            s = ((i >> j) << (j + 1)) | bit | (i & (bit - 1))
            value = number(rates, RATES * s) - number(rates, RATES * (s - bit) + 1)
            put(values, s * lanes + lane, value)


@inlined
def fill_members(n_players, n, sets, members):
    """Fill, for each player, which of n sets do not have it, as bits."""
    for j in range(n_players):
        for w in range(n_words(n)):
            word = ZERO
            for i in range(64 * w, min(64 * w + 64, n)):
                word |= ((~sets[i] >> np.uint64(j)) & ONE) << np.uint64(i & 63)
            members[j, w] = word


@inlined
def list_disjoint(f, n, sets, members, members_as_numbers, by_members, disjoint, as_numbers):
    """Fill which of n sets are disjoint from f, as bits; return whether any is."""
    some = ZERO
    if by_members:
        for w in range(n_words(n)):
            disjoint[w] = tail(n, w)
        for w in range(0, n_words(n), 8):
            words = load(as_numbers, w)
            rest = f
            while rest != ZERO:
                at = lowest(rest) * members.shape[1] + w
                words = common(words, load(members_as_numbers, at))
                rest &= rest - ONE
            store(as_numbers, w, words)
        for w in range(n_words(n)):
            some |= disjoint[w]
        return some != ZERO
    for w in range(n_words(n)):
        word = ZERO
        for i in range(64 * w, min(64 * w + 64, n)):
            word |= np.uint64((sets[i] & f) == ZERO) << np.uint64(i & 63)
        disjoint[w] = word
        some |= word
    return some != ZERO


@called
def sum_disjoint(f, n_players, n, sets, weights, disjoint, factors, sizes, numbers, values, at):
    """Fill the values of up to 16 players for a set f, given which of n sets are disjoint from it.

    `sizes` is a buffer, all 0 before and after.
    """
    b = np.int64(popcount(f))
    none = spread(0.0)
    seen = ZERO
    for w in range(n_words(n)):
        word = disjoint[w]
        while word != ZERO:
            i = 64 * w + lowest(word)
            word &= word - ONE
            s = np.int64(sets[i])
            a = np.int64(popcount(sets[i]))
            seen |= ONE << np.uint64(a)
            row = 24 * a
            weight = spread(weights[i])
            sizes[row] += weights[i]
            low = load(numbers, 8 * (s & 255))
            store(sizes, row + 8, times_plus(weight, low, load(sizes, row + 8)))
            if n_players > 8:
                high = load(numbers, 8 * (s >> 8))
                store(sizes, row + 16, times_plus(weight, high, load(sizes, row + 16)))
    total, low, high = none, none, none
    minus = spread(-1.0)
    while seen != ZERO:
        a = lowest(seen)
        seen &= seen - ONE
        row = 24 * a
        at_rates = RATES * ((WIDE + 1) * b + a)
        weight = spread(number(sizes, row))
        total = times_plus(weight, load(factors, at_rates), total)
        factor = spread(number(factors, at_rates))
        without = times_plus(minus, load(sizes, row + 8), weight)
        low = times_plus(without, factor, low)
        without = times_plus(minus, load(sizes, row + 16), weight)
        high = times_plus(without, factor, high)
        for c in range(row, row + 24, 8):
            store(sizes, c, none)
    store(values, at, total)
    plus = spread(number(values, at))
    of_failed = -number(values, at + 2)
    store(values, at, times_plus(minus, low, plus))
    store(values, at + 8, times_plus(minus, high, plus))
    while f != ZERO:
        values[at + lowest(f)] = of_failed
        f &= f - ONE


@called
def add_disjoint(f, n_players, n, sets, weights, disjoint, moments, numbers, values):
    """Fill the values of the players for a set f, given which of n sets are disjoint from it.

    The terms are added in the order of the sets. That takes less time than `sum_disjoint`, and
    other bits: it is for boxes of which no table is ever made.
    """
    b = np.int64(popcount(f))
    low, high = spread(0.0), spread(0.0)
    for c in range(16, 64, 8):
        store(values, c, low)
    minus = 0.0
    for w in range(n_words(n)):
        word = disjoint[w]
        while word != ZERO:
            i = 64 * w + lowest(word)
            word &= word - ONE
            s = sets[i]
            a = np.int64(popcount(s))
            if b:
                minus += weights[i] * moments[a, b - 1]
            if a == 0:
                continue
            plus = weights[i] * moments[a - 1, b]
            low = times_plus(spread(plus), load(numbers, 8 * np.int64(s & BYTE)), low)
            s >>= np.uint64(8)
            high = times_plus(spread(plus), load(numbers, 8 * np.int64(s & BYTE)), high)
            s >>= np.uint64(8)
            while s != ZERO:
                values[16 + lowest(s)] += plus
                s &= s - ONE
    store(values, 0, low)
    store(values, 8, high)
    while f != ZERO:
        values[lowest(f)] = -minus
        f &= f - ONE
