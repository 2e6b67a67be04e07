"""What the launching thread was in when the queue of a device ran dry: the calls that let the host's lead collapse."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.calls import ApiCalls
from nsysdiag.analysis.classify import FALLBACK
from nsysdiag.analysis.evidence import Layer
from nsysdiag.analysis.frame import Case, Frame
from nsysdiag.analysis.grouping import group_durations
from nsysdiag.analysis.run_ahead import Outstanding
from nsysdiag.model import Collapses
from nsysdiag.timeline.intervals import IntArray, nearest_before

NO_EVIDENCE = "no evidence"


def find_collapses(
    frame: Frame,
    work: Outstanding,
    lane: IntArray,
    axis: ThreadAxis,
    layers: dict[str, list[Layer]],
    calls: ApiCalls,
    least: int,
) -> list[Collapses]:
    """The collapses from at least `least` outstanding operations, by what the thread was in, most idle time first.

    ```
    thread   [l][l][l][l][sync .............][l]
    device       [==)[==)[==)[==)............[==)
    depth     1 2  2 3  2  1     0
                      ^ last launch: 3       ^ gap
    ```

    The thread is the one that launched what came next. `layers` are the evidence of every host-side cause, in order of
    precedence.
    """
    gap, depth = _dry(frame, work, max(least, 1))
    if len(gap) == 0:
        return []
    gaps = frame.gaps
    words: dict[tuple[str, str], int] = {}
    code = _activity(axis.position(lane[gap], gaps.opened[gap]), layers, words)
    issuing = frame.case[gap] == Case.ISSUING
    names = np.array([words.setdefault(("launch_call", name), len(words)) for name in calls.names], dtype=np.int64)
    code[issuing] = names[calls.rows.name[frame.call[gap[issuing]]]]
    code[code < 0] = words.setdefault((FALLBACK, NO_EVIDENCE), len(words))
    idle = group_durations(code, (gaps.end - gaps.start)[gap])
    depths = group_durations(code, depth)
    median = dict(zip(depths.code.tolist(), depths.median.tolist(), strict=True))
    known = list(words)
    return [
        Collapses(cause=known[each][0], call=known[each][1], count=count, idle_ns=ns, median_depth=median[each])
        for each, count, ns in zip(idle.code.tolist(), idle.count.tolist(), idle.total.tolist(), strict=True)
    ]


def _dry(frame: Frame, work: Outstanding, least: int) -> tuple[IntArray, IntArray]:
    """The gaps that open with nothing outstanding, and how many operations were at the last launch before: `least` or
    more."""
    late = (frame.case == Case.LATE) | (frame.case == Case.ISSUING)
    # Where a border of the window cut the beginning off, the queue ran dry outside of it.
    gap = np.flatnonzero(late & (frame.gaps.start == frame.gaps.opened))
    opened = frame.gaps.opened[gap]
    issued = np.searchsorted(work.issued, opened, side="right")
    gap, opened, issued = (each[issued >= least] for each in (gap, opened, issued))
    last = work.issued[issued - 1]
    # Of n operations issued all have ended if the n-th end has come; `least` of them had not if the end that many
    # places before the last had not: cheaper than to count.
    deep = (work.ended[issued - 1] <= opened) & (work.ended[issued - least] > last)
    depth = issued[deep] - np.searchsorted(work.ended, last[deep], side="right")
    return gap[deep], depth.astype(np.int64)


def _activity(position: IntArray, layers: dict[str, list[Layer]], words: dict[tuple[str, str], int]) -> IntArray:
    """For each position on the thread axis the code in `words` of the first layer that covers it, -1 for none."""
    code = np.full(len(position), -1, dtype=np.int64)
    for cause, parts in layers.items():
        for layer in parts:
            if len(layer) == 0:
                continue
            at = nearest_before(layer.spans.start, position)
            inside = (code < 0) & (at >= 0) & (layer.spans.end[at] > position)
            names = [words.setdefault((cause, name), len(words)) for name in layer.names]
            code[inside] = np.array(names, dtype=np.int64)[layer.name[at[inside]]]
    return code
