"""Helpers that know nothing of attributions."""
