"""`python -m skattr` is the command `skattr`."""

import sys

from skattr.cli import main

if __name__ == "__main__":
    sys.exit(main())
