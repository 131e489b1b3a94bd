"""Kernels for tensor grids, in numba and in torch."""
