"""Coalitions of players on sums of Gaussian bumps ∏_a K_ma, K_ma the bumps of player a.

A set of players is a number whose bit a says whether player a belongs to it.
"""

from skattr.kernels.compiled import kernel
from skattr.kernels.rests import exponential, rest_of_product, rest_of_sum


@kernel
def fill_factors(inputs, supports, gammas, starts, out, rests):
    """Set out[m, a, r] to the bumps of player a at row r; its inputs begin at starts[a].

    The rounding errors of the exponent and of the exponential are kept: a bump is out (1 + rests).
    """
    for m in range(out.shape[0]):
        for a in range(out.shape[1]):
            for r in range(out.shape[2]):
                exponent, rest = 0.0, 0.0
                for i in range(starts[a], starts[a + 1]):
                    gap = inputs[r, i] - supports[m, i]
                    rest_of_gap = rest_of_sum(inputs[r, i], -supports[m, i], gap)
                    square = gap * gap
                    rest_of_square = rest_of_product(gap, gap, square)
                    term = gammas[i] * square
                    rest_of_term = rest_of_product(gammas[i], square, term)
                    total = exponent + term
                    rest += rest_of_sum(exponent, term, total) + rest_of_term
                    rest += gammas[i] * (rest_of_square + 2.0 * gap * rest_of_gap)
                    exponent = total
                out[m, a, r], rests[m, a, r] = exponential(-exponent)
                if out[m, a, r] > 0.0:  # squares may overflow
                    rests[m, a, r] -= rest


@kernel
def add_moments(factors, weights, products, errors, out):
    """Add Σ_r weights[r] ∏_{a in S} factors[m, a, r] to out[m, S] for all sets S of players.

    Errors are those of the sums over rows: they are added to out at last.
    """
    for m in range(factors.shape[0]):
        for s in range(products.shape[0]):
            errors[s] = 0.0
        for r in range(factors.shape[2]):
            products[0] = weights[r]
            for a in range(factors.shape[1]):
                factor = factors[m, a, r]
                for s in range(1 << a):
                    products[s + (1 << a)] = factor * products[s]
            for s in range(products.shape[0]):
                total = out[m, s] + products[s]
                errors[s] += rest_of_sum(out[m, s], products[s], total)
                out[m, s] = total
        for s in range(products.shape[0]):
            out[m, s] += errors[s]


@kernel
def add_worths(factors, rests, moments, coefficients, tile, products, lost, errors, out):
    """Add Σ_m coefficients[m, o] moments[m, S] ∏_{a in S} factors[m, a, i] to out[i, o, S].

    Factors have rests as in `fill_factors`. What products and sums lose to rounding is added to
    errors, of the same shape as out. A tile of rows stays in the cache during a loop over all
    terms.
    """
    n = factors.shape[2]
    for first in range(0, n, tile):
        for m in range(factors.shape[0]):
            for i in range(first, first + tile if first + tile < n else n):
                products[0], lost[0] = 1.0, 0.0
                for a in range(factors.shape[1]):
                    factor, rest, size = factors[m, a, i], rests[m, a, i], 1 << a
                    for s in range(size):
                        product = factor * products[s]
                        more = rest_of_product(factor, products[s], product)
                        products[s + size] = product
                        lost[s + size] = factor * lost[s] + (rest * product + more)
                for s in range(products.shape[0]):
                    product = moments[m, s] * products[s]
                    more = rest_of_product(moments[m, s], products[s], product)
                    products[s] = product
                    lost[s] = moments[m, s] * lost[s] + more
                for o in range(out.shape[1]):
                    coefficient = coefficients[m, o]
                    for s in range(products.shape[0]):
                        term = coefficient * products[s]
                        total = out[i, o, s] + term
                        more = rest_of_product(coefficient, products[s], term)
                        rest = rest_of_sum(out[i, o, s], term, total)
                        errors[i, o, s] += coefficient * lost[s] + (rest + more)
                        out[i, o, s] = total


@kernel
def add_differences(worths, weights, out):
    """Add Σ_S weights[S] (worths[i, o, S ∪ a] - worths[i, o, S]), S without a, to out[i, a, o]."""
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            own = 1 << a
            for o in range(out.shape[2]):
                total = 0.0
                for s in range(worths.shape[2]):
                    if s & own == 0:
                        total += weights[s] * (worths[i, o, s | own] - worths[i, o, s])
                out[i, a, o] += total


@kernel
def add_pair_differences(worths, weights, out):
    """Add the second differences of the players a < b to out[i, b (b - 1) / 2 + a, o].

    They are Σ_S weights[S] (worths[i, o, S ∪ ab] - worths[i, o, S ∪ a] - worths[i, o, S ∪ b]
    + worths[i, o, S]), S without a and b.
    """
    for i in range(out.shape[0]):
        pair = 0
        b = 1
        while pair < out.shape[1]:
            for a in range(b):
                one, other = 1 << a, 1 << b
                for o in range(out.shape[2]):
                    total = 0.0
                    for s in range(worths.shape[2]):
                        if s & (one | other) == 0:
                            total += weights[s] * (
                                (worths[i, o, s | one | other] - worths[i, o, s | one])
                                - (worths[i, o, s | other] - worths[i, o, s])
                            )
                    out[i, pair, o] += total
                pair += 1
            b += 1


@kernel
def add_at_nodes(
    explained, background, weights, coefficients, nodes, shares, before, after, own, sums, out
):
    """Add the values of players to out[i, a, o], integrated over the probability p by nodes.

    With x = explained[m, :, i] and z = background[m, :, r], both (players,), they are

        Σ_m coefficients[m, o] Σ_r weights[r] Σ_q shares[q] (x_a - z_a) ∏_{b≠a} (p x_b + (1-p) z_b)

    with p = nodes[q]. Products from both sides, no division. All loops over r are innermost; own
    and sums keep one number per background row, so that the order of summation is fixed.
    """
    g, n_rows = background.shape[1], background.shape[2]
    for i in range(explained.shape[2]):
        for o in range(sums.shape[0]):
            for a in range(g):
                for r in range(n_rows):
                    sums[o, a, r] = 0.0
        for m in range(explained.shape[0]):
            for a in range(g):
                for r in range(n_rows):
                    own[a, r] = 0.0
            for q in range(nodes.shape[0]):
                p, share = nodes[q], shares[q]
                for r in range(n_rows):
                    before[0, r] = share
                    after[r] = 1.0
                for a in range(g - 1):
                    x = p * explained[m, a, i]
                    for r in range(n_rows):
                        before[a + 1, r] = before[a, r] * (x + (1.0 - p) * background[m, a, r])
                for a in range(g - 1, -1, -1):
                    x = p * explained[m, a, i]
                    for r in range(n_rows):
                        own[a, r] += before[a, r] * after[r]
                        after[r] *= x + (1.0 - p) * background[m, a, r]
            for a in range(g):
                x = explained[m, a, i]
                for r in range(n_rows):
                    own[a, r] *= x - background[m, a, r]
            for o in range(sums.shape[0]):
                coefficient = coefficients[m, o]
                for a in range(g):
                    for r in range(n_rows):
                        sums[o, a, r] += coefficient * own[a, r]
        for a in range(g):
            for o in range(sums.shape[0]):
                total = 0.0
                for r in range(n_rows):
                    total += weights[r] * sums[o, a, r]
                out[i, a, o] += total


@kernel
def add_pairs_at_nodes(
    explained, background, weights, coefficients, nodes, shares, before, between, own, sums, out
):
    """Add the second differences of the players a < b to out[i, b (b - 1) / 2 + a, o], by nodes.

    As `add_at_nodes`, with the factors (x_a - z_a) (x_b - z_b) and the product over the others;
    before and between are products of the terms before a, and behind a without b.
    """
    g, n_rows = background.shape[1], background.shape[2]
    for i in range(explained.shape[2]):
        for o in range(sums.shape[0]):
            for pair in range(sums.shape[1]):
                for r in range(n_rows):
                    sums[o, pair, r] = 0.0
        for m in range(explained.shape[0]):
            for pair in range(sums.shape[1]):
                for r in range(n_rows):
                    own[pair, r] = 0.0
            for q in range(nodes.shape[0]):
                p, share = nodes[q], shares[q]
                for r in range(n_rows):
                    before[0, r] = share
                for a in range(g - 1):
                    x = p * explained[m, a, i]
                    for r in range(n_rows):
                        before[a + 1, r] = before[a, r] * (x + (1.0 - p) * background[m, a, r])
                for b in range(1, g):
                    for r in range(n_rows):
                        between[r] = 1.0
                    for c in range(b + 1, g):
                        x = p * explained[m, c, i]
                        for r in range(n_rows):
                            between[r] *= x + (1.0 - p) * background[m, c, r]
                    for a in range(b - 1, -1, -1):
                        pair = b * (b - 1) // 2 + a
                        x = p * explained[m, a, i]
                        for r in range(n_rows):
                            own[pair, r] += before[a, r] * between[r]
                            between[r] *= x + (1.0 - p) * background[m, a, r]
            for b in range(1, g):
                for a in range(b):
                    pair = b * (b - 1) // 2 + a
                    x, y = explained[m, a, i], explained[m, b, i]
                    for r in range(n_rows):
                        own[pair, r] *= (x - background[m, a, r]) * (y - background[m, b, r])
            for o in range(sums.shape[0]):
                coefficient = coefficients[m, o]
                for pair in range(sums.shape[1]):
                    for r in range(n_rows):
                        sums[o, pair, r] += coefficient * own[pair, r]
        for pair in range(sums.shape[1]):
            for o in range(sums.shape[0]):
                total = 0.0
                for r in range(n_rows):
                    total += weights[r] * sums[o, pair, r]
                out[i, pair, o] += total
