"""Random cases against the definition: models × measures × weights × groups."""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from campaign.results import Result
from tests.cases import CASES, COALITIONS, MASSLESS, MEASURES, exists, is_small, make_case
from tests.helpers.case import Case
from tests.helpers.comparison import oracle_of, same
from tests.helpers.random_cases import groups_of, weights_of

TABLE = MEASURES | COALITIONS | MASSLESS
SHARED = 8  # consecutive seeds that share a model, which is fitted once


def run(options: argparse.Namespace) -> Result:
    """Compare `--cases` random cases with the oracle, one for each seed."""
    result = Result("oracle")
    for seed in range(options.seed, options.seed + options.cases):
        name = model_of(seed)
        kind = "no measure yet"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case = make_case(name, seed // SHARED)
                weight = weights_of(case, seed)
                kind = measure_of(case, weight, seed)
                if options.verbose:
                    print(f"seed {seed}: {name}, {kind}", flush=True)
                _compare(case, kind, weight, seed)
            result.check(True, "")
        except Exception as error:  # any error is a finding
            result.check(False, f"seed {seed}: {name}, {kind}: {type(error).__name__}: {error}")
    result.measured = f"seeds {options.seed} to {options.seed + options.cases - 1}"
    return result


def model_of(seed: int) -> str:
    """Return the name of a seed's model."""
    return str(np.random.default_rng(seed // SHARED).choice(sorted(CASES)))


def measure_of(case: Case, weight: np.ndarray | None, seed: int) -> str:
    """Return the name of a seed's measure, one of those that exist for the model and its data."""
    kinds = [
        kind
        for kind, tested in sorted(TABLE.items())
        if exists(case, kind, weight) and (kind not in COALITIONS or is_small(case, tested.over))
    ]
    return str(np.random.default_rng(seed).choice(kinds))


def _compare(case: Case, kind: str, weight: np.ndarray | None, seed: int) -> None:
    """Compare one case; every third has groups, where the measure takes them."""
    settings, own = {}, None
    if seed % 3 == 0 and kind not in MASSLESS:
        groups, own = groups_of(case, seed)
        settings = {"groups": groups}
    same(case, TABLE[kind].make(case), weight, own, oracle_of(case, weight), **settings)
