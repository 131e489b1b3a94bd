"""ReLU networks with given weights, as scikit-learn's own, and as pieces."""

from functools import partial
from types import SimpleNamespace

import numpy as np
from scipy.spatial import Delaunay
from sklearn.neural_network import MLPRegressor

from skattr.pieces import as_pieces, choose_output
from skattr.pieces.parts import Layer
from tests.helpers.case import Case, predict, seed_of
from tests.helpers.comparison import by_definition, cube

KINDS = ("random", "zero_bias", "twins", "dead", "integers", "leaky", "linear_units")


def perceptron(weights, biases, activation="relu"):
    """Return a fitted MLPRegressor of these weights, (p, m) each, and biases."""
    model = MLPRegressor(hidden_layer_sizes=[len(b) for b in biases[:-1]], activation=activation)
    model.n_features_in_, model.n_outputs_ = len(weights[0]), len(biases[-1])
    model.n_layers_, model.out_activation_ = len(weights) + 1, "identity"
    model.n_iter_, model.t_, model.loss_ = 1, 1, 0.0
    model.coefs_ = [np.array(w, float) for w in weights]
    model.intercepts_ = [np.array(b, float) for b in biases]
    return model


def pinned_mean(f, rows, j, values, weights=None):
    """The mean of f over rows with column j set to each of values, (n, k)."""
    X = np.zeros((len(values), rows.shape[1]))
    X[:, j] = values
    return cube(by_definition(f, rows, X, weight=weights, own=[(j,)]))[:, 0]


def random_perceptron(seed, d, widths, k=1, kind="random"):
    """Return a perceptron of a kind that is hard for polytopes."""
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for p, m in zip([d, *widths], [*widths, k], strict=True):
        weight, bias = rng.normal(size=(p, m)) / np.sqrt(p), 0.3 * rng.normal(size=m)
        if kind == "integers":
            weight, bias = rng.integers(-2, 3, (p, m)) + 0.0, rng.integers(-1, 2, m) + 0.0
        if kind == "zero_bias":
            bias[:] = 0.0
        if kind == "twins" and m > 1:
            weight[:, 1::2], bias[1::2] = weight[:, [0]], bias[0]
        if kind == "dead":
            bias[::2] -= 100.0
            bias[1::4] += 100.0  # and some that are never off
        if kind == "near_zero" and m > 1:
            weight[:, 0] *= 1e-9
        weights.append(weight)
        biases.append(bias)
    return perceptron(weights, biases)


def given_weights(kind, over, rng):
    """A random case for `cases.py`: a perceptron of a hard kind, on numbers or integers."""
    d, k = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    widths = rng.integers(1, 7, size=rng.integers(1, 4))
    model = random_perceptron(seed_of(rng), d, widths.tolist(), k, kind)

    def rows(rng, n):
        drawn = rng.integers(-2, 3, (n, d)) if kind == "integers" else rng.normal(size=(n, d))
        return drawn.astype(float)

    n, m = (int(rng.choice([1, 3, 4, 5, 5])) for _ in range(2))
    f = partial(predict, model)
    return Case(model, f, rows(rng, n), rows(rng, m), draw=rows, over=over)


def random_network(seed, d, widths, k=1, kind="random"):
    """Return such a network as pieces; leaky units and those of slope 1 are put in afterwards."""
    network = read(random_perceptron(seed, d, widths, k, kind), d)
    rng = np.random.default_rng(seed)
    slopes = {"leaky": [0.01, 0.3, 0.0, -0.5], "linear_units": [0.0, 1.0]}.get(kind, [0.0])
    network.layers = [
        Layer(layer.weight, layer.bias, rng.choice(slopes, len(layer.bias)))
        for layer in network.layers
    ]
    return network


def read(model, d):
    """Return a model as pieces."""
    row = np.zeros((1, d))
    return as_pieces(choose_output(model, "auto", row), row)


def moments(vertices):
    """Return the volume and ∫ y dy of the hull of some points, by Qhull."""
    d = vertices.shape[1]
    if d == 1:
        low, high = vertices.min(), vertices.max()
        return SimpleNamespace(volume=high - low, first=(high**2 - low**2) / 2 * np.ones(1))
    center, size = vertices.mean(axis=0), np.ptp(vertices, axis=0)
    scaled = (vertices - center) / size
    simplices = scaled[Delaunay(scaled).simplices]
    edges = simplices[:, 1:] - simplices[:, :1]
    volumes = np.abs(np.linalg.det(edges)) / np.prod(np.arange(1, d + 1)) * np.prod(size)
    means = center + size * simplices.mean(axis=1)
    return SimpleNamespace(volume=volumes.sum(), first=volumes @ means)
