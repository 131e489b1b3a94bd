"""Σ_r π_r f(x_own, z_r) over boxes, for rows with weights of their own: lists of rows go down.

At a split on an own column all rows follow x, at others each its own code. O(rows · depth) a tree.
"""

import numpy as np
from numba import njit

from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT


@njit(cache=True, nogil=True, inline="always")
def _goes_left(nodes, node, sets, is_set, code):
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    if is_set[k]:
        return sets[split + code] == 1
    if code == 0:
        return nodes[node, MISSING] == 1
    return code <= split


@njit(cache=True, nogil=True)
def add_pinned(table, is_own, codes, x, rows, weights, out):
    """Add to out (k,) the sum over some rows of codes (d, n), own columns at the codes x (d,).

    rows is reordered; weights (n,) are by row.
    """
    nodes, roots, values, sets, _, is_set, depth = table
    size = 2 * depth + 4
    todo = np.zeros(size, np.int32)
    begins = np.zeros(size, np.int64)
    ends = np.zeros(size, np.int64)
    for t in range(roots.shape[0]):
        output = roots[t, 1]
        top = 0
        todo[0] = roots[t, 0]
        begins[0] = 0
        ends[0] = rows.shape[0]
        while top >= 0:
            node = todo[top]
            begin = begins[top]
            end = ends[top]
            top -= 1
            k = nodes[node, COLUMN]
            if k < 0:
                box = nodes[node, LEFT]
                weight = 0.0
                for i in range(begin, end):
                    weight += weights[rows[i]]
                for o in range(values.shape[1]):
                    out[output + o] += values[box, o] * weight
                continue
            if is_own[k]:
                middle = end if _goes_left(nodes, node, sets, is_set, x[k]) else begin
            else:
                middle = begin
                for i in range(begin, end):
                    r = rows[i]
                    if _goes_left(nodes, node, sets, is_set, codes[k, r]):
                        rows[i] = rows[middle]
                        rows[middle] = r
                        middle += 1
            if middle < end:
                top += 1
                todo[top] = nodes[node, RIGHT]
                begins[top] = middle
                ends[top] = end
            if middle > begin:
                top += 1
                todo[top] = nodes[node, LEFT]
                begins[top] = begin
                ends[top] = middle
