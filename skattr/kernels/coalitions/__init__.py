"""Kernels that compute what players add to coalitions: Shapley and Banzhaf values, and pairs."""
