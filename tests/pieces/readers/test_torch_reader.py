"""What is read of torch modules: functions and methods that users write in `forward`."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence, Uniform
from skattr.pieces import BlackBox, ReluNetwork, as_pieces, choose_output

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
X = np.random.default_rng(0).normal(size=(12, 4))


class Written(nn.Module):
    """A module with a given forward, and layers and buffers of given names."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.written = forward
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, x):
        return self.written(self, x)


def linear(p, q):
    return nn.Linear(p, q)


def in_place(self, x):
    y = self.a(x)
    y += 1
    y *= 2.0
    y -= x
    y /= 3.0
    z = y.relu_()
    y.sub_(x).mul_(2).add_(1).div_(3)
    return self.o(y + z)


def split(self, x):
    first, rest = x.split([1, 3], dim=1)
    return self.o(F.relu(self.a(first)) + F.relu(self.b(rest)))


def residual(self, x):
    for block in (self.a, self.b):
        x = x + block(F.relu(x))
    return x


class Scaled(nn.Module):
    """Its forward has an argument with a default."""

    def __init__(self):
        super().__init__()
        self.a = linear(4, 2)

    def forward(self, x, scale=2.0):
        return self.a(x).relu() * scale


class Own(nn.Linear):
    """A layer of the user's own."""

    def forward(self, x):
        return F.linear(x, self.weight.abs(), self.bias)


def modules():
    """Modules that are read, by name."""
    torch.manual_seed(0)
    a, b = linear(4, 4), linear(4, 4)
    o, r = linear(4, 1), torch.randn
    return {
        "wide and deep": Written(
            lambda s, x: s.o(torch.cat([x, F.relu(s.a(x))], 1)), a=linear(4, 5), o=linear(9, 2)
        ),
        "wide plus deep": Written(
            lambda s, x: s.w(x).squeeze(-1) + s.o(torch.relu(s.a(x))).squeeze(1), a=a, o=o,
            w=linear(4, 1),
        ),
        "a tower for each part": Written(
            lambda s, x: s.o(torch.cat((s.a(x[:, :3]).relu(), s.b(x[:, 3:]).relu()), dim=-1)),
            a=linear(3, 4), b=linear(1, 2), o=linear(6, 1),
        ),
        "columns": Written(
            lambda s, x: s.o(F.relu(s.a(x[:, [0, 2]])))[:, 0] + 2.0 * x[:, 1] - x[..., -1] / 3,
            a=linear(2, 4), o=o,
        ),
        "columns of a buffer": Written(
            lambda s, x: s.o(F.relu(s.a(x[:, s.i]))), a=linear(2, 4), o=o, i=torch.tensor([3, 0])
        ),
        "columns that are ignored": Written(lambda s, x: F.relu(s.a(x[:, :2])), a=linear(2, 1)),
        "halves": Written(
            lambda s, x: s.o(torch.maximum(s.a(x.chunk(2, dim=1)[0]), s.a(x.chunk(2, 1)[1]))),
            a=linear(2, 4), o=o,
        ),
        "splits": Written(split, a=linear(1, 4), b=linear(3, 4), o=o),
        "residual": Written(residual, a=a, b=b),
        "view": Written(lambda s, x: s.o(F.relu(s.a(x)).view(x.size(0), -1)), a=a, o=o),
        "reshape": Written(
            lambda s, x: s.o(F.relu(s.a(x)).reshape(x.shape[0], 2, 2)).flatten(1), a=a,
            o=linear(2, 1),
        ),
        "permute": Written(
            lambda s, x: s.o(x.view(-1, 2, 2).permute(0, 2, 1).flatten(1)).relu(), o=linear(4, 2)
        ),
        "Unflatten": nn.Sequential(
            nn.Unflatten(1, (2, 2)), nn.BatchNorm1d(2), nn.Linear(2, 3), nn.PReLU(2), nn.Flatten(),
            nn.Linear(6, 1),
        ),
        "functional": Written(
            lambda s, x: F.linear(F.leaky_relu(F.linear(x, s.W, s.b), 0.2), s.V), W=r(5, 4), b=r(5),
            V=r(1, 5),
        ),
        "matmul": Written(
            lambda s, x: torch.relu(x @ s.W + s.b) @ s.V.T, W=r(4, 5), b=r(5), V=r(2, 5)
        ),
        "matmul, then in place": Written(
            lambda s, x: (x @ s.W).relu_() @ s.W + x.sum(1, keepdim=True).relu_() - x, W=r(4, 4)
        ),
        "gates": Written(lambda s, x: s.o(F.relu(s.a(x * torch.sigmoid(s.g)))), a=a, o=o, g=r(4)),
        "clamp": Written(
            lambda s, x: s.o(torch.clamp(s.a(x), -0.5, 0.5) + s.a(x).clamp(min=0)
                             - F.prelu(s.a(x), s.p).clamp(max=0.2)),
            a=a, o=o, p=torch.tensor([0.3]),
        ),
        "bounds the wrong way round, or infinite": Written(
            lambda s, x: s.a(x).clamp(s.b, s.b - 0.1) - x.clamp(0.2, -0.3) + x.clamp(-np.inf, 0.5)
            - F.hardtanh(x, -0.2, np.inf),
            a=a, b=r(4),
        ),
        "abs": Written(
            lambda s, x: s.a(x).abs().sum(1, keepdim=True) + x.abs().mean(dim=1, keepdim=True), a=a
        ),
        "weighted sum": Written(lambda s, x: (F.relu(s.a(x)) * s.w).sum(-1), a=a, w=r(4)),
        "stack": Written(
            lambda s, x: s.o(torch.stack([F.relu(s.a(x)), x], dim=2)).squeeze(-1).sum(1), a=a,
            o=linear(2, 1),
        ),
        "methods": Written(lambda s, x: -s.a(x).mul(2).add(1).sub(x[:, :1]), a=linear(4, 3)),
        "one column, many bends": Written(
            lambda s, x: F.relu(x[:, :1] * s.w + s.b) @ s.v, w=r(6), b=r(6), v=r(6, 1)
        ),
        "the smaller": Written(lambda s, x: torch.minimum(s.a(x), s.b(x)), a=a, b=b),
        "the larger": Written(lambda s, x: torch.maximum(s.a(x), torch.tensor(0.1)), a=a),
        "in place": Written(in_place, a=a, o=o),
        "a default": Scaled(),
        "a layer of one's own": nn.Sequential(Own(4, 3), nn.RReLU(), Own(3, 1), nn.AlphaDropout()),
    }  # fmt: skip


NAMES = list(modules())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_the_module(name):
    module = modules()[name]
    module.train()(torch.randn(9, 4))  # what batch norm remembers
    module.eval().double()
    explainer = MeasureExplainer(module, "partial_dependence").fit(X)
    network = explainer.pieces_
    assert isinstance(network, ReluNetwork), network.describe()
    assert explainer.engine_ == ("lines",)
    with torch.no_grad():
        wanted = module(torch.tensor(X)).reshape(len(X), -1).numpy()
    assert_allclose(network.forward(network.numbers(X)), wanted, atol=1e-13)
    values = explainer.explain(X[:3]).values.reshape(3, 4, -1)
    for i in range(3):
        for j in range(4):
            Z = X.copy()
            Z[:, j] = X[i, j]
            with torch.no_grad():
                mean = module(torch.tensor(Z)).reshape(len(Z), -1).mean(dim=0)
            assert_allclose(values[i, j], mean, atol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.compile imports what torch drops
def test_wrapped_modules():
    """Compiled modules, those with normed weights, and graphs are read as what they are."""
    torch.manual_seed(0)
    norm = nn.utils.parametrizations.weight_norm
    plain = nn.Sequential(norm(nn.Linear(4, 3)), nn.ReLU(), nn.Linear(3, 1)).double().eval()
    wanted = MeasureExplainer(plain, "partial_dependence").fit(X)
    assert wanted.engine_ == ("lines",)
    values = wanted.explain(X).values
    for module in (torch.fx.symbolic_trace(plain), torch.compile(plain)):
        # read only: to evaluate a compiled module takes a compiler
        output = replace(choose_output(plain, "auto", X[:1]), estimator=module)
        network = as_pieces(output, X[:1])
        assert isinstance(network, ReluNetwork)
        assert_allclose(network.forward(X), wanted.pieces_.forward(X), atol=1e-14)
    graph = MeasureExplainer(torch.fx.symbolic_trace(plain), "partial_dependence").fit(X)
    assert_allclose(graph.explain(X).values, values, atol=1e-14)


def view_written_into(self, x):
    y = self.a(x)
    y[:, :2].relu_()
    return y


def parts_written_into(self, x):
    y = self.a(x)
    parts = y.chunk(2, 1)
    y.relu_()
    return parts[0] + parts[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda s, x: torch.tanh(s.a(x)), "the call of tanh"),
        (lambda s, x: s.g(s.a(x)), r"the layer 'g' \(GELU\)"),
        (lambda s, x: s.a(x) * x, "multiplies numbers that both"),
        (lambda s, x: x / (1 + x.abs()), "divides by numbers"),
        (lambda s, x: s.a(x) - s.a(x).mean(0), "several rows"),
        (lambda s, x: s.a(x) + x[:1], "several rows"),
        (lambda s, x: (s.w @ x.T).T, "asks for 'T'"),
        (lambda s, x: s.a(x) * x.shape[0] / x.size(0), "the call of mul"),
        (lambda s, x: torch.cat([x, x.new_zeros(x.size(0), 1)], 1), "the call of new_zeros"),
        (lambda s, x: s.a(x).max(1).values, "the call of max"),
        (lambda s, x: torch.bmm(x[:, None], x[:, :, None]).flatten(1), "the call of bmm"),
        (lambda s, x: s.a(x) + x[:, 0], "shapes"),
        (lambda s, x: s.a(x).flip(0).flip(0), "several rows"),
        (lambda s, x: s.a(x.to(torch.long).to(torch.float64)), "numbers of the type torch.int64"),
        (lambda s, x: s.a(x).sum(1, dtype=torch.int64), "numbers of the type torch.int64"),
        (lambda s, x: F.linear(x, s.a(x))[:, :1], "the call of linear"),
        (lambda s, x: F.relu(s.a(x) / s.w.new_zeros(())).clamp(max=0.0), "not finite"),
        (view_written_into, "used later"),
        (parts_written_into, "used later"),
        (lambda s, x: F.dropout(s.a(x), 0.0), "random even in eval mode"),
        (lambda s, x: s.a(x) if x.sum() > 0 else x, "cannot trace Written"),
    ],
)
def test_what_is_not_read_is_a_black_box_that_says_why(forward, words):
    torch.manual_seed(0)
    module = Written(forward, a=linear(4, 4), g=nn.GELU(), w=torch.randn(3, 4)).double().eval()
    table = X[:4]  # as many rows as columns: sums along the wrong axis do run
    explainer = MeasureExplainer(module, "partial_dependence").fit(table)
    assert isinstance(explainer.pieces_, BlackBox)
    assert explainer.engine_ == ("finite_sum",)
    assert re.search(words, explainer.describe()), explainer.describe()


def test_a_frame_and_exact_uniform_values():
    """A tower for each part, over its regions."""
    module = modules()["a tower for each part"].double().eval()
    frame = pd.DataFrame(X, columns=["age", "size", "rooms", "year"])
    measure = Uniform() - Expectation("uniform")
    explainer = MeasureExplainer(module, measure).fit(frame)
    assert explainer.exact_ and set(explainer.engine_) == {"one_layer_uniform"}
    plain = MeasureExplainer(module, PartialDependence()).fit(frame)
    assert list(plain.explain(frame).to_frame().columns) == list(frame.columns)
