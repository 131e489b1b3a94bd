"""The version of skattr that wrote a pickle."""

from __future__ import annotations

import re

from skattr._utils.messages import warn
from skattr._version import __version__


def check_version(written: str | None, what: str) -> None:
    """Compare the version that pickled an object with this one.

    A newer one is refused, an older one gives a warning: its fitted state may lack what this
    version reads.

    Examples
    --------
    >>> check_version("99.0.0", "MeasureExplainer")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: this MeasureExplainer was pickled by skattr 99.0.0, which is newer than this ...
    """
    if written == __version__:
        return
    by = f"this {what} was pickled by skattr {written or 'of an unknown version'}"
    if written is not None and _numbers(written) > _numbers(__version__):
        raise ValueError(
            f"{by}, which is newer than this skattr {__version__}: install skattr {written}, or "
            "fit it again"
        )
    warn(
        f"{by}, this is skattr {__version__}: fit it again if it does not work",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
