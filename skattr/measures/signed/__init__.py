"""Fitted measures written out as signed measures, for the axioms and the metrics."""
