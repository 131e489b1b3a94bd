"""skattr: feature attributions as integrals of the model against a measure of your choice."""

from skattr._version import __version__
from skattr.curves import Curve
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation

__all__ = ["Curve", "Explanation", "MeasureExplainer", "__version__", "write_report"]


def write_report(*args: object, **kwargs: object) -> None:
    """Write one HTML report; not built yet."""
    raise NotImplementedError("write_report is not built yet; use Explanation.to_frame()")
