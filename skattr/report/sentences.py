"""The report in plain words: five to eight sentences made from its numbers, each with a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._utils.numbers import count, percent, raw, small
from skattr.explanation import Explanation
from skattr.measures.base import as_terms
from skattr.report.interactions import Interactions
from skattr.report.notes import Note, as_large, remainder
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
from skattr.report.shapes import Words, digits, shape_of_numbers, with_unit
from skattr.report.summary import explains
from skattr.report.tables import Column
from skattr.report.words import shown_value

MOST = 8  # sentences
SHAPES = 3  # columns whose shapes are described at most
LEAST = 0.05  # share of all effects from which a shape is described
MATTERS = 0.25  # effect of missing, relative to the spread of the predictions
TRIMMED = 0.01  # part of the rows on either side that does not count for shapes
CLEAR = 0.99  # rank correlation above which there is one direction
MANY = 100  # rows from which rows are trimmed


@dataclass(frozen=True)
class Sentence:
    """A sentence, the place that it links to, and the name of the link."""

    text: str
    anchor: str
    link: str


@dataclass(frozen=True, eq=False)
class Facts:
    """What the sentences of one output are made from."""

    explainer: Any
    explained: ExplainedRows
    o: int
    columns: list[Column]
    top: np.ndarray
    interactions: Interactions | None
    notes: list[Note]
    settings: Settings

    @property
    def one(self) -> Explanation:
        """The explanation of the output."""
        explanation = self.explained.explanation
        return explanation.select(explanation.output_names[self.o])

    @property
    def size(self) -> np.ndarray:
        """The importance of each column, (g,)."""
        size = self.explained.size
        return size if size.ndim == 1 else size[:, self.o]

    def anchor(self, j: int) -> str:
        """Return the place of the panel of a column."""
        return f"column-{self.o}-{list(self.top).index(j)}"


def plain_words(facts: Facts) -> list[Sentence]:
    """Return the sentences of one output."""
    one = facts.one
    first = [_level(facts, one), _drivers(facts)]
    last = [_together(facts, one), _accuracy(one, facts.settings.output_unit), _care(facts.notes)]
    missing = _missing(facts, one)
    room = MOST - len(first) - len(last) - len(missing)
    return [*first, *_shapes(facts, one)[:room], *missing, *last]


def _words(facts: Facts, column: Column | None = None) -> Words:
    settings = facts.settings
    unit = "" if column is None else column.unit
    dates = column is not None and not column.is_group and column.parts[0].dtype.kind == "M"

    def place(value: float) -> str:
        if dates:
            return shown_value((pd.Timestamp(0) + pd.Timedelta(days=value)).normalize())
        return with_unit(raw(_round(float(value), column), 12), unit)

    per = "day" if dates else unit
    return Words(settings.output_unit, per, place, not settings.include_data)


def _round(value: float, column: Column | None) -> float:
    """Round a value of a column to about three digits of its range."""
    x = np.empty(0) if column is None else _numbers(column.parts[0])
    x = x[np.isfinite(x)]
    size = float(np.ptp(x)) if len(x) else 0.0
    if size == 0:
        return value
    whole = (x == np.round(x)).all()  # such as numbers of rooms
    places = 2 - int(np.floor(np.log10(size)))
    return round(value, min(places, 0) if whole else places)


def _level(facts: Facts, one: Explanation) -> Sentence:
    words = _words(facts)
    base = float(np.ravel(one.base_value)[0])
    what = explains(one)
    many = "are" if what.startswith("log-odds") else "is"
    the = "the model gives" if what in ("prediction", "output") else f"the {what} {many}"
    n = facts.explainer.n_background_
    rows = "row" if n == 1 else f"{count(n)} rows"
    text = f"Over the background, the {rows} that all others are compared with, {the} "
    if one.predictions is None:
        return Sentence(f"{text}{_plain(base, words)} on average.", "beeswarm", "all values")
    low, high = float(one.predictions.min()), float(one.predictions.max())
    mean, least, most = (_plain(each, words, high - low) for each in (base, low, high))
    text += f"{mean} on average; over the rows explained, from {least} to {most}"
    return Sentence(f"{text}.", "beeswarm", "all values")


def _plain(value: float, words: Words, spread: float = 0.0) -> str:
    """Return a prediction, in no more digits than three of their spread."""
    if spread > 0:
        value = round(value, max(0, 2 - int(np.floor(np.log10(spread)))))
    return with_unit(digits(value, 4), words.output_unit)


def _drivers(facts: Facts) -> Sentence:
    size, words = facts.size, _words(facts)
    if not size.sum() > 0:
        text = f"No column moves the prediction: the effects of all {count(len(size))} are 0."
        return Sentence(text, "importance", "importance")
    order = [j for j in np.argsort(-size, kind="stable") if size[j] > 0]
    first, *others = order
    name = facts.columns[first].quoted
    about = facts.columns[first].description
    name += f" ({about})" if about else ""
    text = f"{name} drives the model most: it moves the prediction by {words.amount(size[first])} "
    text += f"on average, {percent(size[first] / size.sum())} of all effects"
    next_two = [f"{facts.columns[j].quoted} ({words.amount(size[j])})" for j in others[:2]]
    if next_two:
        text += f"; then {' and '.join(next_two)}"
    return Sentence(f"{text}.", "importance", "importance")


def _shapes(facts: Facts, one: Explanation) -> list[Sentence]:
    size = facts.size
    order = sorted(facts.top, key=lambda j: -size[j])[:SHAPES]
    described = [
        j for i, j in enumerate(order) if size[j] > 0 and (i == 0 or _share(size, j) >= LEAST)
    ]
    return [Sentence(f"{_shape(facts, one, j)}.", facts.anchor(j), "curve") for j in described]


def _share(size: np.ndarray, j: int) -> float:
    return float(size[j] / size.sum())


def _shape(facts: Facts, one: Explanation, j: int) -> str:
    column, values = facts.columns[j], one.values[:, j]
    words = _words(facts, column)
    if column.is_group or not _depends_on_own_value(facts.explainer):
        return _range(column, values, words)
    if column.is_level:
        return _levels(column, values, words)
    there = ~column.missing
    x = _numbers(column.parts[0])
    there &= np.isfinite(x)
    if not there.any():
        return _range(column, values, words)
    x, at = np.unique(x[there], return_index=True)
    v = values[there][at]
    if there.sum() >= MANY:
        low, high = np.quantile(_numbers(column.parts[0])[there], [TRIMMED, 1 - TRIMMED])
        middle = (x >= low) & (x <= high)
        x, v = x[middle], v[middle]
    if len(x) < 2:
        return _range(column, values, words)
    error = 0.0 if one.std_error is None else float(one.std_error[:, j].max())
    return f"The effect of {column.quoted} {shape_of_numbers(x, v, _spread(one), words, error)}"


def _spread(one: Explanation) -> float:
    return float(np.std(one.values.sum(axis=1) if one.predictions is None else one.predictions))


def _depends_on_own_value(explainer: Any) -> bool:
    return all(term.depends != "row" for _, term in as_terms(explainer.measure_))


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a column as numbers: days of dates, seconds of durations."""
    if column.dtype.kind == "m":
        return column.dt.total_seconds().to_numpy()
    if column.dtype.kind == "M":
        naive = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        return ((naive - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy()
    return frames.to_float(column)


def _range(column: Column, values: np.ndarray, words: Words) -> str:
    text = f"The effect of {column.quoted} goes from {words.signed(values.min())} to "
    text += words.signed(values.max())
    if column.is_group or column.is_level:
        return text
    x = _numbers(column.parts[0])
    there = np.isfinite(x)
    if len(np.unique(x[there])) < 2 or np.ptp(values[there]) == 0:
        return text
    ranks = [pd.Series(each[there]).rank() for each in (x, values)]
    rank = float(np.corrcoef(*ranks)[0, 1])
    if abs(rank) < 0.3:
        return f"{text} and has no clear direction (rank correlation {raw(rank, 2)})"
    way = "rises" if rank > 0 else "falls"
    if abs(rank) > CLEAR:
        size = raw(CLEAR if rank > 0 else -CLEAR, 2)
        side = "above" if rank > 0 else "below"
        return f"{text} and {way} with its value (rank correlation {side} {size})"
    return f"{text} and mostly {way} with its value (rank correlation {raw(rank, 2)})"


def _levels(column: Column, values: np.ndarray, words: Words) -> str:
    levels, means = column.level_means(values)
    known = levels != "missing"
    levels, means = levels[known], means[known]
    if len(means) < 2:
        return _range(column, values, words)
    high, low = int(np.argmax(means)), int(np.argmin(means))
    size = words.amount(means[high] - means[low])
    if words.private:
        return f"The effect of {column.quoted} differs by {size} between its {len(means)} levels"
    if {*levels} == {"False", "True"}:
        side = "higher" if levels[high] == "True" else "lower"
        return (
            f"The effect of {column.quoted} is {size} {side} where it is True than where it is not"
        )
    return (
        f"The effect of {column.quoted} is highest at {levels[high]} ({words.signed(means[high])}) "
        f"and lowest at {levels[low]} ({words.signed(means[low])})"
    )


def _missing(facts: Facts, one: Explanation) -> list[Sentence]:
    """Return a sentence on the column whose missing values matter most, if they do."""
    spread, effects = _spread(one), []
    for j in facts.top:
        gone = facts.columns[j].missing
        if gone.any() and not gone.all():
            values = one.values[:, j]
            effects.append((float(values[gone].mean() - values[~gone].mean()), j))
    if not effects:
        return []
    effect, j = max(effects, key=lambda each: abs(each[0]))
    if abs(effect) < MATTERS * spread or effect == 0:
        return []
    column, words = facts.columns[j], _words(facts)
    side = "higher" if effect > 0 else "lower"
    text = (
        f"Where {column.quoted} is missing ({count(column.missing.sum())} rows), its effect is "
        f"{words.amount(effect)} {side} than elsewhere."
    )
    return [Sentence(text, facts.anchor(j), "curve")]


def _together(facts: Facts, one: Explanation) -> Sentence:
    interactions = facts.interactions
    if interactions is not None:
        text = f"Single columns explain {interactions.single} of the variance of the predictions"
        if interactions.pairs:
            name, part, _ = interactions.pairs[0]
            text += f"; the strongest pair, {name}, has {part} of it together"
        else:
            text += ", and no pair of columns reaches 0.1 %"
        return Sentence(f"{text}.", "interactions", "interactions")
    if one.predictions is None:
        text = "Whether the 100 % of a prediction is explained is not known: there are none."
        return Sentence(text, "checks", "checks")
    _, size, spread = remainder(one)
    share = size / spread if spread > 0 else 0.0
    if one.adds_up():
        return Sentence(
            "The effects of a row add up to its prediction: they explain 100 % of it.",
            "row",
            "one row",
        )
    text = "The effects of a row do not add up to its prediction: "
    text += as_large(one.remainder_name, percent(share))
    return Sentence(f"{text}.", "checks", "checks")


def _accuracy(one: Explanation, unit: str) -> Sentence:
    if one.exact or one.std_error is None:
        text = f"All {count(one.values.size)} effects are exact: nothing was sampled"
        if one.background_error is not None:
            error = with_unit(small(2 * float(np.median(one.background_error))), unit)
            text += f"; with other background rows, they would move by {error} (the "
            text += "median of two standard errors)"
        return Sentence(f"{text}.", "checks", "checks")
    largest, spread = float(one.std_error.max()), _spread(one)
    text = f"The effects are approximate: the largest standard error is {small(largest)}"
    if spread > 0:
        text += f", {percent(largest / spread, 1)} of the spread of the predictions"
    return Sentence(f"{text}.", "checks", "checks")


def _care(notes: list[Note]) -> Sentence:
    careful = [note for note in notes if note.verdict == "look"]
    if not careful:
        return Sentence("There are 0 warnings.", "warnings", "warnings")
    titles = "; ".join(note.title[:1].lower() + note.title[1:] for note in careful)
    n = "is 1 warning" if len(careful) == 1 else f"are {len(careful)} warnings"
    return Sentence(f"Be careful, there {n}: {titles}.", "warnings", "warnings")
