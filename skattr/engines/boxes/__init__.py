"""Engines for sums of boxes: trees, forests and boosting."""
