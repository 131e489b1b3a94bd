"""The first run on a machine: what is compiled, what is said, and what works without compiling."""

import json
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skattr._warm_up import cases
from tests.helpers.processes import run_code

pytestmark = pytest.mark.slow

# prints the values of small models on every kernel
VALUES = """
import json, warnings
from skattr._warm_up import cases, compute
warnings.simplefilter("ignore")
found = {
    f"{name} {i}": values.tolist()
    for name, explainer, X in cases()
    for i, values in enumerate(compute(explainer, X))
}
print(json.dumps(found))
"""
# prints how many functions are compiled while a forest is explained
FOREST = """
import gc
import numpy as np
from numba.core import event
from sklearn.ensemble import RandomForestRegressor
from skattr import MeasureExplainer
X = np.random.default_rng(1).random((50, 3))
model = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1])
with event.install_recorder("numba:compile") as recorder:
    values = MeasureExplainer(model, "partial_dependence").fit(X).explain(X).values
assert gc.isenabled()
print(len(recorder.buffer))
"""
SAYS = "skattr: compiling kernels, once on this machine"


def run(code, **environment):
    """Run code in a fresh process, in which warnings are shown once each."""
    done = run_code(code, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done


def test_without_compiling():
    """NUMBA_DISABLE_JIT=1: every kernel in plain Python gives what the compiled one does."""
    plain = json.loads(run(VALUES, NUMBA_DISABLE_JIT="1").stdout)
    compiled = json.loads(run(VALUES).stdout)
    assert list(plain) == list(compiled)
    for name, values in compiled.items():
        size = np.abs(values).max()
        assert_allclose(plain[name], values, rtol=1e-9, atol=1e-9 * size, err_msg=name)


def test_first_run_says_what_it_waits_for(tmp_path):
    """One line on stderr while compiling, none where all is compiled."""
    cold = run(FOREST, NUMBA_CACHE_DIR=str(tmp_path))
    assert int(cold.stdout) > 0
    assert cold.stderr.count(SAYS) == 1
    warm = run(FOREST, NUMBA_CACHE_DIR=str(tmp_path))
    assert int(warm.stdout) == 0
    assert "compiling" not in warm.stderr


def test_compiling_other_functions_says_nothing(tmp_path):
    """What users compile themselves is not announced."""
    code = "from numba import njit; import skattr.kernels.compiled as c; c.PATIENCE = 0.0;"
    done = run(code + "njit(lambda x: x + 1)(1)")
    assert "compiling" not in done.stderr


def test_nowhere_to_keep_kernels():
    """Without a folder to write to, kernels are compiled in every process, with one warning."""
    code = "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []\n" + FOREST
    done = run(code)
    assert int(done.stdout) > 0
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1
    assert "skattr: compiling kernels, in every process" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_read_only_cache(tmp_path):
    """A folder that is read-only counts as none."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    done = run("import skattr", NUMBA_CACHE_DIR=str(folder))
    assert "no locator" not in done.stderr


def test_warm_up_compiles_every_kernel():
    """After `skattr warm-up` no kernel is left, and other models of a kind compile nothing."""
    code = """
from skattr.cli import main
from skattr.kernels.compiled import never_called
assert main(["warm-up"]) == 0
print(never_called())
"""
    assert run(code).stdout.strip() == "[]"
    assert int(run(FOREST).stdout) == 0


def test_names_of_cases_are_different():
    """Two cases of one name would hide each other above."""
    names = [name for name, _, _ in cases()]
    assert len(set(names)) == len(names)
