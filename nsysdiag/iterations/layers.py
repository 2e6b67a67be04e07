"""Kinds of layers in a step: those of models that alternate, such as sliding and global attention, or dense and MoE.

```
step      | e |a g m n q|A g m n q|a g m n q|A g m n h|       four layers, 2 + 2: with `a`, and with `A`
```

A layer of a transformer attends once: from one attention to the next is as much as a layer. Which kernels are between
shows its kind, but for the last of them, which are of the next layer; the last layer is followed by the head.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.iterations.begins import Sequence
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import Loop

FEWEST_LAYERS, MOST_KINDS = 4, 3
OF_NEXT = 3
"""Of the operations from one attention to the next, a third at most are of the next layer."""

Kernels = tuple[int, ...]


def with_layers(loop: Loop, happened: Happened) -> Loop:
    """The loop with the number of layers of each kind in a step, where there are several."""
    found = Sequence.of(loop, happened) if loop.closed and happened.attention else None
    return loop if found is None else replace(loop, layers=_by_kind(found.usual, happened.attention))


def _by_kind(usual: IntArray, attention: frozenset[int]) -> tuple[int, ...]:
    """How many layers are of each kind, in the order of the first of each; empty where all are of one kind, or not all
    are layers of one pass. What has the kernels of another kind and more is the end of a pass, such as a head."""
    at = np.flatnonzero(np.isin(usual, list(attention)))
    first = at[np.diff(at, prepend=-2) > 1]
    if len(first) < FEWEST_LAYERS:
        return ()
    before, *layers, last = (tuple(each.tolist()) for each in np.split(usual, first))
    own = [each[: len(each) - min(len(before), len(each) // OF_NEXT)] for each in layers]
    kinds, whole = Counter(own), dict(zip(own, map(Counter, layers), strict=True))
    kinds[max(kinds, key=lambda each: _common(each, last))] += 1
    ends = any(one <= other for one, other in permutations(whole.values(), 2))
    return tuple(kinds.values()) if 1 < len(kinds) <= MOST_KINDS and not ends else ()


def _common(one: Kernels, other: Kernels) -> int:
    """How many are equal from the first on."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
