"""Engines for any model: they only evaluate it."""
