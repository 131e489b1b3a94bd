"""Engines for ReLU networks."""
