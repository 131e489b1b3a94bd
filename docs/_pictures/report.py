"""Take the pictures of the demo's report: the first page, a column, and a row.

Run it in the root of the repository, where Chromium is installed:
python -m docs._pictures.report docs
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.helpers.browser import Browser

WIDTH = 1100  # pixels
PICTURES = {  # name -> the tab, the height, where it begins, and what is done before
    "report": ("overview", 1500, None, ""),
    "report-columns": (
        "columns",
        1000,
        "#features",
        """const svg = document.querySelector('.chart svg');
        const box = svg.getBoundingClientRect();
        const at = {clientX: box.left + 0.54 * box.width, clientY: box.top + 60};
        svg.dispatchEvent(new PointerEvent('pointermove', at));""",
    ),
    "report-row": (
        "rows",
        1000,
        "#row",
        """const range = document.getElementById('if-range');
        range.stepUp(5);
        range.dispatchEvent(new Event('input'));""",
    ),
}


def take(browser, page, folder):
    """Write all pictures of a page into a folder."""
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    for name, (tab, height, start, act) in PICTURES.items():
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=WIDTH,
            height=3000,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.open(page)
        browser.run(f"document.querySelector('#tabs a[href=\"#{tab}\"]').click()")
        browser.run("new Promise(done => setTimeout(done, 300))", wait=True)
        browser.run(f"(() => {{{act}}})()")
        top = browser.run(f"document.querySelector('{start}').offsetTop - 60") if start else 0
        clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
        taken = browser.call("Page.captureScreenshot", format="png", clip=clip)
        (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        page = Path(temporary) / "report.html"
        subprocess.run([sys.executable, "-m", "skattr", "demo", "--out", str(page)], check=True)
        browser = Browser()
        try:
            take(browser, page, sys.argv[1])
        finally:
            browser.close()
