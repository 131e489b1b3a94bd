"""Processes and conditions that tests wait for: never for ever, and a clear failure at the end.

A process leads a session of its own. What it started ends with it, also where it forked while
threads held locks, and nothing keeps the pipes of the tests open.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

SECONDS = 600  # no test comes near it

# A shell that starts the tests in the background has SIGINT ignored, which children inherit. This
# runs in a process of its own: between fork and exec, no Python code is safe if there are threads.
HEAR_INTERRUPTS = """import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(command, seconds=SECONDS, **options):
    """Run a command to its end, and return its code and what it printed."""
    pipe = subprocess.PIPE
    with Process(command, stdout=pipe, stderr=pipe, seconds=seconds, **options) as process:
        printed, said = process.finish()
    return subprocess.CompletedProcess(command, process.returncode, printed, said)


def run_code(code, *arguments, **options):
    """Run Python code in a fresh process."""
    return run([sys.executable, "-c", code, *arguments], **options)


class Process(subprocess.Popen):
    """A process that reads nothing; what it leaves behind is killed at the end of `with`.

    After `seconds` it is killed in any case, so that reading from its pipes comes to an end.
    """

    def __init__(self, command, seconds=SECONDS, interruptible=False, **options):
        if interruptible:
            command = [sys.executable, "-c", HEAR_INTERRUPTS, *command]
        options = {"text": True, "stdin": subprocess.DEVNULL, **options}
        super().__init__(command, start_new_session=os.name != "nt", **options)
        self.seconds = seconds
        self.guard = threading.Timer(seconds, self.kill_all)
        self.guard.daemon = True
        self.guard.start()

    def finish(self):
        """Wait for the end, and return what was printed; fail if it does not come."""
        self.guard.cancel()
        try:
            return self.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired as late:
            self.kill_all()
            pytest.fail(
                f"{self.args} ran for more than {self.seconds} s; it said {late.stderr!r:.3000}"
            )

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
        self.guard.cancel()
        self.kill_all()
        return super().__exit__(*error)


def wait_until(condition, what, alive=lambda: True, seconds=300):
    """Return when `condition()` holds; fail if it takes too long or nobody is left to do it."""
    end = time.monotonic() + seconds
    while not condition():
        assert alive(), f"what was waited for has ended: {what}"
        assert time.monotonic() < end, f"waited {seconds} s: {what}"
        time.sleep(0.01)


def run_threads(functions, seconds=SECONDS):
    """Run functions side by side to their end; one that hangs fails, and is left behind."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
        assert not thread.is_alive(), f"a thread ran for more than {seconds} s"
