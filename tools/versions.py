"""Run the quick lane of the tests with the oldest or the newest versions that are allowed.

    python tools/versions.py oldest                    # on the Python that runs this
    python tools/versions.py newest --python python3.13
    python tools/versions.py oldest --only tests/test_exactness.py
    python tools/versions.py newest --without torch    # where there is no wheel of it

Makes a virtual environment in a temporary folder (or `--folder`, which is kept), installs skattr
with its extras there, and calls pytest. For "oldest" every requirement of the package, of its
extras but torch, and of `FRAMES`, which users hand in, is pinned to its lower bound in
pyproject.toml; what only the tests need (skops, pytest, …) is the newest. torch is the version that
the tests pin.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("plot", "report", "boosters", "arrow", "dask", "spark")
FRAMES = ("polars", "duckdb")


def lower_bounds(project: dict) -> dict[str, str]:
    """Return package → the oldest version allowed.

    Examples
    --------
    >>> lower_bounds({"dependencies": ["numpy>=2.0"], "optional-dependencies": {}})
    {'numpy': '2.0'}
    """
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in extras.get(name, ()))]
    wanted += [each for each in extras.get("test", ()) if name_of(each) in FRAMES]
    found = {}
    for requirement in wanted:
        match = re.fullmatch(r"([\w.-]+(?:\[\w+\])?)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"pyproject.toml: {requirement!r} has no lower bound of the form >=")
        found[match[1]] = match[2]
    return found


def requirements(project: dict, which: str, without: Collection[str] = ()) -> list[str]:
    """Return what pip installs: the test requirements, and pins for the oldest versions.

    Examples
    --------
    >>> extras = {"test": ["pytest>=8", "torch==2.13.0"]}
    >>> project = {"dependencies": ["numpy>=2.0"], "optional-dependencies": extras}
    >>> requirements(project, "oldest", without=["torch"])
    ['numpy==2.0', 'pytest>=8']
    """
    bounds = lower_bounds(project)
    tests = [each for each in project["optional-dependencies"]["test"] if "[" not in each]
    names = {name_of(each) for each in tests}
    pins = [f"{name}=={version}" if which == "oldest" else name for name, version in bounds.items()]
    if "xgboost-cpu" in names:  # the same library without the code for graphics cards
        pins = [pin.replace("xgboost", "xgboost-cpu", 1) for pin in pins]
    pinned = {name_of(pin) for pin in pins}
    others = [each for each in tests if name_of(each) not in pinned]
    return [each for each in [*pins, *others] if name_of(each) not in without]


def name_of(requirement: str) -> str:
    """Return the package that a requirement is about, without extras."""
    return re.split(r"[\s<>=!~\[]", requirement)[0]


def main(arguments: list[str] | None = None) -> int:
    """Make the environment and run the tests in it; return pytest's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("which", choices=["oldest", "newest"])
    parser.add_argument("--python", default=sys.executable, help="the interpreter (this one)")
    parser.add_argument("--folder", help="where to make the environment, which is then kept")
    parser.add_argument("--only", nargs="+", default=["tests"], help="what to hand to pytest")
    parser.add_argument("--without", nargs="+", default=[], help="packages to leave out")
    parser.add_argument("--jobs", default="auto", help="workers of pytest")
    given = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.folder or temporary)
        python = folder / "venv" / "bin" / "python"
        if not python.exists():
            subprocess.run([given.python, "-m", "venv", folder / "venv"], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        wanted = requirements(project, given.which, given.without)
        subprocess.run([*pip, *wanted], check=True)
        names = [name_of(each) for each in wanted]
        versions = subprocess.run(
            [python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        print(subprocess.run([python, "-V"], capture_output=True, text=True).stdout.strip())
        print("\n".join(line for line in versions if line.split("==")[0] in names), flush=True)
        settings = {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "numba")}
        command = [python, "-m", "pytest", "-q", "-m", "not slow", "-n", given.jobs, *given.only]
        if given.which == "oldest":  # old libraries call deprecated names of newer ones
            command += ["-W", "ignore::DeprecationWarning"]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}).returncode


if __name__ == "__main__":
    sys.exit(main())
