"""Products of matrices, one of which has many zeros, as what ReLUs return."""

import numpy as np

from skattr.kernels.boxes.bits import ONE, WORD, ZERO, trailing_zeros
from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.vectors import WIDTH, load, nonzero, number, spread, store, times_plus

ROWS = 4  # of A that are taken together
COLUMNS = 2 * WIDTH  # of B that are taken together


def tiles(B):
    """Return a matrix as `multiply` takes it, flat: first all rows of its first columns, and so on.

    Their number is a multiple of COLUMNS.
    """
    p, m = B.shape
    return B.reshape(p, m // COLUMNS, COLUMNS).transpose(1, 0, 2).ravel()


@called
def multiply(A, n, p, B, begin, m, out, to, active):
    """Fill n · m numbers of out, from `to` on, with A @ B, leaving out what is 0 in A.

    A has n · p numbers, B is p · m numbers in tiles, from its `begin` on. A and `out` have to be
    three rows longer; `active` holds p numbers.
    """
    for h in range(n * p, -(-n // ROWS) * ROWS * p):
        A[h] = 0.0
    for r in range(0, n, ROWS):
        a, b, c, d = r * p, (r + 1) * p, (r + 2) * p, (r + 3) * p
        n_active = _find_active(A, a, p, active)
        for i in range(0, m, COLUMNS):
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = spread(0.0)
            for f in range(n_active):
                h = active[f]
                row = begin + i * p + COLUMNS * h
                left, right = load(B, row), load(B, row + WIDTH)
                factor = spread(number(A, a + h))
                a0, a1 = times_plus(factor, left, a0), times_plus(factor, right, a1)
                factor = spread(number(A, b + h))
                b0, b1 = times_plus(factor, left, b0), times_plus(factor, right, b1)
                factor = spread(number(A, c + h))
                c0, c1 = times_plus(factor, left, c0), times_plus(factor, right, c1)
                factor = spread(number(A, d + h))
                d0, d1 = times_plus(factor, left, d0), times_plus(factor, right, d1)
            first = to + r * m + i
            store(out, first, a0)
            store(out, first + WIDTH, a1)
            store(out, first + m, b0)
            store(out, first + m + WIDTH, b1)
            store(out, first + 2 * m, c0)
            store(out, first + 2 * m + WIDTH, c1)
            store(out, first + 3 * m, d0)
            store(out, first + 3 * m + WIDTH, d1)


@inlined
def _find_active(A, begin, p, active):
    """Fill in the columns of four rows of A that are not 0; return how many."""
    n_active = 0
    for first in range(0, p, WORD):
        bits = ZERO
        for h in range(first, min(first + WORD, p), WIDTH):
            at = begin + h
            some = nonzero(load(A, at)) | nonzero(load(A, at + p))
            some |= nonzero(load(A, at + 2 * p)) | nonzero(load(A, at + 3 * p))
            bits |= some << np.uint64(h - first)
        while bits != ZERO:
            active[n_active] = first + np.int64(trailing_zeros(bits))
            bits &= bits - ONE
            n_active += 1
    return n_active
