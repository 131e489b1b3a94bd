"""Settings of the gallery that need functions."""

import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(tempfile.mkdtemp(prefix="skattr-gallery-"))
ENDINGS = {"report": ".html"}  # what a script writes, if it is not a picture


def reset_argv(gallery_conf: dict, script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments of a script: it writes its file to a temporary folder."""
    name = Path(script_vars["src_file"]).stem
    return [str(FOLDER / (name + ENDINGS.get(name, ".png")))]
