"""Time outside CUDA calls in traces without anything else about the host, and paging in the rows of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag import analyze, analyze_ranks
from nsysdiag.diagnosis.entries import PAGING, account_table
from nsysdiag.diagnosis.sentences import detail_of
from nsysdiag.document.blocks import PAGE, Chart, Table
from nsysdiag.document.view import as_read
from nsysdiag.ranks.show.blocks import job
from tests.builder import TraceBuilder
from tests.ranks.run import ALL_REDUCE

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

MS = 1_000_000


def loop(*, kernel_ms: int, sampled: bool = False, ranges: bool = True) -> TraceBuilder:
    """Steps of 10 ms, of which the host spends the rest outside CUDA calls."""
    trace = TraceBuilder().gpu()
    for at in range(10 * MS, 410 * MS, 10 * MS):
        trace.kernel(at, at + kernel_ms * MS, launch=(at - 20_000, at - 10_000))
        if ranges:
            trace.nvtx("advance", at, at + 9 * MS)
        if sampled:
            trace.osrt("read", at + 9 * MS, at + 9 * MS + 10_000)
    return trace


def report_of(tmp_path: Path, trace: TraceBuilder) -> Report:
    return analyze(trace.write(tmp_path / "t.sqlite"))


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("ranges", [True, False])
def test_it_leads_as_host_code_that_was_not_captured(ranges: bool, tmp_path: Path) -> None:
    report = report_of(tmp_path, loop(kernel_ms=2, ranges=ranges))
    assert report.diagnosis is not None
    assert report.diagnosis.headline.startswith("Host code outside CUDA calls takes 79.4%")
    assert "what it did was not captured" in report.diagnosis.headline
    found = next(each for each in report.findings if each.cause == "uncovered")
    assert found.title.startswith("Host code outside CUDA calls; what it did was not captured")
    assert "use ranges alone" in found.advice[0]
    assert ("advance" in report.diagnosis.headline) == ranges


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("ranges", [True, False])
def test_the_calls_around_it_where_no_range_holds_it(ranges: bool, tmp_path: Path) -> None:
    trace = loop(kernel_ms=2, ranges=ranges)
    for at in range(10 * MS, 410 * MS, 10 * MS):
        trace.api("cudaMemcpyAsync", at + 2 * MS - 90_000, at + 2 * MS - 50_000)
    report = report_of(tmp_path, trace)
    assert report.diagnosis is not None
    between = "not captured, between cudaMemcpyAsync and cudaLaunchKernel."
    assert (between in report.diagnosis.headline) != ranges


@pytest.mark.parametrize(("share", "words"), [(0.3, "for 30.0% mostly"), (0.5, "mostly")])
def test_calls_around_most_of_a_finding_are_not_those_of_the_rest(share: float, words: str, tmp_path: Path) -> None:
    """Of half of the time that nothing explains, this finding has only a part."""
    found = next(each for each in report_of(tmp_path, loop(kernel_ms=2)).findings if each.cause == "uncovered")
    around = "mostly between cudaMemcpy and cudaFree"
    detail = detail_of(replace(found, share=share, summary=around, named=[]), 0.5)
    assert str(detail.words) == around.replace("mostly", words)


def test_time_before_any_call_follows_none(tmp_path: Path) -> None:
    """The thread makes no call before its first launch, and that launch row is the first of all."""
    trace = TraceBuilder().gpu().kernel(10 * MS, 11 * MS)
    trace.kernel(300 * MS, 301 * MS, launch=(300 * MS - 20_000, 300 * MS - 10_000))
    report = report_of(tmp_path, trace)
    assert "after" not in str([each.summary for each in report.findings])


def test_no_call_leads(tmp_path: Path) -> None:
    """Three calls in turn: none of them is before most of the time."""
    trace = loop(kernel_ms=2, ranges=False)
    for at in range(10 * MS, 410 * MS, 10 * MS):
        name = ("cudaMemcpyAsync", "cudaEventRecord", "cudaMalloc")[at // (10 * MS) % 3]
        trace.api(name, at + 2 * MS - 90_000, at + 2 * MS - 50_000)
    assert "after" not in str(report_of(tmp_path, trace).diagnosis)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("sampled", [False, True])
def test_bar_phase_and_closing_line(sampled: bool, tmp_path: Path) -> None:
    report = report_of(tmp_path, loop(kernel_ms=2, sampled=sampled))
    report.save(tmp_path / "t.txt")
    text = (tmp_path / "t.txt").read_text(encoding="utf-8")
    assert ("Host outside CUDA calls, not captured 7" in text) != sampled
    assert ("of the time is charged to host code outside CUDA calls, which was not captured" in text) != sampled
    assert ("nexplained" in text) == sampled
    assert report.devices[0].verdict.sentence.startswith("Host code outside CUDA calls takes") != sampled
    assert ("host code outside CUDA calls" in report.phases[-1].sentence) != sampled


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_ranks_say_it_as_well(sampled: bool, tmp_path: Path) -> None:
    """Where one of the traces shows more of the host, the time that none explains is unexplained."""
    paths = [tmp_path / "rank0.sqlite", tmp_path / "rank1.sqlite"]
    for path, seen in zip(paths, (False, sampled), strict=True):
        trace = loop(kernel_ms=2, sampled=seen)
        for at in range(12 * MS, 412 * MS, 10 * MS):
            trace.kernel(at, at + MS, name=ALL_REDUCE, stream=9, launch=(at - 20_000, at - 10_000))
        trace.write(path)
    report = analyze_ranks(paths)
    assert report.diagnosis is not None
    assert report.diagnosis.headline.startswith("Host code outside CUDA calls takes") != sampled
    assert any(each.title.startswith("Host code outside CUDA calls") for each in report.findings) != sampled
    section = job(as_read(report))[0]
    legend = [entry.label for block in section.blocks if isinstance(block, Chart) for entry in block.legend]
    assert any(label.startswith("Host outside CUDA calls, not captured") for label in legend) != sampled
    assert [each.host_unseen for each in report.traces] == [True, not sampled]


def test_as_the_second_part(tmp_path: Path) -> None:
    report = report_of(tmp_path, loop(kernel_ms=7))
    assert report.diagnosis is not None
    assert "Second: host code outside CUDA calls" in report.diagnosis.headline


def test_a_trace_that_shows_the_host_keeps_it_unexplained(tmp_path: Path) -> None:
    report = report_of(tmp_path, loop(kernel_ms=2, sampled=True))
    assert "outside CUDA calls" not in str(report.diagnosis)


def test_pages_inside_kernels_are_no_compute_in_the_row(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu()
    for at in range(10 * MS, 410 * MS, 10 * MS):
        trace.kernel(at, at + 10 * MS - 1_000, launch=(at - 20_000, at - 10_000))
        trace.memcpy(at + MS, at + 8 * MS, kind="UM HtoD", size=1 << 24, cause="fault")
    report = report_of(tmp_path, trace)
    assert report.diagnosis is not None
    assert report.diagnosis.bottleneck == "memory"
    judged = {"gpu0": [phase.devices[0] for phase in report.phases if phase.judged]}
    table = account_table(judged, "", PAGE)[0]
    assert isinstance(table, Table)
    shown = dict(zip((column.title for column in table.columns), table.rows[0], strict=False))
    assert PAGING.title in shown
    assert [shown[title] for title in ("Compute", "Idle")] != [1.0, 0.0]
