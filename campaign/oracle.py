"""Random cases against the definition: models × measures × weights × groups."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from campaign.results import Result
from tests.cases import CASES, COALITIONS, MASSLESS, MEASURES, exists, is_small, make_case
from tests.helpers.case import Case
from tests.helpers.comparison import oracle_of, same
from tests.helpers.random_cases import groups_of, weights_of

TABLE = MEASURES | COALITIONS | MASSLESS
SHARED = 8  # consecutive seeds that share a model, which is fitted once
BLOCK = 25 * SHARED  # cases that a worker takes at a time
TOLD = 5000  # cases after which a line says how far it is


def run(options: argparse.Namespace) -> Result:
    """Compare `--cases` random cases with the oracle, one for each seed, in `--jobs` processes."""
    result, seconds = Result("oracle"), 0.0
    last = options.seed + options.cases
    blocks = list(_blocks(options.seed, last))
    at_a_time = TOLD // BLOCK
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for start in range(0, len(blocks), at_a_time):
            some = blocks[start : start + at_a_time]
            for part in parallel(joblib.delayed(_block)(seeds, options.verbose) for seeds in some):
                result.tried += part.tried
                result.failures += part.failures
                seconds += float(part.measured)
            if options.cases > TOLD:
                print(
                    f"oracle: {result.tried:,} of {options.cases:,} cases, "
                    f"{len(result.failures)} failed, {seconds:.0f} s",
                    flush=True,
                )
    result.measured = f"seeds {options.seed} to {last - 1}"
    if options.jobs > 1:
        result.measured += f"; {seconds:.0f} s in {options.jobs} processes"
    return result


def _blocks(first: int, last: int) -> Iterator[range]:
    """Yield ranges of seeds; those that share a model stay together."""
    while first < last:
        end = min((first // BLOCK + 1) * BLOCK, last)
        yield range(first, end)
        first = end


def _block(seeds: range, verbose: bool) -> Result:
    """Compare the cases of some seeds; `measured` is the processor time."""
    result, start = Result("oracle"), time.process_time()
    with threadpool_limits(1):  # the models are small: threads would only wait for each other
        for seed in seeds:
            _try(seed, verbose, result)
    result.measured = str(time.process_time() - start)
    return result


def _try(seed: int, verbose: bool, result: Result) -> None:
    """Compare the case of a seed."""
    name = model_of(seed)
    kind = "no measure yet"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = make_case(name, seed // SHARED)
            weight = weights_of(case, seed)
            kind = measure_of(case, weight, seed)
            if verbose:
                print(f"seed {seed}: {name}, {kind}", flush=True)
            _compare(case, kind, weight, seed)
        result.check(True, "")
    except Exception as error:  # any error is a finding
        result.check(False, f"seed {seed}: {name}, {kind}: {type(error).__name__}: {error}")


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
