"""A headless Chromium, driven over its debugging pipe: JSON in, JSON out, no package needed."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

# Chromium reads its orders from descriptor 3 and answers on 4
LAUNCH = """import os, sys
r, w, *command = sys.argv[1:]
os.dup2(int(r), 3)
os.dup2(int(w), 4)
os.execvp(command[0], command)
"""
SECONDS = 180  # that one order may take, on a machine with other work
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    """Return the browser's command; skip, or fail if it is required, where there is none."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None and os.environ.get("SKATTR_BROWSER") == "required":
        pytest.fail("SKATTR_BROWSER=required, but there is no chromium")
    if found is None:
        pytest.skip("no chromium to open the report in")
    return found


class Browser:
    """One process with one page."""

    def __init__(self):
        command = find_browser()
        self.folder = tempfile.mkdtemp()
        theirs, ours = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs[0], ours[1])]
        self.write_end, self.read_end = theirs[1], ours[0]
        self.log = open(os.path.join(self.folder, "log"), "wb")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking",
                 f"--user-data-dir={self.folder}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, ends), command, *flags],
            pass_fds=ends, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        for fd in (theirs[0], ours[1], *ends):
            os.close(fd)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        try:
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self):
        """Open the page that is there, and ask for its events."""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Send one order and return its answer; events are kept."""
        self.number += 1
        order = {"id": self.number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.write_end, json.dumps(order).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            message = self.receive(end)
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.events.append(message)

    def receive(self, end):
        """Return the next message; fail if none comes before the end."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            data = os.read(self.read_end, 2**16) if ready else b""
            assert data, "chromium says nothing" if not ready else "chromium has ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, scripts=True):
        """Load a file and wait until it is there."""
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        end = time.monotonic() + SECONDS
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive(end))

    def run(self, expression, wait=False):
        """Evaluate JavaScript and return its value; `wait`: that of a promise."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=wait
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def choose(self, name, value):
        """Give a field or a list a value, as a user does."""
        field, text = f"document.getElementById({name!r})", json.dumps(str(value))
        self.run(f"{field}.value = {text}")
        for event in ("input", "change"):
            self.run(f"{field}.dispatchEvent(new Event('{event}'))")

    def key(self, name, code, text=""):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    def requests(self):
        """Return the addresses that were asked for, without the page and data URIs."""
        sent = [e["params"]["request"]["url"] for e in self.events
                if e.get("method") == "Network.requestWillBeSent"]  # fmt: skip
        return [url for url in sent if not url.startswith(("data:", "file://"))]

    def problems(self):
        """Return exceptions, console errors and log entries."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [e for e in self.events if e.get("method") in kinds
                or (e.get("method") == "Runtime.consoleAPICalled"
                    and e["params"]["type"] in ("error", "assert", "warning"))]  # fmt: skip

    def close(self):
        """End the process that was started here."""
        try:
            self.session = None
            self.call("Browser.close")
        except (AssertionError, OSError):
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        for fd in (self.write_end, self.read_end):
            os.close(fd)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
