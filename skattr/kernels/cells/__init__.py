"""Integrals of ReLU networks over boxes, exact: their cells, and means that have a closed form.

- `polytopes`: the cells of a network on a cube, cut by its units layer by layer, depth first;
- `simplices`: each cell is cut into simplices, on which the mean of a ReLU is known;
- `relu_means`: the mean of a ReLU of a normal number, or of a sum of uniform ones, without cells.

`simplices` imports `polytopes`; `relu_means` stands alone.
"""
