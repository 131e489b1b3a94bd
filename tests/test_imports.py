"""What `import skattr` shows, and what it does not wait for."""

import subprocess
import sys

import pytest

import skattr

HEAVY = (
    "IPython", "jinja2", "joblib", "llvmlite", "matplotlib", "narwhals", "numba", "numpy", "pandas",
    "polars", "pyarrow", "scipy", "shap", "skattr.explainer", "skattr.files", "skattr.measures",
    "sklearn", "skops", "torch",
)  # fmt: skip
PUBLIC = [
    "Curve", "Explanation", "MeasureExplainer", "__version__", "axioms", "datasets", "engines",
    "measures", "metrics", "optimize", "plot", "write_report",
]  # fmt: skip


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import skattr; dir(skattr); skattr.__version__",
        "import skattr.cli",
        "from skattr.cli import main; main(['--help'])",
        "from skattr.cli import main; main(['explain', '--help'])",
        "from skattr.cli import main; main(['--version'])",
    ],
)
def test_nothing_heavy_is_imported(statement):
    loaded = f"""
import sys
try:
    {statement}
except SystemExit:
    pass
print("\\nloaded:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    assert run(loaded).splitlines()[-1].strip() == "loaded:"


def test_a_wrong_file_name_is_named_before_anything_heavy_is_imported():
    program = f"""
import sys
from skattr.cli import main
code = main("explain --model no.skops --background a.csv --data b.csv".split())
print(code, *(name for name in {HEAVY!r} if name in sys.modules))
"""
    assert run(program).split() == ["1"]


def test_dir_shows_what_is_public():
    import skattr.frames
    import skattr.report

    assert dir(skattr) == sorted(PUBLIC) == sorted(skattr.__all__)


def test_public_names_after_import_skattr():
    program = f"""
import skattr
for name in {PUBLIC!r}:
    print(name, getattr(getattr(skattr, name), "__name__", ""))
"""
    shown = dict(line.partition(" ")[::2] for line in run(program).splitlines())
    modules = ("axioms", "datasets", "engines", "measures", "metrics", "optimize", "plot")
    classes = ("Curve", "Explanation", "MeasureExplainer", "write_report")
    assert shown == (
        {name: f"skattr.{name}" for name in modules}
        | {name: name for name in classes}
        | {"__version__": ""}
    )


def test_star_import_and_names_are_the_same_objects():
    namespace = {}
    exec("from skattr import *", namespace)
    assert set(PUBLIC) <= set(namespace)
    assert namespace["MeasureExplainer"] is skattr.MeasureExplainer
    from skattr.explainer import MeasureExplainer

    assert skattr.MeasureExplainer is MeasureExplainer


def test_type_checkers_see_the_names_that_are_imported_late():
    """The imports under TYPE_CHECKING and the public names are the same."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(skattr.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = [alias.name for node in block.body for alias in node.names]
    assert sorted([*names, "__version__"]) == sorted(PUBLIC)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        skattr.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from skattr import nothing")
