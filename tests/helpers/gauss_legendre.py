"""The definition for smooth models."""

import numpy as np

from tests.oracle import Oracle, columns, missing, numeric


class Smooth(Oracle):
    """The definition, with uniform laws by Gauss-Legendre nodes between the breaks."""

    def uniform(self, k):
        values = columns(self.X)[k]
        if not numeric(values) or k in self.levels:
            return super().uniform(k)
        values = values[~missing(values)]
        low, high = (self.domain or {}).get(k, (values.min(), values.max()))
        if low == high:
            return np.array([low]), np.ones(1)
        nodes, weights = np.polynomial.legendre.leggauss(32)
        return (low + high) / 2 + nodes * (high - low) / 2, weights / 2
