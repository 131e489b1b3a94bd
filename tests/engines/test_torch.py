"""Torch modules: evaluated where they are, and the two sets of kernels against each other."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skattr import MeasureExplainer
from skattr.engines import QuasiMonteCarlo, Riemann
from skattr.engines.evaluation.backends import Device, Host
from skattr.kernels.grids import numba_grids as grids
from skattr.kernels.grids import torch_grids
from skattr.measures import (
    Coefficient,
    Conditional,
    Density,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Sampler,
    Stieltjes,
    Uniform,
)
from skattr.measures.factors.points import ProductPoints

torch = pytest.importorskip("torch")
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
LOW, HIGH = X.min(axis=0), X.max(axis=0)
ROWS = X[(X > LOW).all(axis=1)][:3]


def smooth(dtype=torch.float64, outputs=1):
    """A network that is read as nothing but a black box."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, outputs)
    return torch.nn.Sequential(*layers).to(dtype).eval()


def on_host(module):
    """The same function, as one of arrays."""
    dtype = next(module.parameters()).dtype
    return lambda Z: module(torch.tensor(np.asarray(Z), dtype=dtype)).detach().numpy()


def slope(y, x, j):
    """A density that arrays and tensors know alike."""
    return y[..., j] - x[j] + 2.0


def warm_up(y, x, j):
    """The distribution function of Uniform, for arrays and tensors."""
    share = (y - as_is(y, LOW)) / as_is(y, HIGH - LOW)
    others = [k for k in range(3) if k != j]
    return share[..., others[0]] * share[..., others[1]] * (y[..., j] >= x[j])


def as_is(y, array):
    return array if isinstance(y, np.ndarray) else torch.as_tensor(array)


def draw(x, j, n, rng):
    points = x + rng.normal(size=(n, 3))
    points[:, j] = x[j]
    return points


MEASURES = {
    "uniform": (Uniform(), ("riemann", "quasi_monte_carlo")),
    "centred": (Uniform() - Expectation("uniform"), ("riemann", "quasi_monte_carlo")),
    "marginals": (ProductMarginal(), ("riemann", "quasi_monte_carlo", "finite_grid")),
    "coefficient": (Coefficient(), ("riemann", "quasi_monte_carlo")),
    "gaussian": (Conditional("gaussian"), ("quasi_monte_carlo",)),
    "sampler": (Sampler(draw), ("quasi_monte_carlo",)),
    "density": (Density(slope), ("riemann", "quasi_monte_carlo")),
    "tensor density": (Density(slope, backend="torch"), ("riemann", "quasi_monte_carlo")),
    "integrand": (Stieltjes(warm_up), ("riemann",)),
    "tensor integrand": (Stieltjes(warm_up, backend="torch"), ("riemann",)),
}
CASES = [(name, engine) for name, (_, engines) in MEASURES.items() for engine in engines]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_the_same_on_both_sides(name, engine, dtype):
    module = smooth(dtype, outputs=2)
    settings = {"engine": engine, "random_state": 0, "max_evals": 30_000, "tol": 0.05}
    here, there = (
        MeasureExplainer(f, MEASURES[name][0], **settings).fit(X).explain(ROWS)
        for f in (on_host(module), module)
    )
    assert_allclose(there.values, here.values, rtol=1e-12, atol=1e-12)
    if here.std_error is not None:
        assert_allclose(there.std_error, here.std_error, rtol=1e-6, atol=1e-12)
    mean = here.centered().values
    assert_allclose(there.centered().values, mean, atol=1e-11 if dtype == torch.float64 else 1e-5)


def test_the_same_kernels():
    lists = grids.as_lists([np.array([0.5, 1.0]), np.array([3.0]), rng.normal(size=5)])
    host, device = Host(), Device(smooth())
    for start, n in ((0, 10), (3, 4)):
        assert np.array_equal(device.points(start, lists, n).numpy(), host.points(start, lists, n))
        found = device.products(start, lists, n).numpy()
        assert_allclose(found, host.products(start, lists, n), rtol=1e-15)
    for sizes in ([3, 1, 4], [2, 2], [1, 1], [5]):
        g = rng.normal(size=np.prod(sizes))
        shape = np.array(sizes)
        found = torch_grids.difference(torch.tensor(g), shape).numpy()
        wanted = grids.difference(g.copy(), np.empty_like(g), shape)
        assert_allclose(found, wanted, atol=1e-15)
    u = rng.random((50, 3))
    for measure in (Uniform(), ProductMarginal()):
        source = ProductPoints.of(measure.fit(X, rng.random(30)))
        assert_allclose(
            device.transport(source, device.uniforms(u)).numpy(), host.transport(source, u),
            rtol=1e-15,
        )  # fmt: skip
    values, weights = rng.normal(size=(12, 2)), rng.normal(size=12)
    total = torch_grids.sums(torch.tensor(values), torch.tensor(weights), 3).numpy()
    wanted = (weights[:, None] * values).reshape(3, 4, 2).sum(axis=1)
    assert_allclose(total, wanted, atol=1e-15)


def test_frames_and_integers():
    table = pd.DataFrame({"a": X[:, 0], "b": np.arange(30) % 4, "c": X[:, 2] > 0})
    module = smooth(torch.float32)
    found = MeasureExplainer(module, PartialDependence()).fit(table).explain(table[:4])
    f = on_host(module)
    for j in range(3):
        for i in range(4):
            changed = table.astype(float).to_numpy()
            changed[:, j] = float(table.iloc[i, j])
            assert_allclose(found.values[i, j], f(changed).mean(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("engine", [QuasiMonteCarlo(8), Riemann(points=8)])
def test_bits_that_nobody_moves(engine):
    def explain(rows, **settings):
        explainer = MeasureExplainer(smooth(), Uniform(), engine=engine, random_state=3, **settings)
        return pickle.loads(pickle.dumps(explainer.fit(X))).explain(rows)

    whole = explain(ROWS)
    assert np.array_equal(explain(ROWS[::-1]).values[::-1], whole.values)
    assert np.array_equal(explain(ROWS[1:2]).values[0], whole.values[1])
    assert np.array_equal(explain(ROWS, n_jobs=2).values, whole.values)


def test_gradients_are_not_kept():
    module = smooth()
    MeasureExplainer(module, Uniform(), max_evals=4096).fit(X).explain(ROWS)
    assert all(parameter.grad is None for parameter in module.parameters())


class Lost(torch.nn.Module):
    """A module whose answer may be anything."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, Z):
        return self.answer(Z)


def test_answers_that_are_none():
    with pytest.raises(ValueError, match="NaN"):
        MeasureExplainer(Lost(lambda Z: Z.sum(1) * torch.nan)).fit(X)
    with pytest.raises(ValueError, match="tuple, not a tensor"):
        MeasureExplainer(Lost(lambda Z: (Z, Z))).fit(X)
    late = Lost(lambda Z: torch.where(Z[:, :1] == Z[0, 0], Z[:, :1], Z[:, :1] - 1).log())
    with pytest.raises(ValueError, match="NaN"):
        MeasureExplainer(late, Uniform(), domain={0: (-9.0, -8.0)}).fit(np.abs(X)).explain(ROWS)


def test_modes_weights_and_widths():
    loud = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(), torch.nn.BatchNorm1d(2))
    with pytest.raises(ValueError, match=r"'1' \(Dropout\).*eval"):
        MeasureExplainer(loud).fit(X)
    broken = smooth()
    with torch.no_grad():
        broken[0].weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"'0\.weight' holds NaN"):
        MeasureExplainer(broken).fit(X)
    with pytest.raises(ValueError, match="2 columns"):
        MeasureExplainer(smooth()).fit(X[:, :2])
    with pytest.raises(ValueError, match=r"'b'.*no numbers"):
        MeasureExplainer(smooth()).fit(pd.DataFrame({"a": [0.0], "b": ["x"], "c": [1.0]}))


def test_devices():
    assert MeasureExplainer(smooth(), device="cpu").fit(X).exact_
    with pytest.raises(ValueError, match="not a device"):
        MeasureExplainer(smooth(), device="toaster").fit(X)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA device"):
            MeasureExplainer(smooth(), device="cuda").fit(X)


def test_tensor_functions_that_are_wrong():
    def in_place(y, x, j):
        y[:, 0] += 1
        return y[:, 0]

    wrong = {
        "must not change y and x": in_place,
        "shape": lambda y, x, j: y,
        "got nan": lambda y, x, j: y[..., 0] * torch.nan,
        "of shape": lambda y, x, j: y[..., 0].numpy(),
    }
    for words, density in wrong.items():
        with pytest.raises(ValueError, match=words):
            MeasureExplainer(smooth(), Density(density, backend="torch")).fit(X).explain(ROWS)
    with pytest.raises(ValueError, match="'numpy' or 'torch'"):
        MeasureExplainer(smooth(), Density(slope, backend="jax")).fit(X)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_cuda(name, engine):
    settings = {"engine": engine, "random_state": 0, "max_evals": 30_000, "tol": 0.05}
    measure = MEASURES[name][0]
    here = MeasureExplainer(smooth(), measure, **settings).fit(X).explain(ROWS)
    module = smooth().to("cuda")
    there = MeasureExplainer(module, measure, device="cuda", **settings).fit(X).explain(ROWS)
    assert_allclose(there.values, here.values, rtol=1e-9, atol=1e-9)
