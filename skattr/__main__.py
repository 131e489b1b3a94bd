"""The command `skattr`, and `python -m skattr`. Imports nothing before it can be interrupted."""

import sys


def main() -> int:
    """Run the command; returns its exit code."""
    try:
        from skattr import cli

        return cli.main()
    except KeyboardInterrupt:  # while its modules were imported
        sys.stderr.write("skattr: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
