"""How far the host runs ahead, for any rows whatever, against a slow count at every moment at which it may change."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings

from nsysdiag.document.packed import unpack_series
from tests.ledger.arbitrary import rows
from tests.ledger.slow import launches, paint_from, running, well_formed
from tests.ledger.test_properties import BEHIND_A_WAIT, by_device, report_of, shown_from
from tests.levels import examples

if TYPE_CHECKING:
    from tests.ledger.arbitrary import Op, Rows


pytestmark = pytest.mark.slow


def counted_from(op: Op, drawn: Rows) -> int:
    """When an operation begins to count: the end of its call; if it starts before, the beginning of the call."""
    calls = launches(op, drawn.calls)
    if not calls:
        return op.start
    return calls[0].end if calls[0].end <= op.start else min(calls[0].start, op.start)


def slow_depth(ops: list[Op], drawn: Rows, low: int, high: int) -> dict[int, int]:
    """The ns of [low, high) at each depth."""
    spans = [(counted_from(op, drawn), op.end) for op in ops if op.kind != "migration" and well_formed(op, drawn)]
    moments = sorted({low, high, *(each for span in spans for each in span if low < each < high)})
    found: dict[int, int] = {}
    for moment, following in pairwise(moments):
        depth = sum(start <= moment < end for start, end in spans)
        found[depth] = found.get(depth, 0) + following - moment
    return found


# The window begins behind a wait for work that is not in the trace.
@pytest.mark.thorough
@example(BEHIND_A_WAIT)
@given(rows())
@settings(max_examples=examples(80))
def test_depth_is_what_one_counts_by_hand(drawn: Rows) -> None:
    for device, ops in by_device(report_of(drawn), drawn):
        painted, ahead = paint_from(running(ops, drawn), shown_from(device)), device.launch.queue_depth
        if painted is None or painted.window[1] <= painted.window[0]:
            assert ahead is None
            continue
        assert ahead is not None
        slow = slow_depth(ops, drawn, *painted.window)
        total = sum(slow.values())
        assert (ahead.observed_ns, ahead.empty_ns, ahead.max) == (total, slow.get(0, 0), max(slow))
        assert ahead.mean == round(sum(depth * ns for depth, ns in slow.items()) / total, 3)
        reached = 0
        for depth in sorted(slow):
            below, reached = reached, reached + slow[depth]
            for percent, value in ((5, ahead.p5), (50, ahead.p50), (95, ahead.p95)):
                if 100 * below < percent * total <= 100 * reached:
                    assert value == depth
        assert unpack_series(ahead).highest.max() == max(slow)
        assert unpack_series(ahead).lowest.min() == min(slow)
