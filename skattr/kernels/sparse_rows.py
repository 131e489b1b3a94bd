"""Products of matrices, one of which has many zeros, as what ReLUs return."""

from skattr.kernels.compiled import in_any_order, kernel


@kernel
def multiply(A, n, B, out, rows):
    """Fill n rows of out with A @ B, leaving out what is 0 in A.

    A and `out` have room for one row more, `rows` for len(B) + 1 numbers.
    """
    if n % 2:
        for h in range(len(B)):
            A[n, h] = 0.0
    for i in range(0, n, 2):  # two rows of A at a time
        found = 0
        for h in range(len(B)):  # without a branch
            rows[found] = h
            found += (A[i, h] != 0.0) | (A[i + 1, h] != 0.0)
        for c in range(out.shape[1]):
            out[i, c] = out[i + 1, c] = 0.0
        fours = found - found % 4
        for first in range(0, fours, 4):
            _add_four(A, B, rows, first, out, i)
        for h in rows[fours:found]:
            for c in range(out.shape[1]):
                out[i, c] += A[i, h] * B[h, c]
                out[i + 1, c] += A[i + 1, h] * B[h, c]


@in_any_order
def _add_four(A, B, rows, first, out, i):
    """Add multiples of four rows of B to two rows of out."""
    r0, r1, r2, r3 = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    a0, a1, a2, a3 = A[i, r0], A[i, r1], A[i, r2], A[i, r3]
    b0, b1, b2, b3 = A[i + 1, r0], A[i + 1, r1], A[i + 1, r2], A[i + 1, r3]
    for c in range(out.shape[1]):
        c0, c1, c2, c3 = B[r0, c], B[r1, c], B[r2, c], B[r3, c]
        out[i, c] += (a0 * c0 + a1 * c1) + (a2 * c2 + a3 * c3)
        out[i + 1, c] += (b0 * c0 + b1 * c1) + (b2 * c2 + b3 * c3)
