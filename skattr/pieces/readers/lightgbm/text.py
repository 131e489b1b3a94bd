"""The text in which LightGBM saves its models."""

from __future__ import annotations

import re

import numpy as np


def parse(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the header of a saved model, and for each field of its trees the lines."""
    above, _, rest = text.partition("\ntree_sizes=")
    head = {}
    for line in above.split("\n"):
        key, _, value = line.partition("=")
        head[key] = value
    fields: dict[str, list[str]] = {}
    for line in rest.partition("\nend of trees")[0].split("\n")[1:]:
        key, equals, value = line.partition("=")
        if equals:
            fields.setdefault(key, []).append(value)
    return head, fields


def flagged_columns(text: str) -> list[int]:
    """Return the columns that the parameters of the training name as categorical."""
    match = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
    return [int(c) for c in match[1].split(",") if c] if match else []


def floats(lines: list[str]) -> np.ndarray:
    """Return all numbers of some lines."""
    return np.array([float(word) for line in lines for word in line.split()])


def integers(lines: list[str]) -> np.ndarray:
    """Return all integers of some lines."""
    return np.array([int(word) for line in lines for word in line.split()], np.int64)
