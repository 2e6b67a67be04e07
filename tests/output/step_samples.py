"""Steps of two sides made by hand.

```
us          0    50        350       750      1,052
before      copy [  gemm  )  sync    [  relu  )
after       [ gemm ) host [  relu       )
            0     300    360          777
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.comparison.step_facts import AlignedSteps, SideSteps, StepDifference

US = 1_000


def packed(*values: int) -> str:
    return to_text(to_planes(np.array(values, dtype=np.int64)), 9) if any(values) else ""


def side(
    numbers: Sequence[int], length: int, columns: Mapping[str, Sequence[int]], streams: Sequence[str]
) -> SideSteps:
    """The same step several times; `columns` are those of one."""
    times = len(numbers)
    return SideSteps(
        numbers=list(numbers),
        start_ns=[number * 10_000 * US for number in numbers],
        length_ns=[length * US] * times,
        carried_ns=[0] * times,
        counts=[len(columns["names"])] * times,
        idle=[1] * times,
        streams=list(streams),
        **{name: packed(*(list(values) * times)) for name, values in columns.items()},
    )


def aligned(names: Sequence[str], causes: Sequence[str], stream: str = "stream 7", note: str = "") -> AlignedSteps:
    """Of a copy, two kernels, and idle time of two causes; the typical step, and steps 5 and 6."""
    copy, gemm, relu = names
    before = {
        "apart": [0, 0, 2 * 400 * US],
        "lengths": [50 * US, 300 * US, 302 * US],
        "names": [0, 1, 2],
        "stream": [0, 0, 0],
        "marks": [1, 0, 3],
        "causes": [1],
        "idle_marks": [2],
    }
    after = {
        "apart": [0, 2 * 60 * US],
        "lengths": [300 * US, 417 * US],
        "names": [1, 2],
        "stream": [0, 0],
        "marks": [0, 2],
        "causes": [2],
        "idle_marks": [3],
    }
    differences = [
        difference("idle", 350, 300, 400, 60, causes=causes),
        difference("other_length", 750, 360, 302, 417, names=(relu, relu)),
        difference("only_before", 0, None, 50, 0, names=(copy, None)),
    ]
    return AlignedSteps(
        before=side((3, 5, 6), 1052, before, [stream]),
        after=side((4, 5, 6), 777, after, [stream]),
        names=[copy, gemm, relu],
        kinds=[2, 0, 0],
        cause_ids=list(causes),
        median_before_ns=1052 * US,
        median_after_ns=777 * US,
        matched=[2] * 3,
        places_before=packed(*[2, 2] * 3),
        places_after=packed(*[0, 2] * 3),
        front=packed(*[1, 1] * 3),
        idle_matched=[1] * 3,
        idle_before="",
        idle_after="",
        differences=differences,
        note=note,
    )


def difference(
    kind: str,
    first: int,
    second: int | None,
    before: int,
    after: int,
    *,
    names: tuple[str, str | None] | None = None,
    causes: Sequence[str | None] = (None, None),
) -> StepDifference:
    return StepDifference(
        kind=kind,
        count=1,
        from_before_ns=first * US,
        from_after_ns=None if second is None else second * US,
        names_before=[names[0]] if names else [],
        names_after=[names[1]] if names and names[1] else [],
        cause_before=causes[0],
        cause_after=causes[1],
        before_ns=before * US,
        after_ns=after * US,
    )
