"""Processes that tests start: waiting for what they do, and interrupting them."""

import signal
import time


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
