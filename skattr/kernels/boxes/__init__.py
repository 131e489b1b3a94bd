"""Kernels that go down trees over codes: the boxes of a model."""
