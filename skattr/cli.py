"""The command `skattr`: feature attributions as integrals, from files to files."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skattr._files import paths
from skattr._version import __version__

MEASURES = (
    "main_effect",
    "conditional_effect",
    "partial_dependence",
    "product_marginal",
    "conditional",
    "uniform",
    "expectation",
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
        _say("interrupted")
        return 130
    except BrokenPipeError:  # such as `skattr explain … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if options.debug:
            raise
        _say(f"error: {_one_line(error)}")
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
            warnings.simplefilter("ignore", kind)  # between libraries, not for who runs a command
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


def run_explain(options: argparse.Namespace) -> None:
    """Explain rows, and write the values."""
    inputs = _check_inputs(options)
    if options.out is not None:
        paths.check_values(options.out, inputs, options.safe_csv)
    from skattr._files.results import neutralised, values_table, write_table

    explainer, X = _fitted(options)
    explanation = explainer.explain(X)
    table = values_table(explanation.centered() if options.centered else explanation)
    if options.safe_csv:
        table = neutralised(table)
    if options.out is None:
        table.to_csv(sys.stdout, index=False)
        sys.stdout.flush()
    else:
        write_table(table, options.out)
    where = "" if options.out is None else f"wrote {options.out}: "
    _say(where + _what_was_written(explanation, options.centered))


def _what_was_written(explanation: Any, centered: bool) -> str:
    n, g = explanation.values.shape[:2]
    words = [f"values of {_count(g, 'column')} for {_count(n, 'row')}"]
    if explanation.scale:
        words.append(f"in units of the {explanation.scale}")
    if explanation.output_names != ("prediction",):
        names = explanation.output_names
        words.append(f"of {', '.join(names[:20])}{' …' if len(names) > 20 else ''}")
    shown = explanation.centered() if centered else explanation
    error = shown.std_error
    exact = "exact" if error is None else f"approximate, standard error up to {error.max():.2g}"
    return f"{' '.join(words)}; {exact}"


def run_report(options: argparse.Namespace) -> None:
    """Explain rows, and write the report."""
    paths.check_target(options.out, _check_inputs(options))
    from skattr import write_report

    explainer, X = _fitted(options)
    title = options.title or f"Attributions of {os.path.basename(options.model)}"
    path = write_report(
        explainer,
        X,
        options.out,
        title=title,
        max_rows=options.max_rows,
        max_features=options.max_features,
        include_data=not options.no_data,
    )
    _say(f"wrote {path} ({_size(path)}); open it in a browser")


def _check_inputs(options: argparse.Namespace) -> list[str]:
    """Check the names of the files that are read, and return them."""
    paths.check_model(options.model, options.allow_pickle)
    paths.check_table(options.background)
    paths.check_table(options.data)
    return [options.model, options.background, options.data]


def _fitted(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return an explainer that is fitted on the background, and the rows to explain."""
    from skattr import MeasureExplainer
    from skattr._files.results import load_model
    from skattr._files.tables import read_background, read_data
    from skattr._levels import known_levels, model_columns

    _say(f"reading {options.model}")
    if paths.is_pickle(options.model):
        _say("warning: a pickle runs whatever code is in it; load only files that you trust")
    model = load_model(options.model, options.trust)
    levels = known_levels(model)
    background = read_background(options.background, options.index, model_columns(model), levels)
    _say_what_was_read(options.background, background)
    data = read_data(options.data, options.index, levels, background.frame)
    if options.data != options.background:
        _say_what_was_read(options.data, data)
    _say(f"learning from {_count(len(background.frame), 'row')}")
    explainer = MeasureExplainer(
        model,
        options.measure,
        output=options.output,
        tol=options.tol,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    ).fit(background.frame)
    _say(f"explaining {_count(len(data.frame), 'row')}")
    return explainer, data.frame


def _say_what_was_read(path: str, table: Any) -> None:
    for note in table.notes:
        _say(f"{path}: {note}")
    if table.ignored:
        names = ", ".join(map(str, table.ignored[:20]))
        more = f" and {len(table.ignored) - 20} more" if len(table.ignored) > 20 else ""
        _say(f"{path}: ignored columns {names}{more}")


def run_warm_up(options: argparse.Namespace) -> None:
    """Compile all kernels ahead of time, so that later runs do not wait for them."""
    from skattr._warm_up import warm_up

    warm_up()
    _say("all kernels are compiled")


def run_demo(options: argparse.Namespace) -> None:
    """Fit a forest on the bundled flats, print what moved its predictions, write the report."""
    paths.check_target(options.out)
    start = time.perf_counter()
    _say("fitting a forest of 200 trees to the rents of 600 flats (bundled data)")
    from skattr import MeasureExplainer, write_report
    from skattr.datasets import load_flats

    X, y = load_flats()
    pipeline = demo_pipeline().fit(X, y)
    _say("computing what each column adds to a prediction")
    explainer = MeasureExplainer(pipeline, "main_effect").fit(X)
    explanation = explainer.explain(X)
    rows = min(options.rows, len(X))
    values = explanation.to_frame().head(rows)
    predictions = pipeline.predict(X[:rows])
    rest = predictions - explanation.base_value - values.sum(axis=1)
    values = values.assign(interactions=rest)
    values.insert(0, "prediction", predictions)
    print(explainer.describe())
    print(
        f"\nThe mean prediction is a rent of {explanation.base_value:,.0f}. What each column adds "
        f"to it on its own, in the first {_count(rows, 'row')}\n(the rest of the prediction is "
        "what columns do together, their interactions):\n"
    )
    print(_table(values))
    print("\nImportance: how much a column adds or takes away, as a mean over all rows:\n")
    print(_table(explanation.importance().to_frame()), flush=True)
    _say("writing the report")
    path = write_report(
        explainer, X, options.out, title="Rents of 600 flats", explanation=explanation
    )
    seconds = time.perf_counter() - start
    _say(f"wrote {path} ({_size(path)}) after {seconds:,.0f} s; open it in a browser")


def _table(frame: Any) -> str:
    """Return a table of rents as text: what is added has a sign."""
    cells = frame.copy().astype(object)
    for name in frame:
        signed = "" if name in ("prediction", "importance") else "+"
        cells[name] = [f"{value:{signed},.1f}" for value in frame[name]]
    return cells.to_string()


def demo_pipeline() -> Any:
    """Return the pipeline of the demo, not fitted."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    words = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    columns = make_column_transformer(
        (SimpleImputer(), ["area", "built"]),
        (words, ["district", "heating"]),
        (OrdinalEncoder(), ["energy", "listed"]),
        ("passthrough", ["rooms", "balcony"]),
    )
    forest = RandomForestRegressor(n_estimators=200, min_samples_leaf=3, random_state=0)
    return make_pipeline(columns, forest)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _size(path: str) -> str:
    return f"{os.path.getsize(path) / 1e3:,.0f} kB"


def _say(text: str) -> None:
    print(f"skattr: {text}", file=sys.stderr, flush=True)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError)
    return text if expected else f"{type(error).__name__}: {text}"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    _say(f"warning: {' '.join(str(message).split())}")
