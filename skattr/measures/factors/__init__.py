"""One-dimensional laws, and products of them."""
