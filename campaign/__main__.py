"""Run the campaign, or parts of it; the last output is a table."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from importlib import import_module

from campaign import __doc__ as parts
from campaign.results import Result, table

PARTS = ("oracle", "strings", "inputs", "faults", "workers", "growth", "memory")


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that were asked for; return 1 if something failed."""
    parser = argparse.ArgumentParser(
        "python -m campaign", description=parts, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--cases", type=int, default=200, help="random cases (200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes for random cases (1)")
    parser.add_argument("--full", action="store_true", help="large sizes: ten million rows, …")
    parser.add_argument("--axes", nargs="+", help="growth in these only: columns, trees, …")
    parser.add_argument("--minutes", type=float, help="stop a part that takes longer")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    options = parser.parse_args(arguments)
    results = []
    for part in options.only:
        start = time.process_time()
        if options.minutes:  # says where every thread is
            faulthandler.dump_traceback_later(60 * options.minutes, exit=True)
        try:
            result: Result = import_module(f"campaign.{part}").run(options)
        except Exception as error:  # one part must not hide the others
            result = Result(part)
            result.check(False, f"{type(error).__name__}: {error}")
        faulthandler.cancel_dump_traceback_later()
        result.measured += f"; {time.process_time() - start:.0f} s of processor time"
        results.append(result)
        for failure in result.failures:
            print(f"FAILED {part}: {failure}", flush=True)
    print()
    print(table(results))
    return int(any(result.failures for result in results))


if __name__ == "__main__":
    sys.exit(main())
