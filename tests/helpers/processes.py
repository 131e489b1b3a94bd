"""Processes and conditions that tests wait for: never for ever, and a clear failure at the end.

A process leads a session of its own. What it started ends with it, also where it forked while
threads held locks, and nothing keeps the pipes of the tests open.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

SECONDS = 600  # no test comes near it


def run(command, seconds=SECONDS, **options):
    """Run a command to its end, and return its code and what it printed."""
    with Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        printed, said = process.finish(seconds)
    return subprocess.CompletedProcess(command, process.returncode, printed, said)


def run_code(code, *arguments, **options):
    """Run Python code in a fresh process."""
    return run([sys.executable, "-c", code, *arguments], **options)


class Process(subprocess.Popen):
    """A process that reads nothing; what it leaves behind is killed at the end of `with`."""

    def __init__(self, command, **options):
        options = {"text": True, "stdin": subprocess.DEVNULL, **options}
        super().__init__(command, start_new_session=os.name != "nt", **options)

    def finish(self, seconds=SECONDS):
        """Wait for the end, and return what was printed; fail if it does not come."""
        try:
            return self.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            self.kill_all()
            pytest.fail(f"{self.args} ran for more than {seconds} s; it said {late.stderr!r:.3000}")

    def kill_all(self):
        """Kill the process and those that it started and left in its session."""
        if os.name == "nt":
            self.kill()
        else:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

    def __exit__(self, *error):
        self.kill_all()
        return super().__exit__(*error)


def wait_until(condition, what, alive=lambda: True, seconds=300):
    """Return when `condition()` holds; fail if it takes too long or nobody is left to do it."""
    end = time.monotonic() + seconds
    while not condition():
        assert alive(), f"what was waited for has ended: {what}"
        assert time.monotonic() < end, f"waited {seconds} s: {what}"
        time.sleep(0.01)


def hear_interrupts():
    """As `preexec_fn`: a shell that starts the tests in the background has SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
