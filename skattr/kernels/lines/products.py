"""Products of matrices, one of which has many zeros, as what ReLUs return."""

import numpy as np

from skattr.kernels.bits import ONE, WORD, ZERO, trailing_zeros
from skattr.kernels.compiled import called, inlined
from skattr.kernels.vectors import WIDTH, load, nonzero, number, spread, store, times_plus

ROWS = 4  # of A that are taken together
COLUMNS = 2 * WIDTH  # of B that are taken together


def tiles(B):
    """Return a matrix as `multiply` takes it, flat: first all rows of its first columns, and so on.

    Their number is a multiple of COLUMNS.
    """
    p, m = B.shape
    return B.reshape(p, m // COLUMNS, COLUMNS).transpose(1, 0, 2).ravel()


@called
def multiply(A, n, p, B, begin, m, out, place, work):
    """Fill n · m numbers of out, from a place on, with A @ B, leaving out what is 0 in A.

    A has n · p numbers, B is p · m numbers in tiles, from its `begin` on. A and `out` have room for
    three rows more, `work` for p numbers.
    """
    for h in range(n * p, -(-n // ROWS) * ROWS * p):
        A[h] = 0.0
    for r in range(0, n, ROWS):
        a, b, c, d = r * p, (r + 1) * p, (r + 2) * p, (r + 3) * p
        found = _find(A, a, p, work)
        for i in range(0, m, COLUMNS):
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = spread(0.0)
            for f in range(found):
                h = work[f]
                row = begin + i * p + COLUMNS * h
                first, second = load(B, row), load(B, row + WIDTH)
                factor = spread(number(A, a + h))
                a0, a1 = times_plus(factor, first, a0), times_plus(factor, second, a1)
                factor = spread(number(A, b + h))
                b0, b1 = times_plus(factor, first, b0), times_plus(factor, second, b1)
                factor = spread(number(A, c + h))
                c0, c1 = times_plus(factor, first, c0), times_plus(factor, second, c1)
                factor = spread(number(A, d + h))
                d0, d1 = times_plus(factor, first, d0), times_plus(factor, second, d1)
            to = place + r * m + i
            store(out, to, a0)
            store(out, to + WIDTH, a1)
            store(out, to + m, b0)
            store(out, to + m + WIDTH, b1)
            store(out, to + 2 * m, c0)
            store(out, to + 2 * m + WIDTH, c1)
            store(out, to + 3 * m, d0)
            store(out, to + 3 * m + WIDTH, d1)


@inlined
def _find(A, begin, p, work):
    """Fill in the columns of four rows of A that are not 0; return how many."""
    found = 0
    for first in range(0, p, WORD):
        bits = ZERO
        for h in range(first, min(first + WORD, p), WIDTH):
            at = begin + h
            some = nonzero(load(A, at)) | nonzero(load(A, at + p))
            some |= nonzero(load(A, at + 2 * p)) | nonzero(load(A, at + 3 * p))
            bits |= some << np.uint64(h - first)
        while bits != ZERO:
            work[found] = first + np.int64(trailing_zeros(bits))
            bits &= bits - ONE
            found += 1
    return found
