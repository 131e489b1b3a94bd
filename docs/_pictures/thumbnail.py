"""Draw the thumbnail of gallery pages that print: a step curve, and the integral below it.

Run it: python docs/_pictures/thumbnail.py docs/_static/thumbnail.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

if __name__ == "__main__":
    at = np.arange(9)
    heights = np.array([1, 1.3, 1.2, 2, 2.6, 2.4, 3.2, 3.5, 3.5])
    figure, ax = plt.subplots(figsize=(4, 2.8))
    ax.fill_between(at, heights, step="post", color="#0072b2", alpha=0.15)
    ax.step(at, heights, where="post", color="#0072b2", linewidth=3)
    ax.text(5.2, 1.1, "∫ f dμ", fontsize=28, ha="center", va="center", color="#33475b")
    ax.set(xlim=(0, 8), ylim=(0, 4))
    ax.axis("off")
    figure.savefig(sys.argv[1], dpi=100)
