"""Pageable copies that run alone, and the idle time in their calls, are one problem and one finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Report

US = 1_000
STEP, STEPS = 1_000 * US, 40


def steps(
    copy: int, staged: int, *, host: str = "pageable", places: int = 1, returns: int = 2, api: str = "cudaMemcpy"
) -> TraceBuilder:
    """Times in µs, for `places` copies in each step; the call returns so long after the copy:

    gpu     ..<staged>[copy]...[== kernel, 300 ==)
    thread  [cudaMemcpy    ][launch]
    """
    trace = TraceBuilder()
    for step in range(STEPS):
        at = step * STEP
        for place in range(places):
            begin = at
            at += (staged + copy) * US
            trace.memcpy(at - copy * US, at, host=host, size=1 << 20, launch=(begin, at + returns * US), api=api)
            if places > 1:
                trace.nvtx(f"upload {'ab'[place]}", begin - US, at + 3 * US)
            trace.kernel(at + 10 * US, at + 310 * US, launch=(at + 4 * US, at + 8 * US))
            at += 310 * US
    return trace


def on_copies(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.bottleneck == "copies"]


@pytest.mark.parametrize(
    ("copy", "staged", "advice"),
    [(200, 50, "Most of it is pageable memory: pin it"), (50, 200, "Pin the host buffer")],
)
def test_they_are_one_with_the_advice_of_the_larger(copy: int, staged: int, advice: str, tmp_path: Path) -> None:
    report = report_of(steps(copy, staged), tmp_path)
    (found,) = on_copies(report)
    title = "Exposed copies and their blocking calls, mostly memcpy HtoD from pageable"
    assert (found.id, found.title) == ("f-exposed_copy", title)
    account = next(phase for phase in report.phases if phase.judged).devices[0].account
    assert found.lost_ns == account["copies"] == pytest.approx(STEPS * (copy + staged) * US, rel=0.02)
    assert found.advice[0].startswith(advice)
    assert found.saves is not None
    assert found.saves.ns / found.saves.of_ns <= account["copies"] / sum(account.values()) + 1e-6
    assert {row.table for row in found.rows} <= {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"}


def test_they_hide_no_more_copies_than_there_is_compute(tmp_path: Path) -> None:
    """Copies of 580 µs beside kernels of 300 µs: overlap hides 300 of them, and 60 are no longer waited for."""
    (found,) = on_copies(report_of(steps(580, 60), tmp_path))
    assert found.lost_ns > found.ceiling_ns
    assert found.ceiling_ns == pytest.approx(STEPS * 360 * US, rel=0.05)


def test_they_save_no_more_than_the_time_in_the_calls(tmp_path: Path) -> None:
    """The calls return 60 µs before the end of the copies, which take 100: idle for 80, and inside for 120 of 180."""
    (found,) = on_copies(report_of(steps(100, 80, returns=-60), tmp_path))
    assert found.lost_ns == pytest.approx(STEPS * 180 * US, rel=0.05)
    assert found.ceiling_ns == pytest.approx(STEPS * 120 * US, rel=0.05)
    assert found.evidence[-1] == "bound: threads are in these calls for 4.72 ms"  # the first is before the window


def test_copies_of_pinned_memory_in_blocking_calls_are_two(tmp_path: Path) -> None:
    found = on_copies(report_of(steps(200, 50, host="pinned"), tmp_path))
    assert {each.cause: each.title for each in found} == {
        "exposed_copy": "Exposed copies, mostly memcpy HtoD from pinned",
        "blocking_copy": "Blocking copy: a synchronous call",
    }


def test_of_calls_at_several_places_each_is_one(tmp_path: Path) -> None:
    found = on_copies(report_of(steps(100, 60, places=2), tmp_path))
    assert sorted(each.cause for each in found) == ["blocking_copy", "blocking_copy", "exposed_copy"]


@pytest.mark.parametrize("copy", [200, 900])
def test_copies_inside_a_device_need_no_pinned_memory(copy: int, tmp_path: Path) -> None:
    trace = TraceBuilder()
    for step in range(STEPS):
        at = 2 * step * STEP
        trace.memcpy(at, at + copy * US, kind="DtoD", launch=(at - 9 * US, at - 5 * US))
        trace.kernel(at + copy * US, at + (copy + 300) * US, launch=(at - 4 * US, at - 2 * US))
    (found,) = on_copies(report_of(trace, tmp_path))
    assert found.advice[0].startswith("Most of it is copied from one place of a GPU's memory to another")
    assert not any("pin" in each or "host" in each for each in found.advice)
