"""One explanation as one HTML file that opens anywhere, offline."""

from skattr.report.write import write_report

__all__ = ["write_report"]
