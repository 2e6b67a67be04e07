"""Who usually ends the waits of a group: a thread in a call of one name."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.roots.candidates import Pairs, group_and_thread, two_best
from nsysdiag.timeline.intervals import BoolArray, FloatArray, IntArray

REPEATED = 5
ALWAYS = 0.8
STANDS_OUT = 0.25


def usual_callers(pairs: Pairs, close: BoolArray, chance: FloatArray, group: IntArray, length: IntArray) -> IntArray:
    """For each wait, `length` ns long, the thread that is in a pair with nearly every wait of its group, more than any
    other and than its `chance` (of each pair) to be there; 0 where there is none. Several of its pairs must be `close`:
    who never calls right before the end ends nothing. No pair occurs twice. Long waits count for more."""
    of_group = np.zeros(int(group.max(initial=0)) + 1, dtype=np.int64)
    if len(pairs):
        weight = length.astype(np.float64)
        key, _ = group_and_thread(pairs, group)
        # A row for each group and thread.
        hits, spent = np.bincount(key), np.bincount(key, weights=weight[pairs.wait])
        near = np.bincount(key, weights=close)
        expected = np.bincount(key, weights=chance * weight[pairs.wait]) / np.maximum(spent, 1)
        owner, thread = np.zeros((2, len(hits)), dtype=np.int64)
        owner[key], thread[key] = group[pairs.wait], pairs.thread
        rate = spent / np.maximum(np.bincount(group, weights=weight)[owner], 1)
        usual = stands_out(owner, rate, expected) & (hits > REPEATED) & (near >= REPEATED)
        of_group[owner[usual]] = thread[usual]
    result: IntArray = of_group[group]
    return result


def stands_out(owner: IntArray, rate: FloatArray, chance: FloatArray) -> BoolArray:
    """Of each owner's rows the one whose rate is high, and above chance by more than that of any other."""
    lift = rate - chance
    best, second = two_best(owner, lift)
    result: BoolArray = (rate >= ALWAYS) & (lift == best[owner])
    return result & (lift - np.maximum(second, 0)[owner] >= STANDS_OUT)
