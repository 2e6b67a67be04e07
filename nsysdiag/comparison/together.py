"""Which changes count where several devices are compared: one comparison in twenty is wrong, not one device in twenty.

Each device has an interval of its own, and each leaves 0 out by chance one time in twenty: of eight independent ones,
one does so in every third comparison. By Hochberg's procedure all devices together are wrong as rarely as one alone:

```
4 devices   a change counts   on all of them              if 0 is outside of all 95 % intervals
                              on 3 of them                if 0 is outside of theirs at 97.5 %
                              on 2                        at 98.3 %
                              on 1                        at 98.75 %
```

It holds for devices that have nothing to do with each other, and for those that go up and down together, as the ranks
of a job do that wait for each other: where all changed alike, nothing more is asked of any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from nsysdiag.comparison.changes import IMPROVED, LEDGERS, REGRESSED, SAME, UNKNOWN, Changes
from nsysdiag.comparison.facts import Change, PartChange
from nsysdiag.comparison.significance import LEVEL, student

Judged = tuple[Change, float | None]
"""A change and the degrees of freedom behind its interval."""


def judged_together(devices: Sequence[Changes]) -> list[Changes]:
    """The changes of devices that are compared at once: of a length, a part or a cause that does not count any more
    among those of the same name on all devices, the verdict is `same`. Intervals stay those of the device alone."""
    lengths = _judged([(each.length, each.freedom) for each in devices])
    parts = _by_id(devices, [each.parts for each in devices])
    ledgers = {name: _by_id(devices, [each.ledgers[name] for each in devices]) for name in LEDGERS}
    return [
        replace(each, length=length, parts=parts[at], ledgers={name: rows[at] for name, rows in ledgers.items()})
        for at, (each, length) in enumerate(zip(devices, lengths, strict=True))
    ]


def _by_id(devices: Sequence[Changes], rows: Sequence[Sequence[PartChange]]) -> list[list[PartChange]]:
    """The rows of each device, judged beside those of the same name on the others."""
    found: defaultdict[str, list[Judged]] = defaultdict(list)
    for each, mine in zip(devices, rows, strict=True):
        for row in mine:
            found[row.id].append((row.change, each.freedom))
    judged = {id: iter(_judged(changes)) for id, changes in found.items()}
    return [[PartChange(id=row.id, change=next(judged[row.id])) for row in mine] for mine in rows]


def _judged(changes: Sequence[Judged]) -> list[Change]:
    known = [each for each in changes if each[0].verdict != UNKNOWN]
    for less in range(len(known)):  # so many of the devices may have 0 inside
        outside = [_outside(*each, LEVEL / (less + 1)) for each in known]
        if sum(outside) >= len(known) - less:
            break
    else:
        outside = [False] * len(known)
    holds = iter(outside)
    return [change if change.verdict == UNKNOWN or next(holds) else _not_counted(change) for change, _free in changes]


def _outside(change: Change, freedom: float | None, level: float) -> bool:
    """Is 0 outside of the interval at this level, which is as much longer than at 5 % as Student's t is?"""
    if freedom is None or change.low_ns is None or change.high_ns is None:
        return False
    to_zero = (change.change_ns - change.low_ns) if change.change_ns > 0 else (change.high_ns - change.change_ns)
    return to_zero * student(freedom, level) / student(freedom) < abs(change.change_ns)


def _not_counted(change: Change) -> Change:
    return msgspec.structs.replace(change, verdict=SAME) if change.verdict in (IMPROVED, REGRESSED) else change
