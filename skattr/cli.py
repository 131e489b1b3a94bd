"""The command `skattr`: feature attributions as integrals, from files to files."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skattr._commands import run_demo, run_explain, run_report, run_warm_up, say
from skattr._version import __version__

__all__ = ["main"]

MEASURES = (
    "main_effect",
    "conditional_effect",
    "partial_dependence",
    "product_marginal",
    "conditional",
    "uniform",
    "expectation",
    "shapley",
    "banzhaf",
)
EXAMPLES = """examples:
  skattr demo
      fits a forest on bundled data, prints a table, writes report.html
  skattr explain --model model.skops --background train.csv --data test.csv -o values.csv
      one value for each row and column; to the terminal without -o
  skattr report --model model.skops --background train.csv --data test.csv -o report.html
      the same as one HTML file
  skattr warm-up
      compiles all kernels ahead of time, for container images

exit code: 0 success, 1 an input is invalid, 2 wrong usage
"""
INPUT_EXAMPLES = """examples:
  skattr {0} --model model.skops --background train.csv --data test.csv -o {1}
  skattr {0} --model model.skops --trust my_package.MyStep --background train.parquet \\
      --data test.parquet --measure conditional_effect -o {1}
  skattr {0} --model model.joblib --allow-pickle --background train.csv --data test.csv -o {1}

tables: the data are read as the background's types; a cell that does not fit is named. Commas,
  semicolons, tabs and bars separate columns. Columns that the model does not take are ignored.
models: a .skops file that holds estimators of scikit-learn, xgboost, lightgbm or catboost needs
  no --trust; skattr/_files/trusted.py lists the types.
"""
VALUES_NOTE = """values: a line has the row's name, its prediction, the base value (the mean
  prediction of the background) and one value for each column.
formulas: in a CSV file, names of rows and columns are written as they are. A spreadsheet takes
  one that starts with =, +, - or @ for a formula: import the file as text, or add --safe-csv, if
  you do not know where the names come from.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = argparse.Namespace(debug=True)
    try:
        with _stoppable(), _own_warnings():
            options = _parser().parse_args(arguments)
            options.run(options)
            return 0
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:  # such as `skattr explain … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if options.debug:
            raise
        say(f"error: {_one_line(error)}")
        return 1


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C whatever libraries raise; a second Ctrl-C ends at once."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def stop(*_: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Exception as error:
        if signal.getsignal(signal.SIGINT) is not stop:
            raise KeyboardInterrupt from error
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _own_warnings() -> Iterator[None]:
    """Show warnings as lines of the command."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)  # for developers
        # a model that was fitted on an array takes a table whose columns have names
        warnings.filterwarnings("ignore", message="X has feature names")
        warnings.showwarning = _show_warning
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skattr",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skattr {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_files(commands, "explain", "values.csv", "write the attributions of rows as a table")
    _add_files(commands, "report", "report.html", "write one HTML file about a model and its rows")
    _command(commands, "warm-up", "compile all kernels ahead of time").set_defaults(run=run_warm_up)
    return parser


def _command(commands: Any, name: str, about: str, **more: Any) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def _add_demo(commands: Any) -> None:
    demo = _command(
        commands,
        "demo",
        "explain a forest on bundled data: a table and a report",
        epilog="example:\n  skattr demo --out flats.html",
    )
    demo.add_argument(
        "-o",
        "--out",
        default="report.html",
        metavar="FILE",
        help="the report (default: report.html)",
    )
    demo.add_argument("--rows", type=_positive, default=5, help="rows to print (default: 5)")
    demo.set_defaults(run=run_demo)


def _add_files(commands: Any, name: str, out: str, about: str) -> None:
    notes = VALUES_NOTE if name == "explain" else ""
    parser = _command(commands, name, about, epilog=INPUT_EXAMPLES.format(name, out) + notes)
    inputs = parser.add_argument_group("inputs")
    inputs.add_argument(
        "--model",
        required=True,
        metavar="FILE",
        help="a fitted model: .skops, or .joblib and .pkl with --allow-pickle",
    )
    inputs.add_argument(
        "--background",
        required=True,
        metavar="FILE",
        help="rows from which the measure is learned: .csv or .parquet",
    )
    inputs.add_argument("--data", required=True, metavar="FILE", help="rows to explain")
    inputs.add_argument("--index", metavar="COLUMN", help="column with the names of the rows")
    inputs.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="TYPE",
        help="one more type that a .skops file may hold; may be repeated",
    )
    inputs.add_argument(
        "--allow-pickle",
        action="store_true",
        help="load a pickle, which runs whatever code is in it",
    )
    how = parser.add_argument_group("computation")
    how.add_argument(
        "--measure",
        choices=MEASURES,
        default=MEASURES[0],
        metavar="NAME",
        help=f"one of {', '.join(MEASURES)} (default: {MEASURES[0]})",
    )
    how.add_argument(
        "--output",
        choices=("auto", "raw", "proba", "predict"),
        default="auto",
        help="scale to explain (default: auto, the scale on which the model is a sum)",
    )
    how.add_argument(
        "--tol",
        type=float,
        default=1e-2,
        help="standard error at which approximate values stop, in units of the spread of the "
        "prediction (default: 0.01)",
    )
    how.add_argument("--random-state", type=int, help="seed for approximate values")
    how.add_argument("--n-jobs", type=int, help="workers, as in joblib")
    (_add_report if name == "report" else _add_explain)(parser, how, out)


def _add_report(parser: argparse.ArgumentParser, how: Any, out: str) -> None:
    parser.add_argument("-o", "--out", default=out, metavar="FILE", help=f"default: {out}")
    parser.add_argument("--title", help="heading of the report")
    parser.add_argument("--max-rows", type=_positive, default=500, help="default: 500")
    parser.add_argument("--max-features", type=_positive, default=20, help="default: 20")
    parser.add_argument("--no-data", action="store_true", help="leave raw values out")
    parser.set_defaults(run=run_report)


def _add_explain(parser: argparse.ArgumentParser, how: Any, out: str) -> None:
    centring = how.add_mutually_exclusive_group()
    centring.add_argument(
        "--raw",
        dest="centered",
        action="store_false",
        help="values as the measure defines them (default)",
    )
    centring.add_argument(
        "--centered",
        action="store_true",
        help="values minus their offset: around 0 for every measure, as main_effect and "
        "conditional_effect are anyway",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help=".csv, .json or .parquet; without it CSV goes to the terminal",
    )
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="put ' before names of rows and columns that a spreadsheet would take for formulas",
    )
    parser.set_defaults(run=run_explain, centered=False)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError)
    return text if expected else f"{type(error).__name__}: {text}"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    say(f"warning: {' '.join(str(message).split())}")
