"""Rows that are charged as the accounts of phases are, against exact integers and per nanosecond."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.groups import portions
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.causes import CAUSES, HOST_CODE
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.judge import NO_FOCUS, with_accounts
from nsysdiag.phases.facts import AccountBase, PhaseDevice
from nsysdiag.time.facts import EVERY_STATE, NAMED, NameColumn, TimeColumns
from nsysdiag.time.table import charged_as
from tests.diagnosis.test_focus import did

BOTTLENECKS = ("sync", "host", "launch", "communication")
Row = tuple[int, str, str]
"""Its length, its bottleneck, and its root cause or ''."""


def table(rows: list[Row], phase: list[int] | None = None, state: str = "idle") -> TimeColumns:
    ns = np.array([length for length, _, _ in rows], dtype=np.int64)
    end = np.cumsum(ns + 5)  # each row has 5 ns of nothing before it
    none = np.full(len(rows), -1, dtype=np.int64)
    named = {name: NameColumn(none, []) for name in NAMED}
    named["state"] = NameColumn(np.full(len(rows), EVERY_STATE.index(state)), list(EVERY_STATE))
    codes = np.array([BOTTLENECK_IDS.index(name) for _, name, _ in rows], dtype=np.int64)
    named["bottleneck"] = NameColumn(codes, list(BOTTLENECK_IDS))
    roots = np.array([list(CAUSES).index(root) if root else -1 for _, _, root in rows], dtype=np.int64)
    named["root_cause"] = NameColumn(roots, list(CAUSES))
    phases = np.zeros(len(rows), dtype=np.int64) if phase is None else np.array(phase)
    return TimeColumns("gpu0", end - ns, end, phases, none >= 0, none, np.arange(len(rows)), named)


def read(made: TimeColumns) -> list[tuple[int, int, str]]:
    column = made.named["bottleneck"]
    names = [column.names[code] for code in column.code.tolist()]
    return list(zip(made.start.tolist(), made.end.tolist(), names, strict=True))


def account(base: AccountBase = "window", **by_bottleneck: int) -> PhaseDevice:
    return PhaseDevice("gpu0", 0, 0, 0, 0, 0, {}, by_bottleneck, base)


def test_another_bottleneck_gets_an_equal_part_of_each_row() -> None:
    made = charged_as(
        table([(60, "sync", ""), (40, "sync", ""), (30, "input", "")]), [account(sync=50, host=50, input=30)]
    )
    assert read(made) == [
        (5, 35, "sync"),
        (35, 65, "host"),
        (70, 90, "sync"),
        (90, 110, "host"),
        (115, 145, "input"),
    ]
    assert made.thread.tolist() == [0, 0, 1, 1, 2], "a part keeps what else is known of its row"


def test_time_behind_a_wait_goes_to_what_was_done_there() -> None:
    rows = [(60, "sync", ""), (40, "sync", HOST_CODE), (20, "sync", HOST_CODE)]
    made = charged_as(table(rows), [account(sync=90, host=30)])
    assert [row for row in read(made) if row[2] == "host"] == [(90, 110, "host"), (125, 135, "host")]


def test_of_an_account_that_is_that_of_the_rows_nothing_changes() -> None:
    rows = table([(60, "sync", ""), (40, "host", HOST_CODE)])
    assert charged_as(rows, [account(sync=60, host=40)]) is rows


def test_each_phase_is_its_own() -> None:
    rows = table([(10, "sync", ""), (10, "sync", "")], phase=[0, 1])
    made = charged_as(rows, [account(sync=10), account(host=10)])
    assert read(made) == [(5, 15, "sync"), (20, 30, "host")]


@pytest.mark.parametrize(("base", "charged"), [("start", ["sync", "host"]), ("window", ["sync"])])
def test_time_before_the_first_work_is_in_the_account_of_a_start(base: AccountBase, charged: list[str]) -> None:
    rows = table([(10, "sync", "")], state="outside")
    phase = account(base, sync=4, host=6) if base == "start" else account(base)
    assert [name for _, _, name in read(charged_as(rows, [phase]))] == charged


@st.composite
def charged(draw: st.DrawFn) -> tuple[list[Row], Counter[str]]:
    """Rows, and an account with the same sum in which each bottleneck has another part."""
    roots = st.sampled_from(["", *CAUSES])
    rows = draw(
        st.lists(st.tuples(st.integers(1, 10**12), st.sampled_from(BOTTLENECKS), roots), min_size=1, max_size=9)
    )
    sums = Counter[str]()
    for ns, name, _ in rows:
        sums[name] += ns
    for _ in range(draw(st.integers(0, 3))):
        source, target = draw(st.sampled_from(BOTTLENECKS)), draw(st.sampled_from(BOTTLENECKS))
        part = draw(st.integers(0, sums[source]))
        sums[source] -= part
        sums[target] += part
    return rows, sums


@given(charged())
def test_sums_are_the_account_and_every_nanosecond_stays(case: tuple[list[Row], Counter[str]]) -> None:
    rows, sums = case
    before = table(rows)
    made = read(charged_as(before, [PhaseDevice("gpu0", 0, 0, 0, 0, 0, {}, dict(sums))]))
    found = Counter[str]()
    for start, end, name in made:
        assert start < end
        found[name] += end - start
    assert +found == +sums
    starts, ends = before.start.tolist(), before.end.tolist()
    assert sorted({start for start, _, _ in made} - {end for _, end, _ in made}) == starts
    assert sorted({end for _, end, _ in made} - {start for start, _, _ in made}) == ends


@given(st.lists(st.integers(0, 10**14), min_size=1, max_size=20), st.data())
def test_portions_are_exact_shares(ns: list[int], data: st.DataObject) -> None:
    """That of the first n is the floor of their exact share, for each n."""
    total = sum(ns)
    part = data.draw(st.integers(1, total)) if total else 0
    if not part:
        return
    found = portions(np.array(ns), part).tolist()
    assert np.cumsum(found).tolist() == [sum(ns[: n + 1]) * part // total for n in range(len(ns))]
    assert all(0 <= each <= own for each, own in zip(found, ns, strict=True))


def test_phases_that_are_judged_together_give_up_as_large_a_part_each() -> None:
    phases = [did(sync=60, kernels=40), did(kernels=10), did(sync=40, host=5)]
    judged = PhaseDevice("gpu0", 0, 0, 0, 0, 0, {}, {"sync": 50, "host": 55, "kernels": 40}, returned_ns=50)
    focus = Focus(NO_FOCUS.parts, [0, 2], None)
    (made,) = with_accounts([phases], focus, [judged])
    assert [each.account for each in made] == [
        {"sync": 30, "kernels": 40, "host": 30},
        {"kernels": 10},
        {"sync": 20, "host": 25},
    ]
    assert [each.returned_ns for each in made] == [30, 0, 20]
