"""Repeats that are layers of a model inside one pass, detected by NVTX ranges that number the layers."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import RowsOf, distinct_values
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.ranges import Kinds

LEAST_REACH, LEAST_NUMBERED, FEWEST_PARTS = 0.5, 0.5, 3


def are_layers(loop: Loop, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, kinds: Kinds) -> bool:
    """Whether each layer of a model repeats less often than `loop` does: its repeats are then layers, not steps.

    ```
    thread   [blocks.3  ][blocks.4  ][blocks.5  ][blocks.6  ]      each part once: repeats are layers of one pass
    device      [repeat    )[repeat    )[repeat    )[repeat    )

    thread   [blocks.0][blocks.1][blocks.0][blocks.1]              each part in every repeat: repeats are steps
    device      [repeat             )[repeat            )
    ```
    """
    if not (kinds.part >= 0).any():
        return False
    launch = device.launch[np.searchsorted(device.operations.start, loop.starts)]
    launch = launch[launch >= 0]
    if len(launch) == 0:
        return False
    begin, end = int(calls.start[launch].min()), int(calls.start[launch].max())
    rows = ranges.rows
    numbered = np.flatnonzero((kinds.part[rows.name] >= 0) & (rows.start >= begin) & (rows.start <= end))
    numbered = numbered[np.isin(rows.thread[numbered], distinct_values(calls.thread[launch]))]
    word, part, start = kinds.code[rows.name[numbered]], kinds.part[rows.name[numbered]], rows.start[numbered]
    of_word = RowsOf(word)
    return any(_slower(part[of_word[each]], start[of_word[each]], len(loop), end - begin) for each in of_word.values())


def _slower(part: IntArray, start: IntArray, repeats: int, reach: int) -> bool:
    """Whether parts that are numbered all over the time of the repeats come at most half as often as these."""
    times = np.unique(part, return_counts=True)[1]
    everywhere = int(start.max() - start.min()) >= LEAST_REACH * reach and len(part) >= LEAST_NUMBERED * repeats
    return everywhere and len(times) >= FEWEST_PARTS and 2 * float(np.median(times)) <= repeats
