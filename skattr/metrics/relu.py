"""Recall and precision over the regions of a ReLU network [the paper's appendix to 4.3].

On a region P the network is a_P·y + b_P. The metric is the sum over regions, not normalised, of the
metric of the linear model a_P, whose attribution is a_P·n^(j), with n^(j) the first moments of μ_j;
b_P drops out:

    RRecall(μ) = Σ_P Recall_{α, a_P}(μ),  RPrecision(μ) = Σ_P Precision_{α, a_P}(μ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.metrics.linear import as_models, precision, recall
from skattr.metrics.solution_sets import as_box

ENUMERATED = 4  # features up to which regions are enumerated rather than sampled
N_POINTS = 20_000  # that sample regions otherwise


@dataclass(frozen=True, eq=False)
class RegionScore:
    """A metric summed over regions.

    Parameters
    ----------
    regions : array (n_regions,)
        The metric of each region's linear model.
    gradients : array (n_regions, d)
        a_P.
    enumerated : bool
        Whether these are all regions, or only those that sampled points lie in.

    Examples
    --------
    >>> from skattr.metrics import relu_recall
    >>> score = relu_recall([[1, 0], [0, 1]], [[1.0, 0.0], [0.5, -0.5]], alpha=0.6, beta=0.1)
    >>> score.regions, score.mean
    (array([1., 0.]), 0.5)
    """

    regions: np.ndarray
    gradients: np.ndarray
    enumerated: bool

    @property
    def total(self) -> float:
        """The sum over regions, as the paper has it."""
        return float(self.regions.sum())

    @property
    def mean(self) -> float:
        """The sum over the number of regions: 1 is best."""
        return float(self.regions.mean())

    def __float__(self) -> float:
        return self.total

    def __repr__(self) -> str:
        how = "all" if self.enumerated else "those of sampled points"
        return (
            f"<RegionScore total={self.total:.4g}, mean={self.mean:.4g}, "
            f"{len(self.regions)} regions: {how}>"
        )


def relu_recall(moments: Any, network: Any, *, alpha: float, beta: float, domain: Any = None,
                output: int = 0, random_state: int = 0) -> RegionScore:  # fmt: skip
    """Return the sum over regions of the recall of the local linear models.

    Parameters
    ----------
    moments : array (d, d)
        Row j holds ∫ y dμ_j: for a probability its centre of mass (`center_of_mass`).
    network : ReluNetwork, or array (n_regions, d)
        An object with `regions(domain)` and `local(points)`, or the gradients a_P themselves.
    alpha, beta : float
        As in `recall`.
    domain : array (d, 2), optional
        The box whose regions count, [0, 1]^d by default.
    output : int, default=0
        The position of the output of the network.
    random_state : int, default=0
        The seed of the points that sample regions if there are more than 4 features.

    Returns
    -------
    RegionScore
        `total`, `mean`, `regions`, `enumerated`.

    Examples
    --------
    >>> gradients = [[1.0, 0.0], [0.5, -0.5]]  # two regions
    >>> relu_recall([[1, 0], [0, 1]], gradients, alpha=0.6, beta=0.1).total
    1.0
    """
    return _over_regions(recall, moments, network, alpha, beta, domain, output, random_state)


def relu_precision(moments: Any, network: Any, *, alpha: float, beta: float, domain: Any = None,
                   output: int = 0, random_state: int = 0) -> RegionScore:  # fmt: skip
    """Return the sum over regions of the precision of the local linear models.

    Parameters
    ----------
    moments, network, alpha, beta, domain, output, random_state
        As in `relu_recall`.

    Returns
    -------
    RegionScore

    Examples
    --------
    >>> gradients = [[1.0, 0.0], [0.5, -0.5]]
    >>> relu_precision([[1, 0], [0, 1]], gradients, alpha=0.6, beta=0.1).total
    2.0
    """
    return _over_regions(precision, moments, network, alpha, beta, domain, output, random_state)


def _over_regions(
    metric: Callable, moments: Any, network: Any, alpha: float, beta: float, domain: Any,
    output: int, random_state: int,
) -> RegionScore:  # fmt: skip
    centers = as_models(moments, "moments")
    if centers.ndim != 2 or centers.shape[0] != centers.shape[1]:
        raise ValueError(f"moments must be (d, d), row j for feature j, got shape {centers.shape}")
    gradients, enumerated = region_gradients(network, len(centers), domain, output, random_state)
    values = gradients @ centers.T
    regions = metric(values, gradients, alpha=alpha, beta=beta)
    return RegionScore(regions, gradients, enumerated)


def region_gradients(
    network: Any, d: int, domain: Any = None, output: int = 0, random_state: int = 0
) -> tuple[np.ndarray, bool]:
    """Return a_P of the regions, (n_regions, d), and whether these are all of them."""
    if not hasattr(network, "regions"):
        gradients = np.atleast_2d(as_models(network, "gradients of regions"))
        if gradients.shape[1] != d:
            raise ValueError(f"regions must have {d} features, got {gradients.shape[1]}")
        return gradients, True
    box = as_box(domain, d)
    if d <= ENUMERATED:
        regions = network.regions(box)  # cells without volume are not regions
        slopes = [np.atleast_2d(a)[output] for a, _, _, volume in regions if volume > 0]
        return np.array(slopes), True
    rng = np.random.default_rng(random_state)
    points = box[:, 0] + rng.random((N_POINTS, d)) * np.diff(box)[:, 0]
    if not getattr(network, "is_plain", True):
        raise ValueError("a network behind steps that are not affine has no regions of raw columns")
    at_points, constants = network.local(points - getattr(network, "origin", 0.0))
    affine = np.concatenate([at_points[:, output], constants[:, [output]]], axis=1)
    _, first = np.unique(np.round(affine, 12), axis=0, return_index=True)
    return affine[np.sort(first), :-1], False
