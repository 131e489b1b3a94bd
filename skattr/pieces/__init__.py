"""f: the user's model, read as a sum of simple pieces."""

from skattr.pieces.additive import Additive
from skattr.pieces.base import Pieces, Unreadable, unwrap
from skattr.pieces.black_box import BlackBox
from skattr.pieces.boxes import Boxes
from skattr.pieces.cells import Cells, Grid
from skattr.pieces.linked import Linked
from skattr.pieces.outputs import Output
from skattr.pieces.products import Products
from skattr.pieces.reading import as_pieces, choose_output
from skattr.pieces.relu import ReluNetwork
from skattr.pieces.sum import Sum

__all__ = [
    "Additive", "BlackBox", "Boxes", "Cells", "Grid", "Linked", "Output", "Pieces", "Products",
    "ReluNetwork", "Sum", "Unreadable", "as_pieces", "choose_output", "unwrap",
]  # fmt: skip
