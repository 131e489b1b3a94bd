"""How good an explanation is, on the user's own model and data."""

from skattr.metrics.faithfulness import Faithfulness, faithfulness

__all__ = ["Faithfulness", "faithfulness"]
