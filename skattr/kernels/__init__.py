"""Numba kernels: they take and fill arrays, without classes or validation."""
