"""Pieces made of functions of one raw column each: the way from raw columns to their inputs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from skattr import frames
from skattr.pieces.base import Pieces
from skattr.pieces.cells import GONE, unknown_level
from skattr.pieces.outputs import Output
from skattr.pieces.pipeline import Preprocessing
from skattr.pieces.steps import CUTS, FREE, LEVELS, MISSING, Track


class Front(Protocol):
    """The checks of a model, and the numbers that it computes with."""

    columns: np.ndarray  # (m,) the column of its table that each input comes from

    def inputs(self, X: Any) -> Any:
        """Return the inputs, (n, m), dense or sparse, or refuse X as `predict` does."""

    def track(self, c: int, track: Track) -> Track:
        """Return what input c is, given the track of its column."""


class Part(Protocol):
    """What a reader finds: a function of the inputs of one front."""

    front: Any
    constant: np.ndarray  # (k,)
    steps: tuple  # fitted steps in front of the front, the outermost first
    rounding: float  # how far the model's own arithmetic may be off


class Columnwise(Pieces):
    """A sum of parts, each behind its own steps, which work column by column."""

    def __init__(self, parts: list, output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.parts = parts
        self.names = frames.labels(row)
        self.constant = np.sum([part.constant for part in parts], axis=0)
        self.chains: dict[tuple, Preprocessing | None] = {}
        for part in parts:
            key = _key(part)
            if key not in self.chains:
                self.chains[key] = Preprocessing(part.steps, row) if part.steps else None
        self.tracks = [self._tracks(part) for part in parts]

    def _tracks(self, part: Part) -> list[Track]:
        """Return what each input of a part is, as a function of a raw column."""
        steps = self.chains[_key(part)]
        columns = part.front.columns.tolist()
        tracks = [Track(c) if steps is None else steps.tracks[c] for c in columns]
        return [part.front.track(c, track) for c, track in enumerate(tracks)]

    def inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all parts; each chain of steps runs once."""
        memo: dict = {}
        tables = {
            key: X if steps is None else steps.transform(X, wanted, memo=memo)
            for key, steps in self.chains.items()
        }
        return [part.front.inputs(tables[_key(part)]) for part in self.parts]

    @property
    def behind_steps(self) -> bool:
        """Whether some part has steps in front of it."""
        return any(chain is not None for chain in self.chains.values())

    def own_tracks(self, k: int) -> list[Track]:
        """Return the tracks of the inputs that come from a raw column."""
        return [track for tracks in self.tracks for track in tracks if track.column == k]

    @property
    def levels(self) -> np.ndarray:
        """Whether a column is one of levels to the fitted steps, (d,)."""
        kinds: list[set] = [set() for _ in self.names]
        for track in (track for tracks in self.tracks for track in tracks):
            kinds[track.column].add(track.kind)
        return np.array([LEVELS in found and found <= {LEVELS, MISSING} for found in kinds], bool)

    def level_values(self, k: int) -> tuple[list, list, list] | None:
        """Return what a column of levels may hold: levels, missing values, and another level.

        The model may refuse all but the levels.
        """
        if not self.levels[k]:
            return None
        tracks = self.own_tracks(k)
        every = [level for track in tracks for level in (*track.known, *track.replaced)]
        known = list(dict.fromkeys(v for v in every if not frames.is_missing(v)))
        gone = [v for v in GONE if not any(track.refuses(v) for track in tracks)]
        other = unknown_level(known)
        refused = other is None or any(track.refuses(other) for track in tracks)
        return known, gone, [] if refused else [other]

    def cuts(self, k: int) -> np.ndarray:
        """Return where the functions of a column are known to jump, or to have a kink."""
        own = self.own_tracks(k)
        cuts = [cut for track in own if track.kind == CUTS for cut in track.known]
        return np.unique([*cuts, *(place for track in own for place in track.breaks or ())])

    def is_known(self, k: int) -> bool:
        """Tell whether these functions are smooth but at known places: they may have poles."""
        own = self.own_tracks(k)
        return all(track.kind != FREE and track.breaks is not None for track in own)

    def without_table(self) -> list[int]:
        """Return the columns that are numbers."""
        return np.flatnonzero(~self.levels).tolist()

    def preprocessings(self) -> list:
        """Return the steps of all parts."""
        return [steps for steps in self.chains.values() if steps is not None]


def _key(part: Part) -> tuple:
    return tuple(map(id, part.steps))
