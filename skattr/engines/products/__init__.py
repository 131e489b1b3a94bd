"""Engines for sums of products: kernel machines."""
