"""Pictures of explanations and curves (needs matplotlib: pip install 'skattr[plot]').

Every function takes `ax=`, returns Axes and never calls show. Values are centred by default, and
the axis says so. Names are drawn as they are, never as mathematics.
"""

from skattr.plot.bars import bar
from skattr.plot.comparison import compare
from skattr.plot.contributions import waterfall
from skattr.plot.curves import curve
from skattr.plot.heat import heatmap
from skattr.plot.polygons import regions
from skattr.plot.swarm import beeswarm

__all__ = ["bar", "beeswarm", "compare", "curve", "heatmap", "regions", "waterfall"]


def __dir__() -> list[str]:
    return [*__all__]
