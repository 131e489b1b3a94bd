"""Pieces made of functions of one raw column each: the way from raw columns to their inputs."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.base import Pieces
from skattr.pieces.cells.levels import MISSING_VALUES, unknown_level
from skattr.pieces.outputs import Output
from skattr.pieces.parts import Expansion, rounding_of
from skattr.pieces.preprocessing.pipeline import preprocessings
from skattr.pieces.preprocessing.tracks import Kind, Track

P = TypeVar("P", bound=Expansion)


class Columnwise(Pieces, Generic[P]):
    """A sum of parts, each behind its own steps, which work column by column."""

    def __init__(self, parts: list[P], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.parts = [part.select(output.columns) for part in parts]
        self.names = frames.labels(row)
        self.constant = np.sum([part.constant for part in self.parts], axis=0)
        self.chains = preprocessings(parts, row)
        self.tracks = [self._tracks(part) for part in parts]

    def _tracks(self, part: P) -> list[Track]:
        """Return what each input of a part is, as a function of a raw column."""
        steps = self.chains[part.chain]
        columns = part.front.columns.tolist()
        tracks = [Track(c) if steps is None else steps.tracks[c] for c in columns]
        return [part.front.track(c, track) for c, track in enumerate(tracks)]

    def inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all parts; each chain of steps runs once."""
        memo: dict = {}
        tables = {
            chain: X if steps is None else steps.transform(X, wanted, memo=memo)
            for chain, steps in self.chains.items()
        }
        return [part.front.inputs(tables[part.chain]) for part in self.parts]

    @property
    def behind_steps(self) -> bool:
        """Whether some part has steps before it."""
        return any(steps is not None for steps in self.chains.values())

    def tracks_of(self, k: int) -> list[Track]:
        """Return the tracks of the inputs that come from a raw column."""
        return [track for tracks in self.tracks for track in tracks if track.column == k]

    def rounding(self, inputs: list) -> float:
        """Return the relative error of the model's arithmetic, with inputs of their dtypes."""
        return max([p.rounding for p in self.parts] + [rounding_of(v.dtype) for v in inputs])

    @property
    @override
    def levels(self) -> np.ndarray:
        """Whether the fitted steps treat each column as levels, (d,)."""
        kinds: list[set] = [set() for _ in self.names]
        for track in (track for tracks in self.tracks for track in tracks):
            kinds[track.column].add(track.kind)
        both = {Kind.LEVELS, Kind.MISSING}
        return np.array([Kind.LEVELS in some and some <= both for some in kinds], bool)

    @override
    def level_values(self, k: int) -> tuple[list, list, list] | None:
        if not self.levels[k]:
            return None
        tracks = self.tracks_of(k)
        values = [value for track in tracks for value in (*track.known, *track.replaced)]
        known = list(dict.fromkeys(v for v in values if not frames.is_missing(v)))
        missing = [v for v in MISSING_VALUES if not any(track.refuses(v) for track in tracks)]
        other = unknown_level(known)
        refused = other is None or any(track.refuses(other) for track in tracks)
        return known, missing, [] if refused else [other]

    def cuts(self, k: int) -> np.ndarray:
        """Return the points where the functions of a column are known to jump or have a kink."""
        tracks = self.tracks_of(k)
        cuts = [cut for track in tracks if track.kind == Kind.CUTS for cut in track.known]
        return np.unique([*cuts, *(point for track in tracks for point in track.breaks or ())])

    def is_known(self, k: int) -> bool:
        """Tell whether these functions are smooth except at known points; they may have poles."""
        tracks = self.tracks_of(k)
        return all(track.kind != Kind.FREE and track.breaks is not None for track in tracks)

    @override
    def without_table(self) -> list[int]:
        """Return the columns that are numbers."""
        return np.flatnonzero(~self.levels).tolist()

    @override
    def preprocessings(self) -> list:
        return [steps for steps in self.chains.values() if steps is not None]
