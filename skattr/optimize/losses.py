"""Losses of attributions, for descent in the space of measures, with their derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class SquaredLoss:
    """½ Σ (phi - target)²: attributions as near to known ones as possible. Convex.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.optimize import SquaredLoss
    >>> SquaredLoss()(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    (0.5, array([1., 0.]))
    """

    def __call__(self, phi: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of attributions, and its derivative, (m,)."""
        off = phi - target
        return float(off @ off) / 2, off


@dataclass(frozen=True)
class ThresholdLoss:
    """A smooth bound on the number of features on the wrong side of α. Convex.

    The target is the sign of a golden feature, and 0 for any other: s(α - sign·phi) for the
    former, s(phi - α) + s(-phi - α) for the latter, s(u) = log(1 + exp(u / temperature)).

    Parameters
    ----------
    alpha : float
        The threshold of |phi|.
    temperature : float, default=0.05
        How smooth; the smaller, the nearer to a count.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.optimize import ThresholdLoss
    >>> loss = ThresholdLoss(alpha=0.5)
    >>> golden = np.array([1.0, 0.0])  # the first feature is golden
    >>> bool(loss(np.array([0.9, 0.1]), golden)[0] < loss(np.array([0.1, 0.9]), golden)[0])
    True
    """

    alpha: float
    temperature: float = 0.05

    def __post_init__(self) -> None:
        if not self.alpha >= 0 or not self.temperature > 0:
            raise ValueError(
                "alpha must be at least 0 and temperature positive, got "
                f"alpha={self.alpha!r}, temperature={self.temperature!r}"
            )

    def __call__(self, phi: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of attributions, and its derivative, (m,)."""
        sign = np.sign(target)
        golden = sign != 0
        up = np.where(golden, self.alpha - sign * phi, phi - self.alpha) / self.temperature
        down = (-phi - self.alpha) / self.temperature
        loss = np.logaddexp(0, up) + np.where(golden, 0.0, np.logaddexp(0, down))
        slope = np.where(golden, -sign * expit(up), expit(up) - expit(down))
        return float(loss.sum()), slope / self.temperature


NAMED = {"squared": SquaredLoss()}
