"""The sum of the boxes that rows are in: each row goes down each tree."""

from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT
from skattr.kernels.compiled import kernel


@kernel
def add_values(nodes, roots, values, sets, is_set, codes, out):
    """Add to out (n, k) the values of the boxes that codes (d, n) are in."""
    for t in range(roots.shape[0]):
        output = roots[t, 1]
        for i in range(codes.shape[1]):
            node = roots[t, 0]
            k = nodes[node, COLUMN]
            while k >= 0:
                code = codes[k, i]
                split = nodes[node, SPLIT]
                if is_set[k]:
                    left = sets[split + code] == 1
                elif code == 0:
                    left = nodes[node, MISSING] == 1
                else:
                    left = code <= split
                node = nodes[node, LEFT] if left else nodes[node, RIGHT]
                k = nodes[node, COLUMN]
            for o in range(values.shape[1]):
                out[i, output + o] += values[nodes[node, LEFT], o]
