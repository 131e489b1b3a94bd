"""What `import skattr` shows, and what it does not wait for."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import skattr
from tests.helpers.processes import run_code

HEAVY = (
    "IPython", "dask", "duckdb", "jinja2", "joblib", "llvmlite", "matplotlib", "narwhals", "numba",
    "numpy", "pandas", "polars", "pyarrow", "pyspark", "scipy", "shap", "skattr._files.results",
    "skattr.explainer", "skattr.measures", "sklearn", "skops", "torch",
)  # fmt: skip
PUBLIC = [
    "Curve", "Curves", "Decomposition", "Explanation", "MeasureExplainer", "Surface", "__version__",
    "axioms", "compat", "counterfactual", "datasets", "decompose", "distributed", "engines",
    "measures", "metrics", "optimize", "plot", "write_report",
]  # fmt: skip


SURFACE = {
    "axioms": "AxiomTable Bound Cell Coordinate Symmetrised Witness bound check",
    "compat": "TreeExplainer",
    "datasets": "load_flats make_flats",
    "distributed": "explain fit",
    "engines": "ENGINES Engine Integral QuasiMonteCarlo Request Riemann Rows RunOptions TooCostly "
    "choose engine_table is_asked_for",
    "measures": "ALE Atoms Banzhaf Baseline Coefficient Conditional Density Dirac Expectation "
    "LinearCombination MarginalEffect Measure PartialDependence ProductMarginal Removal Sampler "
    "ScaledCoefficient Shapley Stieltjes Uniform",
    "metrics": "Agreement Band Faithfulness Perturbation RegionScore SolutionSet Stability "
    "agreement by_slice center_of_mass deletion f1 faithfulness first_moments insertion precision "
    "recall refit relu_precision relu_recall solution_set stability",
    "optimize": "FrankWolfeMeasure MeasureSearchCV OptimalCenter SquaredLoss ThresholdLoss mixture "
    "optimal_center scorer",
    "plot": "bar beeswarm compare curve heatmap ice interactions regions scatter slices surface "
    "waterfall",
}


def run(program):
    done = run_code(program)
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
    import skattr._inputs.frames
    import skattr.report

    assert dir(skattr) == sorted(PUBLIC) == sorted(skattr.__all__)


@pytest.mark.parametrize("module", SURFACE)
def test_public_names_of_modules(module):
    """What a public module shows is chosen, and is there."""
    public = getattr(skattr, module)
    assert list(public.__all__) == SURFACE[module].split()
    assert all(hasattr(public, name) for name in public.__all__)


INTERNAL = {"kernels", "solution"}  # besides those with an underscore, see docs/architecture.md


def test_modules_say_which_names_are_public():
    root = Path(skattr.__file__).parent
    for path in (*root.glob("*.py"), *root.glob("*/__init__.py")):
        name = path.stem if path.parent == root else path.parent.name
        if name.startswith("_") or name in INTERNAL:
            continue
        module = importlib.import_module(f"skattr.{name}")
        assert all(hasattr(module, each) for each in module.__all__), name


def test_tests_import_helpers_and_not_each_other():
    root = Path(__file__).parent
    for path in root.rglob("*.py"):
        for name in re.findall(
            r"^\s*(?:from|import) tests(?:\.| import )(\w+)", path.read_text(), re.M
        ):
            assert name in ("cases", "helpers", "oracle"), f"{path} imports tests.{name}"


@pytest.mark.slow
def test_public_names_after_import_skattr():
    program = f"""
import skattr
for name in {PUBLIC!r}:
    print(name, getattr(getattr(skattr, name), "__name__", ""))
"""
    shown = dict(line.partition(" ")[::2] for line in run(program).splitlines())
    modules = (
        "axioms", "compat", "datasets", "distributed", "engines", "measures", "metrics", "optimize",
        "plot",
    )  # fmt: skip
    classes = (
        "Curve", "Curves", "Decomposition", "Explanation", "MeasureExplainer", "Surface",
        "counterfactual", "decompose", "write_report",
    )  # fmt: skip
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
    tree = ast.parse(Path(skattr.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = [alias.name for node in block.body for alias in node.names]
    assert sorted([*names, "__version__"]) == sorted(PUBLIC)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        skattr.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from skattr import nothing")


PRIVATE = ("_attributions", "_fitting", "_model", "_points", "_solution", "_solved", "_terms")

# A module may import those of earlier layers, but none of its own layer or of later ones.
LAYERS = (
    ("kernels",),
    ("measures", "pieces"),
    ("curves",),
    ("engines",),
    ("solution",),
    ("explainer",),
)


@cache
def imported_parts():
    """Which parts of skattr (modules or folders) each part imports, anywhere in its files."""
    root = Path(skattr.__file__).parent
    parts = {path.stem for path in root.iterdir()}
    graph = {part: set() for part in parts}
    for path in root.rglob("*.py"):
        part = path.relative_to(root).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for package, _, rest in (name.partition(".") for name in names):
                imported = rest.split(".")[0]
                if package == "skattr" and imported in parts - {part}:
                    graph[part].add(imported)
    return graph


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_imports_go_one_way(number):
    graph = imported_parts()
    for part in LAYERS[number]:
        reached, new = set(), {part}
        while new:
            reached |= new
            new = set().union(*(graph[each] for each in new)) - reached
        later = {each for layer in LAYERS[number:] for each in layer} - {part}
        assert not reached & later


@pytest.mark.parametrize("folder", ["axioms", "metrics", "optimize", "plot", "report"])
def test_no_private_names_of_the_explainer(folder):
    """Rooms around the explainer read its public attributes, by whatever spelling."""
    for path in (Path(skattr.__file__).parent / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
                owner = getattr(node.value, "id", "")
                assert owner == "self", f"{path}:{node.lineno} reads .{node.attr}"
            if isinstance(node, ast.Constant) and node.value in PRIVATE:
                raise AssertionError(f"{path}:{node.lineno} names {node.value!r}")


@pytest.mark.parametrize("part", ["measures", "pieces", "curves", "engines"])
def test_explanations_are_made_by_solutions(part):
    assert "explanation" not in imported_parts()[part]


def test_kernels_import_nothing_else():
    assert imported_parts()["kernels"] == set()
