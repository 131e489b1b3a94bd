"""Kernels of coalitions write nowhere but to their buffers, and leave them as they must be."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

from skattr import MeasureExplainer
from skattr.engines.boxes import box_coalitions, box_interactions
from skattr.measures import Banzhaf, Shapley
from tests.helpers.random_cases import examples

GUARD = 4096  # bytes on both sides of a buffer
CANARY = 0xA5
RESTORED = {
    "key_weights": 0, "key_places": -1, "used": 0, "set_weights": 0, "set_places": -1, "bytes": 0,
    "pages": 0, "sizes": 0, "row_sizes": 0, "mask": 0, "bit_of": -1,
}  # fmt: skip


class Guards:
    """Copies of buffers, each in the middle of a longer array."""

    def __init__(self):
        self.whole = {}  # the longer array by address and size of the original
        self.originals = []  # kept, so that no other array gets the same address
        self.restored = []

    def around(self, buffers, name="buffers"):
        """Return a copy of buffers; those that share memory still do."""
        if hasattr(buffers, "_fields"):
            members = zip(buffers._fields, buffers, strict=True)
            return type(buffers)(*(self.around(member, field) for field, member in members))
        if not isinstance(buffers, np.ndarray) or not buffers.nbytes:
            return buffers
        key = buffers.ctypes.data, buffers.nbytes
        if key not in self.whole:
            self.originals.append(buffers)
            whole = np.full(GUARD + buffers.nbytes + GUARD, CANARY, np.uint8)
            whole[GUARD:-GUARD] = np.frombuffer(buffers.tobytes(), np.uint8)
            self.whole[key] = name, whole
        copy = self.whole[key][1][GUARD:-GUARD].view(buffers.dtype).reshape(buffers.shape)
        if name in RESTORED:
            self.restored.append((name, copy))
        return copy

    def check(self):
        """Assert that no byte around a buffer has changed."""
        assert self.whole
        for name, whole in self.whole.values():
            assert (whole[:GUARD] == CANARY).all(), f"written before {name}"
            assert (whole[-GUARD:] == CANARY).all(), f"written behind {name}"
        assert {name for name, _ in self.restored} == set(RESTORED)
        for name, copy in self.restored:
            assert (copy == RESTORED[name]).all(), f"{name} is not restored"


@pytest.fixture(scope="module")
def guards():
    """Put guards around the buffers that engines make; return the list of them."""
    made = []

    def guarded(new):
        def new_guarded(*args, **parameters):
            made.append(Guards())
            return made[-1].around(new(*args, **parameters))

        return new_guarded

    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (box_coalitions, "new_buffers"),
            (box_interactions, "new_pair_buffers"),
        ):
            patch.setattr(module, name, guarded(getattr(module, name)))
        yield made


rows = st.sampled_from([1, 2, 8, 9, 63, 64, 65, 128, 257, 2000])


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.sampled_from([1, 2, 7, 8, 9, 12, 16, 17, 30]),
    depth=st.sampled_from([1, 2, 3, 4, 8, 30]),
    n_leaves=st.sampled_from([2, 10, 13, 60]),
    n_outputs=st.sampled_from([1, 3]),
    n_background=rows,
    n_explained=rows,
    grouped=st.booleans(),
    banzhaf=st.booleans(),
)
@example(  # a twig that has more players than the tree has levels
    seed=0, d=30, depth=4, n_leaves=10, n_outputs=1, n_background=2000, n_explained=9,
    grouped=False, banzhaf=False,
)  # fmt: skip
@examples(40)
def test_nothing_is_written_outside_of_buffers(
    guards, seed, d, depth, n_leaves, n_outputs, n_background, n_explained, grouped, banzhaf
):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(200, d)), rng.normal(size=(200, n_outputs))
    model = ExtraTreesRegressor(
        3, max_depth=depth, max_leaf_nodes=n_leaves, max_features=1, random_state=seed
    ).fit(X, y[:, 0] if n_outputs == 1 else y)
    groups = {"first": list(range(d // 2 + 1))} if grouped else None
    explainer = MeasureExplainer(model, Banzhaf() if banzhaf else Shapley(), groups=groups)
    explainer.fit(rng.normal(size=(n_background, d)))
    Q = rng.normal(size=(n_explained, d))
    guards.clear()
    explainer.explain(Q)
    n_singles = len(guards)
    assert n_singles
    if d > 2:
        explainer.explain_pairs(Q[:65])
        assert len(guards) > n_singles
    for each in guards:
        each.check()
