"""Tables of curves and surfaces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from skattr._inputs import frames


def with_values(
    frame: pd.DataFrame, values: np.ndarray, output_names: Sequence[str]
) -> pd.DataFrame:
    """Add values (m, k) to a frame: the column `value`, or one column `value_<output>` each."""
    if len(output_names) == 1:
        return frame.assign(value=values[:, 0])
    names = [*frame, *(f"value_{name}" for name in output_names)]
    whole = pd.concat([frame, pd.DataFrame(values, index=frame.index)], axis=1)
    return whole.set_axis(frames.as_index(names), axis=1)
