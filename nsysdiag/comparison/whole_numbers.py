"""Means as whole numbers that still add up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def adding_up(values: npt.NDArray[np.float64], total: int) -> list[int]:
    """Each of the values from 0 up as a whole number next to it, so that all add up to `total`, which they do but for
    rounding: the largest remainders are rounded up. Of none, none.

    ```
    1.4 + 2.4 + 3.2 = 7   ->   2 + 2 + 3
    ```
    """
    if len(values) == 0:
        return []
    whole = np.floor(values).astype(np.int64)
    left = total - int(whole.sum())
    if 0 <= left <= len(whole):
        whole[np.argsort(whole - values, kind="stable")[:left]] += 1
    else:  # more than rounding: the largest takes it
        whole[int(np.argmax(values))] += left
    return [int(each) for each in whole]
