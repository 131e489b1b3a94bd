"""Numba loops: arrays in, arrays filled; no classes, no validation."""
