"""Docstrings for the site: bars are bars, and scikit-learn's plumbing is left out.

`|phi|` is an absolute value, which reStructuredText would take for a substitution.
"""

import re
from typing import Any

from sphinx.application import Sphinx

PLUMBING = {"get_metadata_routing", "get_params", "set_output", "set_params"}
LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def escape_bars(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape | outside of examples and of literals."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example and "|" in line:
            parts = LITERAL.split(line)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def skip_plumbing(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what every estimator of scikit-learn has."""
    return True if name in PLUMBING or re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> dict:
    """Connect both."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_plumbing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
