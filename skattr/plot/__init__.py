"""Pictures of explanations and curves (needs matplotlib: pip install 'skattr[plot]').

Every function takes `ax=`, returns Axes and never calls show. Values are centred by default, and
the axis says so. Names are drawn as they are, never as mathematics.
"""

from skattr.plot.bars import bar
from skattr.plot.comparison import compare
from skattr.plot.contributions import waterfall
from skattr.plot.curves import curve
from skattr.plot.heat import heatmap
from skattr.plot.ice import ice
from skattr.plot.interactions import interactions
from skattr.plot.polygons import regions
from skattr.plot.scatter import scatter
from skattr.plot.slices import slices
from skattr.plot.surfaces import surface
from skattr.plot.swarm import beeswarm

__all__ = [
    "bar", "beeswarm", "compare", "curve", "heatmap", "ice", "interactions", "regions", "scatter",
    "slices", "surface", "waterfall",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
