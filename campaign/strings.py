"""Two hundred hostile strings as columns, levels, classes, index, title and groups of a report."""

from __future__ import annotations

import argparse
import tempfile
import warnings
from html.parser import HTMLParser
from pathlib import Path

from campaign.results import Result
from skattr import write_report
from tests.helpers.hostile import HOSTILE
from tests.helpers.reports import hostile_explainer


class Markup(HTMLParser):
    """What a browser would run or fetch that is not the report's own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.scripts = 0

    @classmethod
    def of(cls, text: str) -> Markup:
        """Read a page."""
        page = cls()
        page.feed(text)
        if page.scripts != 3:  # the report's own, in the head and at the end, and the data
            page.wrong.append(f"{page.scripts} scripts")
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        self.scripts += tag == "script"
        if tag in ("iframe", "object", "embed", "link", "form", "base", "svg", "h4"):
            self.wrong.append(tag)
        for name, value in attrs:
            elsewhere = name in ("src", "href") and not (value or "").startswith(("#", "data:"))
            if name.startswith("on") or name == "style" or elsewhere:
                self.wrong.append(f"{tag} {name}={value!r}"[:80])


def run(options: argparse.Namespace) -> Result:
    """Write reports with ten strings in each place, and look for markup in them."""
    result = Result("strings")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, len(HOSTILE), 20):
            some = list(dict.fromkeys(HOSTILE[start : start + 20]))
            explainer, X = hostile_explainer(some, some, some[:3], some)
            for include_data in (True, False):
                path = Path(folder, "report.html")
                write_report(
                    explainer, X, path, title=some[start % len(some)], include_data=include_data,
                    max_features=3, max_outputs=1,
                )  # fmt: skip
                wrong = Markup.of(path.read_text(encoding="utf-8")).wrong
                for string in some:
                    result.check(not wrong, f"a report with {string[:60]!r} has {wrong}")
    result.measured = f"{len(HOSTILE)} strings, with and without data"
    return result
