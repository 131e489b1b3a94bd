"""Pictures of regions: what they show is read back from Axes."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PolyCollection, TriMesh
from numpy.testing import assert_allclose

from skattr import MeasureExplainer, plot
from tests.helpers.networks import random_network, random_perceptron

BOX = [(-1.0, 1.0), (0.0, 2.0)]


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def area(polygon):
    x, y = polygon.T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


@pytest.mark.slow
def test_polygons_fill_the_box_and_colours_are_the_output():
    network = random_network(0, 2, [8, 6])
    ax = plot.regions(network, BOX)
    (edges,) = [c for c in ax.collections if type(c) is PolyCollection]
    polygons = [path.vertices[:-1] for path in edges.get_paths()]
    regions = list(network.regions(BOX))
    assert len(polygons) == len(regions)
    assert_allclose([area(p) for p in polygons], [r.volume for r in regions], atol=1e-9)
    (mesh,) = [c for c in ax.collections if isinstance(c, TriMesh)]
    x, y = mesh._triangulation.x, mesh._triangulation.y
    wanted = network.forward(np.column_stack([x, y]))[:, 0]
    assert_allclose(mesh.get_array(), wanted, atol=1e-9)
    assert ax.get_xlim() == (-1.0, 1.0) and ax.get_ylim() == (0.0, 2.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")


def test_an_explainer_an_output_and_given_axes():
    X = np.random.default_rng(0).normal(size=(30, 2))
    explainer = MeasureExplainer(random_perceptron(0, 2, [4], k=2)).fit(X)
    _, given = plt.subplots()
    assert plot.regions(explainer, BOX, output=1, ax=given) is given
    named = plot.regions(explainer, BOX, output="y1")
    first = next(c for c in given.collections if isinstance(c, TriMesh)).get_array()
    second = next(c for c in named.collections if isinstance(c, TriMesh)).get_array()
    assert_allclose(first, second)


def test_every_output_has_a_panel():
    network = random_network(0, 2, [4], k=2)
    axes = plot.regions(network, BOX)
    assert [ax.get_title() for ax in axes] == list(network.output.names)
    for o, ax in enumerate(axes):
        (mesh,) = [c for c in ax.collections if isinstance(c, TriMesh)]
        places = np.column_stack([mesh._triangulation.x, mesh._triangulation.y])
        assert_allclose(mesh.get_array(), network.forward(places)[:, o], atol=1e-9)


def test_the_box_of_an_explainer():
    X = np.random.default_rng(0).normal(size=(30, 2))
    ax = plot.regions(MeasureExplainer(random_perceptron(0, 2, [4])).fit(X))
    assert ax.get_xlim() == (X[:, 0].min(), X[:, 0].max())
    assert ax.get_ylim() == (X[:, 1].min(), X[:, 1].max())


@pytest.mark.parametrize(
    "network, options, error, words",
    [
        (random_network(0, 3, [4]), {}, ValueError, "two columns"),
        (random_network(0, 2, [4]), {"domain": None}, ValueError, r"domain.*'x0': \(low"),
        (random_network(0, 2, [4]), {"output": "z"}, ValueError, "no output 'z'"),
        (random_network(0, 2, [4]), {"max_regions": 1}, ValueError, "max_regions=1"),
        (random_network(0, 2, [4]), {"domain": [(0, 0), (0, 1)]}, ValueError, "have a width"),
        ("network", {}, TypeError, "must be a ReluNetwork .*got str"),
    ],
)
def test_what_cannot_be_drawn(network, options, error, words):
    with pytest.raises(error, match=words):
        plot.regions(network, **{"domain": BOX, **options})
