"""The functions of `numba_grids` and of laws on torch tensors, on any device.

The caller imports torch and passes it as `torch`.
"""


def points(torch, start, lists, n, device):
    """Return points (n, d): number `start` and those behind it, of the product of d lists."""
    sizes, offset, numbers = lists
    numbers = torch.as_tensor(numbers, device=device)
    rest = torch.arange(start, start + n, device=device)
    columns = []
    for size, first in zip(sizes[::-1].tolist(), offset[::-1].tolist(), strict=True):
        columns.append(numbers[first + rest % size])
        rest = rest // size
    return torch.stack(columns[::-1], dim=1)


def products(torch, start, lists, n, device):
    """Return the products (n,) of the coordinates of the points of `points`."""
    sizes, offset, numbers = lists
    numbers = torch.as_tensor(numbers, device=device)
    rest = torch.arange(start, start + n, device=device)
    result = torch.ones(n, dtype=numbers.dtype, device=device)
    for size, first in zip(sizes[::-1].tolist(), offset[::-1].tolist(), strict=True):
        result = result * numbers[first + rest % size]
        rest = rest // size
    return result


def difference(values, sizes):
    """Return the increments over cells, flat, of values at vertices, flat."""
    values = values.reshape(sizes.tolist())
    for axis in range(len(sizes) - 1, -1, -1):
        if sizes[axis] > 1:
            values = values.diff(dim=axis)
    return values.reshape(-1)


def choose(torch, u, weights, values):
    """Return the quantiles at levels u of a distribution with atoms."""
    levels = torch.as_tensor(weights, device=u.device).cumsum(0)
    rows = torch.searchsorted(levels[:-1], u * levels[-1], right=True)
    return torch.as_tensor(values, device=u.device)[rows]


def sums(values, weights, replicates):
    """Return the weighted sums of values (n, k) over the rows of each replicate, (R, k)."""
    if weights is not None:
        values = values * weights[:, None]
    return values.reshape(replicates, -1, values.shape[1]).sum(dim=1)
