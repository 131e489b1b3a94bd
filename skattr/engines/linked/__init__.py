"""Engines for a link of pieces: sums over rows of the link of margins."""
