"""What the commands of `skattr` do. Imports nothing that takes time before it is needed."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from skattr._files import paths


def run_explain(options: argparse.Namespace) -> None:
    """Explain rows, and write the values."""
    inputs = _check_inputs(options)
    if options.out is not None:
        paths.check_values(options.out, inputs, options.safe_csv)
    from skattr._files.writing import whole_file

    explainer, chunks = _fitted(options)
    written = Written()
    if options.out is None:
        _write_values(explainer, chunks, options, sys.stdout.buffer, written)
        sys.stdout.flush()
    else:
        with whole_file(options.out) as file:
            _write_values(explainer, chunks, options, file, written)
    where = "" if options.out is None else f"wrote {options.out}: "
    say(where + _what_was_written(explainer, written))


@dataclass
class Written:
    """How many values were written, and the largest of their standard errors."""

    rows: int = 0
    columns: int = 0
    error: float | None = None
    scale: str = ""


def _write_values(
    explainer: Any, chunks: Any, options: argparse.Namespace, file: Any, written: Written
) -> None:
    """Explain chunks of rows, and write their values as they come."""
    from skattr._files.results import TableWriter, neutralised, values_table

    writer = TableWriter(file, options.out)
    for X in chunks:
        explanation = explainer.explain(X)
        shown = explanation.centered() if options.centered else explanation
        table = values_table(shown)
        writer.write(neutralised(table) if options.safe_csv else table)
        written.rows += len(X)
        written.columns, written.scale = explanation.values.shape[1], explanation.scale
        if shown.std_error is not None:
            written.error = max(written.error or 0.0, float(shown.std_error.max()))
    writer.close()


def _what_was_written(explainer: Any, written: Written) -> str:
    words = [f"values of {_count(written.columns, 'column')} for {_count(written.rows, 'row')}"]
    if written.scale:
        words.append(f"in units of the {written.scale}")
    names = explainer.output_names_
    if names != ["prediction"]:
        words.append(f"of {', '.join(names[:20])}{' …' if len(names) > 20 else ''}")
    error = written.error
    exact = "exact" if error is None else f"approximate, standard error up to {error:.2g}"
    return f"{' '.join(words)}; {exact}"


def run_report(options: argparse.Namespace) -> None:
    """Explain rows, and write the report."""
    paths.check_target(options.out, _check_inputs(options))
    from skattr import write_report
    from skattr._files.samples import sample_rows

    explainer, chunks = _fitted(options)
    X, n_rows = sample_rows(chunks)
    title = options.title or f"Attributions of {os.path.basename(options.model)}"
    if len(X) < n_rows:
        title += f" (a sample of {len(X):,} of {n_rows:,} rows)"
        say(f"the report shows a seeded sample of {len(X):,} of {n_rows:,} rows")
    path = write_report(
        explainer,
        X,
        options.out,
        title=title,
        max_rows=options.max_rows,
        max_features=options.max_features,
        include_data=not options.no_data,
    )
    say(f"wrote {path} ({_size(path)}); open it in a browser")


def _check_inputs(options: argparse.Namespace) -> list[str]:
    """Check the names of the files that are read, and return them."""
    paths.check_model(options.model, options.allow_pickle)
    paths.check_table(options.background)
    paths.check_table(options.data)
    return [options.model, options.background, options.data]


def _fitted(options: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
    """Return an explainer that is fitted on the background, and the rows to explain, in chunks."""
    from skattr import MeasureExplainer, distributed
    from skattr._files.results import load_model
    from skattr._files.streams import is_large, read_or_stream_background
    from skattr._inputs.models import is_fitted
    from skattr._levels import known_levels, model_columns

    say(f"reading {options.model}")
    if paths.is_pickle(options.model):
        say("warning: a pickle runs whatever code is in it; load only files that you trust")
    model = load_model(options.model, options.trust)
    if not is_fitted(model):
        raise ValueError(f"{options.model} holds a {type(model).__name__} that is not fitted")
    levels = known_levels(model)
    background = read_or_stream_background(
        options.background, options.index, model_columns(model), levels
    )
    explainer = MeasureExplainer(
        model,
        options.measure,
        output=options.output,
        tol=options.tol,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    )
    if is_large(options.background):
        say(f"learning from the rows of {options.background}, in chunks")
        distributed.fit(explainer, background)
        chunks = _data(options, levels, background.like)
    else:
        _say_what_was_read(options.background, background)
        chunks = _data(options, levels, background.frame)
        if not is_large(options.data):
            chunks = iter(list(chunks))  # bad data is named before anything is learned
        say(f"learning from {_count(len(background.frame), 'row')}")
        explainer.fit(background.frame)
    return explainer, chunks


def _data(options: argparse.Namespace, levels: dict, background: Any) -> Iterator[Any]:
    """Yield chunks of the rows to explain."""
    from skattr._files.streams import data_chunks, is_large

    for i, table in enumerate(data_chunks(options.data, options.index, levels, background)):
        if i == 0 and options.data != options.background:
            _say_what_was_read(options.data, table)
        if i == 0:
            few = not is_large(options.data)
            what = _count(len(table.frame), "row") if few else f"{options.data}, in chunks"
            say(f"explaining {what}")
        yield table.frame


def _say_what_was_read(path: str, table: Any) -> None:
    for note in table.notes:
        say(f"{path}: {note}")
    if table.ignored:
        names = ", ".join(map(str, table.ignored[:20]))
        more = f" and {len(table.ignored) - 20} more" if len(table.ignored) > 20 else ""
        say(f"{path}: ignored columns {names}{more}")


def run_warm_up(options: argparse.Namespace) -> None:
    """Compile all kernels ahead of time, so that later runs do not wait for them."""
    from skattr._warm_up import warm_up

    warm_up()
    say("all kernels are compiled")


def run_demo(options: argparse.Namespace) -> None:
    """Fit a forest on the bundled flats, print what moved its predictions, write the report."""
    paths.check_target(options.out)
    with _no_garbage_collection():
        _demo(options)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep what is not in use: a tenth of the time of a small job goes into looking for it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _demo(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    say("fitting a forest of 200 trees to the rents of 600 flats (bundled data)")
    from skattr import MeasureExplainer, write_report
    from skattr.datasets import load_flats

    X, y = load_flats()
    pipeline = demo_pipeline().fit(X, y)
    say("computing what each column adds to a prediction")
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
    say("writing the report")
    path = write_report(
        explainer,
        X,
        options.out,
        title="Rents of 600 flats",
        units={"area": "m²"},
        output_unit="€",
        explanation=explanation,
    )
    seconds = time.perf_counter() - start
    say(f"wrote {path} ({_size(path)}) after {seconds:,.0f} s; open it in a browser")


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


def say(text: str) -> None:
    """Write a line to stderr."""
    print(f"skattr: {text}", file=sys.stderr, flush=True)
