"""Engines for additive models: sums of functions of one column each."""
