"""Kill -9, a full disk, a read-only target and an interrupt: the old file stays, objects work."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from campaign.results import Result
from skattr import Explanation, MeasureExplainer, write_report
from skattr._files.writing import SUFFIX

OLD = b"old content"
SAVE = """
import sys, numpy as np
from skattr.explanation import Explanation
values = np.zeros((400_000, 20))
names = tuple(f"x{j}" for j in range(20))
explanation = Explanation(
    values=values, base_value=0.0, offset=0.0, data=values, feature_names=names,
    columns=tuple((name,) for name in names), output_names=("y",), exact=True, engine=("e",),
    measure="m",
)
print("ready", flush=True)
while True:
    explanation.save(sys.argv[1])
"""
REPORT = """
import sys
from campaign.faults import fitted, write_report
explainer, X = fitted()
print("ready", flush=True)
while True:
    write_report(explainer, X, sys.argv[1], max_features=1)
"""


def fitted() -> tuple[MeasureExplainer, pd.DataFrame]:
    """Return an explainer of a small forest, and its data."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=list("abcd"))
    model = RandomForestRegressor(5, random_state=0).fit(X, X["a"] * X["b"])
    return MeasureExplainer(model).fit(X), X


def run(options: argparse.Namespace) -> Result:
    """Try all faults."""
    result = Result("faults")
    explainer, X = fitted()
    explanation = explainer.explain(X)
    writers: dict[str, Callable[[Path], Any]] = {
        "save": explanation.save,
        "write_report": lambda path: write_report(explainer, X, path),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, write in writers.items():
            _full_disk(result, name, write, Path(folder, f"full-{name}"))
            _read_only(result, name, write, Path(folder, f"read-only-{name}"))
        killed = Path(folder, "killed.npz")
        _killed(result, SAVE, killed, lambda: len(Explanation.load(killed)) == 400_000)
        explanation.save(killed)
        result.check(len(Explanation.load(killed)) == len(X), "kill -9: save does not work again")
        _no_rest(result, "kill -9, save again", killed)
        killed = Path(folder, "killed.html")
        _killed(result, REPORT, killed, lambda: _is_whole(killed))
        write_report(explainer, X, killed)
        _no_rest(result, "kill -9, write_report again", killed)
        _command(result, Path(folder))
        _interrupted(result, explainer, X, Path(folder, "interrupted"))
    result.measured = "save, write_report, fit, explain, command"
    return result


def _intact(result: Result, what: str, path: Path) -> None:
    result.check(path.read_bytes() == OLD, f"{what}: the old file has changed")
    _no_rest(result, what, path)


def _rests(path: Path) -> list[str]:
    return [each.name for each in path.parent.iterdir() if each.name.endswith(SUFFIX)]


def _no_rest(result: Result, what: str, path: Path) -> None:
    result.check(_rests(path) == [], f"{what}: {_rests(path)} is left")


def _full_disk(result: Result, name: str, write: Callable[[Path], Any], path: Path) -> None:
    """Write with a limit on the size of files, as on a disk that is full."""
    path.write_bytes(OLD)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        write(path)
        result.check(False, f"full disk, {name}: nothing was raised")
    except OSError:
        result.check(True, "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    _intact(result, f"full disk, {name}", path)
    write(path)
    result.check(path.stat().st_size > 1000, f"full disk, {name}: it does not work afterwards")
    path.unlink()


def _read_only(result: Result, name: str, write: Callable[[Path], Any], path: Path) -> None:
    """Write to a protected file; root may write anything, so it is asked as `access` answers."""
    path.write_bytes(OLD)
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # as root
        path.unlink()
        return
    try:
        write(path)
        result.check(False, f"read-only, {name}: nothing was raised")
    except PermissionError:
        result.check(True, "")
    _intact(result, f"read-only, {name}", path)
    path.chmod(0o644)
    path.unlink()


def _killed(result: Result, code: str, path: Path, whole: Callable[[], bool]) -> None:
    """Kill a process that writes over and over; what is there is whole."""
    rng = np.random.default_rng(0)
    for attempt in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        while not path.exists() and process.poll() is None:  # until the first write has ended
            time.sleep(0.01)
        assert process.poll() is None, f"the process that writes {path.name} has ended by itself"
        time.sleep(float(rng.uniform(0.0, 0.7)))
        process.kill()
        process.wait()
        process.stdout.close()
        what = f"kill -9 number {attempt}, {path.suffix}"
        try:
            result.check(whole(), f"{what}: half a file")
        except ValueError as error:
            result.check(False, f"{what}: {error}")
        result.check(len(_rests(path)) <= 1, f"{what}: {_rests(path)}")


def _command(result: Result, folder: Path) -> None:
    """Interrupt the command; it ends with a line, without a traceback, and writes nothing."""
    path = folder / "demo.html"
    # a shell that starts this in the background has SIGINT ignored, which processes inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for delay in (0.0, 0.5, 1.0, 2.0):
        process = subprocess.Popen(
            [sys.executable, "-m", "skattr", "demo", "-o", str(path)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        process.stderr.readline()  # what it does first: until then it may be Python that starts
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.stderr.close()
        process.wait()
        what = f"command interrupted after {delay} s"
        last = errors.splitlines()[-1:]
        result.check(last == ["skattr: interrupted"], f"{what}: {errors[-300:]}")
        result.check("Traceback" not in errors, f"{what}: {errors[-300:]}")
        result.check(process.returncode in (130, -signal.SIGINT), f"{what}: {process.returncode}")
        result.check(not path.exists(), f"{what}: something was written")
        _no_rest(result, what, path)


def _interrupted(result: Result, explainer: MeasureExplainer, X: pd.DataFrame, path: Path) -> None:
    """Interrupt what computes and what writes; it works afterwards, and files are whole."""
    wanted = explainer.explain(X)

    rung = []

    def on_alarm(*_: Any) -> None:
        rung.append(True)
        raise KeyboardInterrupt

    calls: dict[str, Callable[[], Any]] = {
        "fit": lambda: explainer.fit(X),
        "explain": lambda: explainer.explain(X),
        "save": lambda: wanted.save(path),
        "write_report": lambda: write_report(explainer, X, path, max_features=1),
    }
    before = signal.signal(signal.SIGALRM, on_alarm)
    for name, call in calls.items():
        for delay in (1e-4, 1e-3, 3e-3, 1e-2, 1e-1):
            what = f"interrupt in {name} after {delay} s"
            path.write_bytes(OLD)
            rung.clear()
            # again every few seconds: a destructor that is interrupted swallows the exception
            signal.setitimer(signal.ITIMER_REAL, delay, 5.0)
            try:
                while True:
                    call()
            except KeyboardInterrupt:
                pass
            except ValueError:  # what matplotlib may make of an interrupt
                text = traceback.format_exc()
                result.check(bool(rung) and "matplotlib" in text, f"{what}: {text}")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            _no_rest(result, what, path)
            result.check(_is_whole(path), f"{what}: half a file")
            if name == "fit":
                explainer.fit(X)
            same = np.array_equal(explainer.explain(X).values, wanted.values)
            result.check(same, f"{what}: other values")
    signal.signal(signal.SIGALRM, before)


def _is_whole(path: Path) -> bool:
    """Return whether a file is the old one, a whole explanation or a whole report."""
    content = path.read_bytes()
    if content.startswith(b"PK"):
        return len(Explanation.load(path)) > 0
    return content == OLD or content.rstrip().endswith(b"</html>")
