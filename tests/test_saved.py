"""The range of every integer of a saved document follows from the markers at its field."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from nsysdiag.ci.facts import BatchSummary, HistoryLine
from nsysdiag.comparison.facts import Comparison
from nsysdiag.fields import Count, Leaf, Ns, NumberUnit, fields_of, leaves
from nsysdiag.limits import MOST_BUCKETS
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import Record
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.saved import from_json

INT64 = (-(2**63), 2**63 - 1)
MOMENT = (-(2**62), 2**62)
MOMENTS = {
    "start_ns",
    "first_ns",
    "end_ns",
    "at_ns",
    "peak_at_ns",
    "parts",
    "exact_operations",
    "exact_host",
    "host_span",
}
DIVISORS = {
    "IterationsPacked.each",
    "GpuMetrics.period_ns",
    "UtilizationSeries.period_ns",
    "UtilizationSeries.step_ns",
    "PhaseSteps.median_ns",
    "PhaseSteps.mean_ns",
}
PLACES = {"index", "median_index", "representative_index", "depth", "left_out", "window", "phase", "numbers", "kinds"}


def integers(record: type, seen: set[type]) -> Iterator[tuple[str, str, Leaf]]:
    """Record, field and leaf of each integer in it and in the records in it."""
    seen.add(record)
    for name, hint in fields_of(record).items():
        for leaf in leaves(hint):
            if leaf.kind is int:
                yield record.__name__, name, leaf
            elif isinstance(leaf.kind, type) and issubclass(leaf.kind, Record) and leaf.kind not in seen:
                yield from integers(leaf.kind, seen)


def expected(record: str, name: str, leaf: Leaf) -> tuple[int, int]:
    """Counts and places in a list are not negative, nothing is divided by 0, moments leave room for their distance."""
    if f"{record}.{name}" in DIVISORS:
        return 1, INT64[1]
    if name == "buckets":
        return 0, MOST_BUCKETS
    if (name in MOMENTS and record != "PhaseSteps") or name.endswith("_start_ns"):
        return MOMENT
    return (
        0 if leaf.unit is NumberUnit.COUNT or (leaf.unit is NumberUnit.NUMBER and name in PLACES) else INT64[0]
    ), INT64[1]


def found(leaf: Leaf) -> tuple[int, int]:
    """The narrowest range of all markers."""
    metas = [each for each in leaf.markers if isinstance(each, msgspec.Meta)]
    low = max([int(each.ge) for each in metas if each.ge is not None], default=INT64[0])
    return low, min([int(each.le) for each in metas if each.le is not None], default=INT64[1])


def test_every_integer_has_its_range() -> None:
    seen: set[type] = set()
    documents = (Report, Comparison, RanksReport, WhatIf, BatchSummary, HistoryLine)
    fields = [each for document in documents for each in integers(document, seen)]
    assert len(fields) > 400
    wrong = {
        f"{record}.{name}": found(leaf) for record, name, leaf in fields if found(leaf) != expected(record, name, leaf)
    }
    assert wrong == {}


class Two(Record, frozen=True):
    """A count and a time."""

    count: Count
    ns: Ns


@pytest.mark.parametrize(
    ("count", "ns", "wrong"),
    [(-1, 0, "count"), (2**63, 0, "count"), (0, 2**63, "ns"), (0, -(2**63) - 1, "ns"), (10**400, 0, "count")],
)
def test_what_is_out_of_range_is_not_read(count: int, ns: int, wrong: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=wrong):
        from_json(b'{"count": %d, "ns": %d}' % (count, ns), Two)


def test_the_ends_of_a_range_are_read() -> None:
    for count, ns in ((0, INT64[0]), (INT64[1], INT64[1])):
        assert from_json(b'{"count": %d, "ns": %d}' % (count, ns), Two) == Two(count=count, ns=ns)
