"""Weights of rows, counted by the bin of one column and the codes of all others."""

from skattr.kernels.compiled import kernel


@kernel
def add(bins, codes, weights, out):
    """Add the weight of each row to out[its bin, k, its code in column k]; codes (n, d)."""
    for r in range(codes.shape[0]):
        b = bins[r]
        for k in range(codes.shape[1]):
            out[b, k, codes[r, k]] += weights[r]
