"""Laws and weights that conditional measures learn from a background."""
