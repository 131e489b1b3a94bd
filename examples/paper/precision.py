"""Section 4.3: precision
======================

Precision [appendix to 4.3]: the theorem is sufficient only, and its lemma is wrong.
"""

import itertools

import numpy as np

from skattr.metrics import precision, recall, solution_set

w, settings = np.array([1.0, 1.0, 0.0]), {"alpha": 0.5, "beta": 0.1}
sets = [solution_set(w, j, "precision", **settings) for j in range(3)]
grid = list(itertools.product([0.0, 0.5, 1.0], repeat=3))

both = one = 0
for centers in itertools.product(grid, repeat=3):
    is_best = precision(np.array(centers) @ w, w, **settings) == 1.0
    in_sets = all(S.contains(m) for S, m in zip(sets, centers, strict=True))
    assert is_best or not in_sets
    both, one = both + (is_best and in_sets), one + (is_best and not in_sets)
print("Theorem: centres in their solution sets have the largest precision.")
print(f"  on a grid: true for {both} triples; but {one} more have precision 1 outside the sets\n")

print('Lemma: "maximising Precision implies maximising Recall". Retrieve one feature of two:')
values = np.array([1.0, 0.0, 0.0])
print(f"  w = {w.tolist()}, phi = {values.tolist()}: precision {precision(values, w, **settings)}, "
      f"recall {recall(values, w, **settings)}")  # fmt: skip
print("  The lemma is wrong. (The sentence under Recall in 4.3 describes Precision.)")
nothing = np.zeros(3)
print(f"  Nothing retrieved is 0/0, here 1: precision {precision(nothing, w, **settings)}, recall "
      f"{recall(nothing, w, **settings)}")  # fmt: skip
