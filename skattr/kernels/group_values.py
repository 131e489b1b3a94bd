"""Evaluate the attribution of a group: a sum over boxes whose weights are known.

phi_G(x) = Σ_b v_b W_b 1[x meets the conditions of b on G]. Lists of explained rows go down each
tree, both ways at splits on other columns; below the last split on G the sum over the subtree is
known. Trees that never ask for G are left out, and the others are counted against their mean
Σ_b v_b A_b, so that the result is phi_G(x) − E f, and exactly 0 where f ignores G.
"""

import numpy as np
from numba import njit

from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT


@njit(cache=True, nogil=True)
def _sum_subtrees(nodes, values, in_group, weights, subtree, asks):
    """Fill the sums of value · weight below each node, and whether a split on the group is there.

    A child stands behind its parent in the table.
    """
    for node in range(nodes.shape[0] - 1, -1, -1):
        k = nodes[node, COLUMN]
        if k < 0:
            box = nodes[node, LEFT]
            for o in range(subtree.shape[1]):
                subtree[node, o] = values[box, o] * weights[box]
        else:
            left = nodes[node, LEFT]
            right = nodes[node, RIGHT]
            asks[node] = in_group[k] or asks[left] or asks[right]
            for o in range(subtree.shape[1]):
                subtree[node, o] = subtree[left, o] + subtree[right, o]


@njit(cache=True, nogil=True)
def _split_list(nodes, node, sets, is_set, codes, rows, begin, end):
    """Move the rows that go left to the front of the list; return where the others begin."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    middle = begin
    for i in range(begin, end):
        r = rows[i]
        code = codes[k, r]
        if is_set[k]:
            goes_left = sets[split + code] == 1
        elif code == 0:
            goes_left = nodes[node, MISSING] == 1
        else:
            goes_left = code <= split
        if goes_left:
            rows[i] = rows[middle]
            rows[middle] = r
            middle += 1
    return middle


@njit(cache=True, nogil=True)
def add_group(table, in_group, weights, plain, codes, out):
    """Add to out (n, k) the value of a group at the rows of codes (d, n), less its mean.

    weights and plain (n_boxes,) are W_b and A_b.
    """
    nodes, roots, values, sets, _, is_set, depth = table
    n = codes.shape[1]
    width = values.shape[1]
    subtree = np.zeros((nodes.shape[0], width))
    asks = np.zeros(nodes.shape[0], np.bool_)
    _sum_subtrees(nodes, values, in_group, weights, subtree, asks)
    mean = np.zeros(width)
    rows = np.arange(n)
    size = 2 * depth + 4
    todo = np.zeros(size, np.int32)
    begins = np.zeros(size, np.int64)
    ends = np.zeros(size, np.int64)
    for t in range(roots.shape[0]):
        root = roots[t, 0]
        output = roots[t, 1]
        if not asks[root]:
            continue
        mean[:] = 0.0
        last = roots[t + 1, 0] if t + 1 < roots.shape[0] else nodes.shape[0]
        for node in range(root, last):
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                for o in range(width):
                    mean[o] += values[box, o] * plain[box]
        for r in range(n):
            for o in range(width):
                out[r, output + o] -= mean[o]
        top = 0
        todo[0] = root
        begins[0] = 0
        ends[0] = n
        while top >= 0:
            node = todo[top]
            begin = begins[top]
            end = ends[top]
            top -= 1
            if begin == end:
                continue
            if not asks[node]:
                for i in range(begin, end):
                    for o in range(width):
                        out[rows[i], output + o] += subtree[node, o]
                continue
            middle_left = end
            middle_right = begin
            if in_group[nodes[node, COLUMN]]:
                middle_left = _split_list(nodes, node, sets, is_set, codes, rows, begin, end)
                middle_right = middle_left
            todo[top + 1] = nodes[node, RIGHT]
            begins[top + 1] = middle_right
            ends[top + 1] = end
            todo[top + 2] = nodes[node, LEFT]
            begins[top + 2] = begin
            ends[top + 2] = middle_left
            top += 2
