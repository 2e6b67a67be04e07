"""Intervals that each take a share of something: how much of it is taken over time, all together."""

from __future__ import annotations

import numpy as np

from nsysdiag.timeline.intervals import IntArray, Intervals, coverage


def taken(spans: Intervals, weights: list[IntArray], most: int, parts: Intervals) -> list[float]:
    """For each of the weights: the sum of the weights of all spans that are open, never above `most`, times its ns,
    added up over the set `parts`. Spans run forward, weights are from 0 up.

    ```
    spans      [---- 4 ----)
                     [---- 5 ----)
    sum        4     9     5           most 8:  6 x 4  +  6 x 8  +  6 x 5
    ```
    """
    if not len(spans) or not len(parts):
        return [0.0 for _ in weights]
    low, high = int(parts.start[0]), int(parts.end[-1])
    by_start, by_end = _sorted(spans.start), _sorted(spans.end)
    # Ends and starts are two sorted runs: a stable sort merges them.
    times = np.clip(np.concatenate((spans.end[by_end], spans.start[by_start])), low, high)
    order = np.argsort(times, kind="stable")
    # As floats: share times ns may be beyond 64 bits, and a sum of whole levels is exact before it comes to that.
    length = _lengths(times[order], high, parts).astype(np.float64)
    return [
        float(np.minimum(np.cumsum(np.concatenate((-weight[by_end], weight[by_start]))[order]), most) @ length)
        for weight in weights
    ]


def _sorted(times: IntArray) -> slice | IntArray:
    """What puts times in order: nothing where they are."""
    return slice(None) if np.all(times[1:] >= times[:-1]) else np.argsort(times, kind="stable")


def _lengths(time: IntArray, high: int, parts: Intervals) -> IntArray:
    """How long each step lasts inside the parts."""
    steps = Intervals(time, np.append(time[1:], high))
    return steps.end - steps.start if len(parts) == 1 else coverage(parts, steps)
