"""The repeats of a loop that have more than others: what comes only at every n-th, and where it comes.

```
repeats     |a b |a b |a b e|a b |a b |a b e|a b |a b |a b e|       every third has e as well
```
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.iterations.happened import HOST
from nsysdiag.iterations.segments import RepeatCounts

REGULAR = 0.9
"""Of the distances between special repeats: so many are equal."""
FEWEST_IRREGULAR, LEAST_TOGETHER, LONGEST_IRREGULAR = 5, 2, 20
"""At no regular distance so many special repeats show a loop, if so many names come in the same ones; none is longer
than so many times the usual one."""


class Special(Struct, frozen=True):
    """Repeats that have more than others: which, every n-th, and by code how many more each has."""

    at: IntArray
    each: int
    exact: bool
    more: dict[int, int]


def specials(found: RepeatCounts) -> list[Special]:
    """The groups of names that come more often than usual in the same repeats, those with the shortest distance
    first. At no regular distance a name shows something only if it comes in no other repeats: how often it comes may
    vary for another reason."""
    groups: dict[bytes, tuple[IntArray, dict[int, int]]] = {}
    for code, count in found.count.items():
        if code >= HOST and found.usual[code]:
            continue  # one range or query more shows nothing
        more = count - found.usual[code]
        at = np.flatnonzero(more > 0)
        if 2 <= len(at) <= (found.size + 1) // 2:
            groups.setdefault(at.tobytes(), (at, {}))[1][code] = int(np.median(more[at]))
    short = np.flatnonzero(found.lacks())
    if 2 <= len(short) <= (found.size + 1) // 2:
        held = {code: int(np.median(count[short])) for code, count in found.count.items()}
        groups.setdefault(short.tobytes(), (short, {}))[1].update({code: each for code, each in held.items() if each})
    result = [special for at, more in _merged(groups.values()) if (special := _special(at, more, found)) is not None]
    return sorted(result, key=lambda each: (not each.exact, -len(each.at), -len(each.more)))


def _merged(groups: Iterable[tuple[IntArray, dict[int, int]]]) -> list[tuple[IntArray, dict[int, int]]]:
    """With those as one that come in the same repeats, but for one of them at an end of the trace."""
    merged: list[tuple[IntArray, dict[int, int]]] = []
    for at, more in sorted(groups, key=lambda each: -len(each[0])):
        same = next((each for each in merged if len(each[0]) <= len(at) + 1 and np.isin(at, each[0]).all()), None)
        if same is None:
            merged.append((at, dict(more)))
        else:
            same[1].update(more)
    return merged


def _special(at: IntArray, more: dict[int, int], found: RepeatCounts) -> Special | None:
    """None where they do not come all over the time of the loop."""
    distance = np.diff(at)
    each = int(np.median(distance))
    exact = each > 1 and float((distance == each).mean()) >= REGULAR
    longest = each + 1 if exact else LONGEST_IRREGULAR * max(each, 1)
    covers = int(at[0]) <= longest and found.size - 1 - int(at[-1]) <= longest
    together = len(at) >= FEWEST_IRREGULAR and len(more) >= LEAST_TOGETHER and int(distance.max()) <= longest
    together &= each > 1 and any(not found.usual[code] for code in more)
    return Special(at, each, exact, more) if covers and (exact or together) else None
