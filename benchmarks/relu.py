"""ReLU networks: ``python -m benchmarks relu [--lines] [--polytopes] [--closed-form]``.

Each part has a file of its own with a function `show(options)`; all parts by default.
"""

import argparse
import importlib

from benchmarks.timing import summarize

# option -> module
PARTS = {
    "lines": "benchmarks.relu_lines",
    "polytopes": "benchmarks.relu_polytopes",
    "closed-form": "benchmarks.relu_closed_form",
}


def main(arguments):
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks relu", description=__doc__)
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true")
    options = vars(parser.parse_args(arguments))
    chosen = [part for part in PARTS if options[part.replace("-", "_")]]
    checks = []
    for part in chosen or PARTS:
        checks += importlib.import_module(PARTS[part]).show(options)
    summarize(checks)
