"""Findings: which there are and which there must not be, where they are, in what order, and what they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import FindingThresholds, Settings
from nsysdiag.findings.facts import Evidence, Finding
from nsysdiag.findings.rules import severity
from nsysdiag.report import Report
from nsysdiag.share.redaction import redacted
from tests.builder import MAIN, TraceBuilder, global_pid, global_tid
from tests.causes.example import NEIGHBOUR, first, late
from tests.ledger.traces import report_of
from tests.selecting import selected

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from nsysdiag.findings.facts import EvidenceRow
    from nsysdiag.report import Report

THREAD = global_tid(MAIN)
EVERYTHING = Settings(start_ns=0, replay=False)
"""What somebody chose is judged as a whole, however few kernels it holds."""


def by_cause(report: Report) -> dict[str, Finding]:
    return {each.cause: each for each in report.findings}


def where(row: EvidenceRow) -> tuple[str, int, int | None, int | None]:
    return row.table, row.start_ns, row.thread, row.correlation


class TestRanking:
    @pytest.mark.parametrize(
        ("share", "word"),
        [(0.2, "high"), (0.1999, "medium"), (0.05, "medium"), (0.0499, "low"), (0.01, "low"), (0.0099, "info")],
    )
    def test_severity_by_share_of_the_window(self, share: float, word: str) -> None:
        assert severity(share) == word
        assert severity(share, unresolved=True) == "info"

    def test_severity_by_other_thresholds(self) -> None:
        assert severity(0.2, FindingThresholds(high=0.3)) == "medium"


class TestOneDevice:
    def test_each_cause_is_one_finding(self, tmp_path: Path) -> None:
        """
        device  [==A==)  read 60_000, sync 30_000, unknown 80_000, launching 20_000  [==B==)     window 390_000
        """
        trace = late().osrt("read", 110_000, 170_000).api("cudaDeviceSynchronize", 200_000, 230_000)
        report = report_of(trace, tmp_path)
        assert [(each.cause, each.lost_ns, each.severity) for each in report.findings] == [
            ("uncovered", 80_000, "info"),
            ("io_wait", 60_000, "medium"),
            ("sync", 30_000, "medium"),
            ("launch_call", 10_000, "low"),
            ("launch_latency", 10_000, "low"),
            ("kernels", 0, "high"),
        ]
        read = by_cause(report)["io_wait"]
        assert (read.id, read.lost_share) == ("f-io_wait", round(60_000 / 390_000, 6))
        assert (read.ceiling_ns, read.gaps, read.call) == (60_000, 1, "read")
        assert read.confidence == round(1 - 80_000 / 190_000, 4)
        assert by_cause(report)["uncovered"].confidence == 0
        assert "read: 60.0 µs in 1 piece" in read.evidence
        assert Evidence(kind="call", name="read", count=1, ns=60_000) in read.measured
        assert Evidence(kind="gap", name="", count=1, ns=60_000) in read.measured
        (signature,) = report.devices[0].signatures
        assert {each.signature for each in report.findings if each.lost_ns} == {signature.id}

    def test_evidence_rows_by_hand(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 110_000, 170_000).api("cudaDeviceSynchronize", 200_000, 230_000, correlation=900)
        found = by_cause(report_of(trace, tmp_path))
        assert [where(row) for row in found["io_wait"].rows] == [("OSRT_API", 110_000, THREAD, None)]
        assert [where(row) for row in found["sync"].rows] == [("CUPTI_ACTIVITY_KIND_RUNTIME", 200_000, THREAD, 900)]
        assert [where(row) for row in found["launch_call"].rows] == [
            ("CUPTI_ACTIVITY_KIND_RUNTIME", 280_000, THREAD, 102)
        ]
        assert [where(row) for row in found["uncovered"].rows] == [("CUPTI_ACTIVITY_KIND_KERNEL", 300_000, None, 102)]

    def test_rows_are_the_longest_and_at_most_three(self, tmp_path: Path) -> None:
        """Five reads of 10_000, 20_000, ... 50_000: rows for the last three."""
        trace, start = late(500_000), 110_000
        for length in range(10_000, 60_000, 10_000):
            trace.osrt("read", start, start + length)
            start += length + 5_000
        found = by_cause(report_of(trace, tmp_path))["io_wait"]
        assert [(row.name, row.ns) for row in found.rows] == [("read", 50_000), ("read", 40_000), ("read", 30_000)]

    def test_scheduling_and_samples_name_their_rows(self, tmp_path: Path) -> None:
        """
        thread  |in 120_000 ... out 150_000|        held elsewhere        |in 200_000 ...
        """
        trace = late().sched(120_000, True).sched(150_000, False).sched(200_000, True).sched(290_000, False)
        trace.osrt("poll", 1, 2)
        found = by_cause(report_of(trace, tmp_path))
        assert where(found["host_compute"].rows[0]) == ("SCHED_EVENTS", 200_000, THREAD, None)
        assert where(found["off_cpu"].rows[0]) == ("SCHED_EVENTS", 150_000, THREAD, None)

    @pytest.mark.parametrize(("duration", "found"), [(3_900, True), (3_899, False)])
    def test_a_cause_below_1_per_cent_of_the_window_is_none(self, duration: int, found: bool, tmp_path: Path) -> None:
        findings = report_of(late().osrt("read", 150_000, 150_000 + duration), tmp_path).findings
        assert ("io_wait" in {each.cause for each in findings}) == found

    def test_another_threshold(self, tmp_path: Path) -> None:
        settings = Settings(findings=FindingThresholds(smallest=0.1), replay=False)
        report = report_of(late().osrt("read", 150_000, 170_000), tmp_path, settings)
        assert [each.cause for each in report.findings] == ["uncovered", "kernels"]
        assert report.settings == {"findings": {"smallest": 0.1}, "replay": False}

    def test_no_data_loading_without_evidence(self, tmp_path: Path) -> None:
        """A lock, a read, and ranges that are called after data: three causes, none of them data loading."""
        trace = late().osrt("sem_wait", 110_000, 170_000).osrt("read", 180_000, 230_000)
        trace.nvtx("next(dataloader)", 105_000, 250_000)
        found = {each.cause for each in report_of(trace, tmp_path).findings}
        assert {"lock_wait", "io_wait"} <= found
        assert "data_loading" not in found

    def test_no_evidence_no_finding_of_that_cause(self, tmp_path: Path) -> None:
        assert {each.cause for each in report_of(late(), tmp_path).findings} == {
            "kernels",
            "uncovered",
            "launch_call",
            "launch_latency",
        }

    def test_hostile_names_pass_through(self, tmp_path: Path) -> None:
        name = "f<[/b]>\x1b[31m|`<script>\n\u202e"
        trace = first().nvtx(name, 105_000, 320_000)
        trace.kernel(300_000, 400_000, name=name, demangled=name, launch=(280_000, 290_000))
        trace.osrt(name, 110_000, 150_000).osrt("read", 160_000, 220_000)
        (read,) = [each for each in report_of(trace, tmp_path).findings if each.cause == "io_wait"]
        assert "[/b]" in read.chain[2]


class TestPlaces:
    def steps(self, *causes: tuple[str, int]) -> TraceBuilder:
        """A gap for each (range, ns): a read of that length inside the range, 50_000 after the last kernel.

        ```
        nvtx    [forward        ]
        thread    [read   ][launch]
        device  [K)        ..      [K)
        ```
        """
        trace = TraceBuilder().kernel(1_000_000, 1_100_000, launch=(900_000, 910_000))
        now = 1_100_000
        for name, length in causes:
            trace.osrt("read", now, now + length).nvtx(name, now - 1_000, now + length + 60_000)
            trace.kernel(now + length + 20_000, now + length + 120_000, launch=(now + length, now + length + 10_000))
            now += length + 120_000
        return trace

    def test_two_large_places_are_two_findings(self, tmp_path: Path) -> None:
        report = report_of(self.steps(("forward 1", 400_000), ("loss", 200_000), ("forward 2", 300_000)), tmp_path)
        reads = [each for each in report.findings if each.cause == "io_wait"]
        assert [(each.nvtx, each.lost_ns, each.gaps) for each in reads] == [
            (["forward #"], 700_000, 2),
            (["loss"], 200_000, 1),
        ]
        assert [each.title for each in reads] == [
            "File and network I/O: reads, in forward #",
            "File and network I/O: reads, in loss",
        ]
        assert len({each.id for each in reads}) == 2

    def test_a_long_place_is_one_name_in_title_and_path(self, tmp_path: Path) -> None:
        long = "forward of " + "the encoder " * 8
        report = report_of(self.steps((long, 400_000), ("loss", 200_000), (long, 300_000)), tmp_path)
        (read, _) = [each for each in report.findings if each.cause == "io_wait"]
        assert read.title == f"File and network I/O: reads, in {long[:60]}"
        (hidden, _) = [each for each in redacted(report).findings if each.cause == "io_wait"]
        assert hidden.title == f"File and network I/O: reads, in {hidden.nvtx[0]}"
        assert "encoder" not in hidden.nvtx[0]

    def test_small_places_stay_together(self, tmp_path: Path) -> None:
        """One place with 700_000 and three under 1% of some 2 ms: one finding of the whole cause."""
        small = [("a", 10_000), ("b", 10_000), ("c", 10_000)]
        report = report_of(self.steps(("forward", 700_000), *small), tmp_path, EVERYTHING)
        (reads,) = [each for each in report.findings if each.cause == "io_wait"]
        assert (reads.id, reads.lost_ns, reads.nvtx, reads.gaps) == ("f-io_wait", 730_000, ["forward"], 4)

    def test_at_most_three_places_and_the_rest(self, tmp_path: Path) -> None:
        report = report_of(self.steps(*((name, 100_000) for name in "abcde")), tmp_path)
        reads = [each for each in report.findings if each.cause == "io_wait"]
        assert [each.lost_ns for each in reads] == [200_000, 100_000, 100_000, 100_000]
        assert (reads[0].id, reads[0].title) == ("f-io_wait-rest", "File and network I/O, elsewhere")

    def test_what_nobody_knows_is_never_divided(self, tmp_path: Path) -> None:
        trace = first().nvtx("a", 105_000, 320_000).kernel(300_000, 400_000, launch=(280_000, 290_000))
        trace.nvtx("b", 405_000, 720_000).kernel(700_000, 800_000, launch=(680_000, 690_000))
        (unknown,) = [each for each in report_of(trace, tmp_path).findings if each.cause == "uncovered"]
        assert unknown.lost_ns == 170_000 + 280_000

    def test_kinds_of_one_place_are_apart(self, tmp_path: Path) -> None:
        """Waiting for an event and for the device in one gap: other fixes, so two findings."""
        trace = (
            late(600_000).api("cudaEventSynchronize", 110_000, 210_000).api("cudaDeviceSynchronize", 300_000, 400_000)
        )
        syncs = [each for each in report_of(trace, tmp_path).findings if each.cause == "sync"]
        assert sorted(each.title for each in syncs) == [
            "Synchronization: waits for an event",
            "Synchronization: waits for the whole device",
        ]
        assert {each.lost_ns for each in syncs} == {100_000}

    def test_lost_times_add_up_to_at_most_the_idle_time(self, tmp_path: Path) -> None:
        report = report_of(self.steps(*((f"{name} x", 90_000) for name in "abcdefgh")), tmp_path)
        (device,) = report.devices
        idle = [each.lost_ns for each in report.findings if each.cause in CAUSES]
        assert sum(idle) <= device.idle_ns
        for cause, ns in device.root_ledger.items():
            assert sum(each.lost_ns for each in report.findings if each.cause == cause) <= ns


class TestKinds:
    def test_each_cause_has_kinds_and_the_last_takes_all(self) -> None:
        for kinds in (cause.variants for cause in CAUSES.values()):
            assert (kinds[-1].labels, kinds[-1].call, kinds[-1].hint) == ((), None, None)
            assert len({kind.id for kind in kinds}) == len(kinds)

    def test_a_value_that_is_read_back(self, tmp_path: Path) -> None:
        """
        thread  [cudaMemcpyAsync DtoH 4 bytes][cudaStreamSynchronize     ]
        """
        trace = late().memcpy(112_000, 113_000, kind="DtoH", host="pinned", size=4, launch=(105_000, 111_000))
        trace.api("cudaStreamSynchronize", 112_000, 200_000)
        sync = by_cause(report_of(trace, tmp_path))["sync"]
        assert sync.title == "Synchronization: a value is read back"
        assert "cudaMemcpyAsync" in sync.advice[0]
        assert sync.chain[-1] == "keep the value on the device and read it every n steps"

    @pytest.mark.parametrize(("size", "between"), [(65, 0), (4, 60_000)])
    def test_a_large_or_early_copy_is_no_read_back(self, size: int, between: int, tmp_path: Path) -> None:
        trace = late(600_000).memcpy(112_000, 113_000, kind="DtoH", host="pinned", size=size, launch=(105_000, 111_000))
        trace.api("cudaStreamSynchronize", 112_000 + between, 300_000)
        assert by_cause(report_of(trace, tmp_path))["sync"].title == "Synchronization: waits for a stream"

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("name", "word"),
        [
            ("cudaHostAlloc", "pinned buffers once"),
            ("cuMemCreate", "reserve once"),
            ("cudaFree", "cudaFreeAsync"),
            ("cudaMalloc", "cudaMallocAsync"),
            ("cuModuleLoadData", "CUDA_CACHE_PATH"),
            ("cudaGraphInstantiate", "cudaGraphExecUpdate"),
            ("cudaGetDeviceProperties", "cudaDeviceGetAttribute"),
            ("cudaDeviceSynchronize", "CUDA events"),
            ("cudaEventSynchronize", "cudaStreamWaitEvent"),
        ],
    )
    def test_api_calls_name_their_knob(self, name: str, word: str, tmp_path: Path) -> None:
        (found, *_) = report_of(late().api(name, 110_000, 270_000), tmp_path).findings
        assert (found.call, found.lost_ns) == (name, 160_000)
        assert any(word in advice for advice in found.advice)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("name", "cause", "word"),
        [
            ("pthread_cond_timedwait", "lock_wait", "GIL"),
            ("munmap", "os_memory", "MALLOC_TRIM_THRESHOLD_"),
            ("fork", "sleep", "a pool"),
            ("read", "io_wait", "read-ahead thread"),
            ("fsync", "io_wait", "another thread"),
            ("epoll_wait", "io_wait", "other end"),
        ],
    )
    def test_os_calls_name_their_knob(self, name: str, cause: str, word: str, tmp_path: Path) -> None:
        (found, *_) = report_of(late().osrt(name, 110_000, 270_000), tmp_path).findings
        assert found.cause == cause
        assert any(word in advice for advice in found.advice)

    @pytest.mark.parametrize(
        ("symbols", "title"),
        [
            (["gc_collect_main"] * 2 + ["_PyEval_EvalFrameDefault"] * 3, "Host code: Python's garbage collector"),
            (["_PyEval_EvalFrameDefault"] * 3 + ["memcpy"] * 2, "Host code: the Python interpreter"),
            (["memcpy"] * 5, "Host code"),
        ],
    )
    def test_samples_tell_what_kind_of_host_code(self, symbols: list[str], title: str, tmp_path: Path) -> None:
        trace = late(20_000_000).sched(111_000, True)
        for number, symbol in enumerate(symbols):
            trace.sample(1_000_000 + number * 1_000_000, symbols=(symbol,))
        host = by_cause(report_of(trace, tmp_path))["host_compute"]
        assert host.title == title
        assert ("gc.freeze()" in host.advice[0]) == (symbols[0] == "gc_collect_main")

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("symbol", "range_", "unnamed"), [("main", None, True), ("parse", None, False), ("main", "load", False)]
    )
    def test_samples_that_name_only_main_ask_for_ranges(
        self, symbol: str, range_: str | None, unnamed: bool, tmp_path: Path
    ) -> None:
        trace = late(20_000_000).sched(111_000, True)
        for number in range(5):
            trace.sample(1_000_000 + number * 1_000_000, symbols=(symbol,))
        if range_:
            trace.nvtx(range_, 0, 20_000_000)
        host = by_cause(report_of(trace, tmp_path))["host_compute"]
        assert host.advice[0].startswith("First find out") == unnamed
        assert host.advice[-1].startswith("Profile the host code")

    def test_pageable_memory(self, tmp_path: Path) -> None:
        trace = late().memcpy(113_000, 120_000, host="pageable", launch=(112_000, 260_000), api="cudaMemcpyAsync")
        copy = by_cause(report_of(trace, tmp_path))["exposed_copy"]
        assert copy.title == "Exposed copies and their blocking calls, mostly memcpy HtoD from pageable"
        assert any("cudaHostAlloc" in advice for advice in copy.advice)


class TestChains:
    def test_from_the_call_to_the_fix(self, tmp_path: Path) -> None:
        trace = late().api("cudaDeviceSynchronize", 110_000, 270_000).nvtx("step 7", 500, 500_000)
        trace.thread_name("python")
        assert by_cause(report_of(trace, tmp_path))["sync"].chain == [
            "cudaDeviceSynchronize (waits for the device) on thread 4242 'python'",
            "the queue is empty for 160 µs in one gap",
            "idle before gemm in step #",
            "take cudaDeviceSynchronize out of the step",
        ]

    def test_a_queue_that_was_emptied(self, tmp_path: Path) -> None:
        """The call ends 10_000 into the gap, and 180_000 follow: it made as much of it as the device worked."""
        report = report_of(late().api("cudaStreamSynchronize", 50_000, 120_000), tmp_path)
        sync = by_cause(report)["sync"]
        assert (sync.lost_ns, sync.ceiling_ns) == (10_000, 10_000 + 60_000)
        assert sync.chain[1] == "the queue is empty when the call returns, and stays empty for 60.0 µs in one gap"
        assert [where(row) for row in sync.rows] == [("CUPTI_ACTIVITY_KIND_RUNTIME", 50_000, THREAD, 103)]
        assert all(each.ceiling_ns <= report.devices[0].window_ns for each in report.findings)

    def test_a_value_that_is_read_back_is_a_wait(self, tmp_path: Path) -> None:
        """The copy loses 1_000 itself, and makes as much of the 189_000 that follow as the device worked meanwhile."""
        trace = late().memcpy(110_000, 111_000, kind="DtoH", host="pageable", size=4, launch=(50_000, 112_000))
        found = by_cause(report_of(trace, tmp_path))
        assert found["blocking_copy"].title == "Blocking copy: a value is read back"
        assert found["blocking_copy"].id == "f-blocking_copy-sync"
        assert (found["blocking_copy"].bottleneck, found["blocking_copy"].ceiling_ns) == ("sync", 1_000 + 61_000)
        assert "sync" not in found

    def test_a_copy_of_data_that_emptied_the_queue_made_no_idle_time(self, tmp_path: Path) -> None:
        trace = late().memcpy(110_000, 120_000, kind="DtoH", host="pageable", size=4096, launch=(50_000, 125_000))
        found = by_cause(report_of(trace, tmp_path))["exposed_copy"]
        assert (found.bottleneck, found.gaps) == ("copies", 1)
        assert (found.lost_ns, found.ceiling_ns) == (5_000 + 10_000, 5_000 + 10_000)  # the copy runs alone itself


def waited_for(trace: TraceBuilder, waker: str) -> TraceBuilder:
    """The thread waits in `sem_wait` from 0.2 to 9 ms; NEIGHBOUR, called `waker`, computes from 2 to 8.99 ms."""
    trace.osrt("sem_wait", 200_000, 9_000_000).thread_name(waker, thread=NEIGHBOUR)
    trace.sched(205_000, False).sched(8_995_000, True)
    trace.sched(2_000_000, True, thread=NEIGHBOUR, cpu=3)
    return trace.sched(8_990_000, False, thread=NEIGHBOUR, cpu=3)


class TestRoots:
    def test_findings_are_about_the_root(self, tmp_path: Path) -> None:
        """A loading worker ended the wait: a finding for each thing that it did, as sure as that is."""
        report = report_of(waited_for(late(10_000_000), "pt_data_worker"), tmp_path)
        found = [each for each in report.findings if each.cause == "data_loading"]
        assert "lock_wait" not in by_cause(report)
        assert [each.lost_ns for each in found] == [6_990_000, 1_810_000]
        for loading in found:
            assert loading.title.startswith("Waiting for input data")
            assert loading.confidence == 0.85
            assert "pt_data_worker" in loading.chain[1]
            assert "num_workers" in " ".join(loading.advice)
            assert {where(row) for row in loading.rows} == {("OSRT_API", 200_000, THREAD, None)}

    def test_what_nobody_is_shown_to_have_done_stays_with_the_wait(self, tmp_path: Path) -> None:
        """The neighbour computed for 6.99 ms of it; the thread itself for 90 µs before it and 980 µs after it."""
        found = by_cause(report_of(waited_for(late(10_000_000), "logger"), tmp_path))
        assert found["host_compute"].lost_ns == 6_990_000 + 90_000 + 980_000
        assert found["host_compute"].chain[0] == "root: Host code"
        assert 0.85 < found["host_compute"].confidence < 1
        assert found["lock_wait"].lost_ns == 8_800_000 - 6_990_000
        assert found["lock_wait"].confidence == 1.0


class TestBusyTime:
    def test_work_that_nothing_hides_is_a_finding(self, tmp_path: Path) -> None:
        """
        device  [nccl: 60_000)[copy: 30_000)[K: 10_000)
        """
        trace = TraceBuilder().kernel(1_000, 61_000, name="ncclDevKernel_AllGather", launch=(1, 2))
        trace.memcpy(61_000, 91_000, launch=(3, 4)).kernel(91_000, 101_000, launch=(5, 6))
        findings = report_of(trace, tmp_path).findings
        assert [(each.cause, each.lost_ns, each.severity, each.confidence) for each in findings] == [
            ("exposed_copy", 30_000, "high", 1.0),
            ("exposed_comm", 60_000, "medium", 1.0),
            ("kernels", 0, "medium", 1.0),
        ]
        # There are 10_000 of compute to hide communication under; copies that dwarf it are too many, not too early.
        assert [each.ceiling_ns for each in findings] == [30_000, 10_000, 0]
        assert "Copy less" in findings[0].advice[0]
        assert not any("Overlap copies" in advice for advice in findings[0].advice)
        assert [where(row) for row in findings[0].rows] == [("CUPTI_ACTIVITY_KIND_MEMCPY", 61_000, None, 102)]

    @pytest.mark.parametrize(
        ("thread", "said", "fix"),
        [("main", "Set less memory", "set less memory"), ("pt_main_thread", "set_to_none=True", "zero_grad")],
    )
    def test_memory_sets_have_advice_of_their_own(self, thread: str, said: str, fix: str, tmp_path: Path) -> None:
        trace = TraceBuilder().memset(1_000, 61_000, launch=(1, 2)).kernel(61_000, 101_000, launch=(3, 4))
        copy = by_cause(report_of(trace.thread_name(thread), tmp_path))["exposed_copy"]
        assert said in copy.advice[0]
        assert fix in copy.chain[-1]

    @pytest.mark.parametrize(("host", "pins"), [("pageable", True), ("pinned", False)])
    def test_pinning_comes_before_copying_less(self, host: str, pins: bool, tmp_path: Path) -> None:
        trace = TraceBuilder().memcpy(1_000, 91_000, host=host, launch=(1, 2)).kernel(91_000, 101_000, launch=(3, 4))
        copy = by_cause(report_of(trace, tmp_path))["exposed_copy"]
        (first, *_) = copy.advice
        assert ("pin it" in first, "pin the host memory; " in copy.chain[-1]) == (pins, pins)
        assert "Copy less" in first
        assert first.find("pin it") < first.index("Copy less")

    @pytest.mark.parametrize(
        ("kind", "said"),
        [("HtoD", "on the GPU."), ("DtoH", "before copying back"), ("PtoP", "from one GPU to another")],
    )
    def test_fewer_bytes_are_advised_by_direction(self, kind: str, said: str, tmp_path: Path) -> None:
        trace = TraceBuilder().memcpy(1_000, 91_000, kind=kind, host="pinned", launch=(1, 2))
        copy = by_cause(report_of(trace.kernel(91_000, 101_000, launch=(3, 4)), tmp_path))["exposed_copy"]
        assert said in copy.advice[0]
        assert ("before copying back" in copy.advice[0]) == (kind == "DtoH")

    def test_sets_that_dwarf_compute_are_not_to_be_copied_less(self, tmp_path: Path) -> None:
        trace = TraceBuilder().memset(1_000, 91_000, launch=(1, 2)).kernel(91_000, 101_000, launch=(3, 4))
        copy = by_cause(report_of(trace, tmp_path))["exposed_copy"]
        assert copy.ceiling_ns == 90_000
        assert copy.advice[0].startswith("Set less memory")
        assert not any("Copy less" in advice for advice in copy.advice)


class TestSeveralDevices:
    def test_one_cause_on_two_devices_is_one_finding(self, tmp_path: Path) -> None:
        """
        device 0  [K)...read 50_000....[K)
        device 1  [K)...read 80_000........[K)
        """
        trace = TraceBuilder().osrt("read", 2_000, 100_000)
        for device, start in ((0, 52_000), (1, 82_000)):
            trace.kernel(1_000, 2_000, device=device, launch=(1, 2))
            trace.kernel(start, start + 1_000, device=device, launch=(start - 1, start))
        read, *others = report_of(trace, tmp_path, EVERYTHING).findings
        assert (read.id, read.device, read.devices) == ("f-io_wait", "gpu1", ["gpu0", "gpu1"])
        assert (read.lost_ns, read.gaps) == (49_999 + 79_998, 2)
        assert "io_wait" not in {each.cause for each in others}


def _focus(report: Report) -> int:
    """Where the phase begins that the headline is about."""
    assert report.diagnosis is not None
    assert report.diagnosis.phase is not None
    return report.phases[report.diagnosis.phase].start_ns


class TestIterations:
    def steps(
        self,
        lengths: list[int],
        *,
        works: set[int] | None = None,
        prefills: Collection[int] = (),
        long: Collection[int] = (),
    ) -> TraceBuilder:
        """Each step launches one kernel of 100_000 at its beginning (if it is in `works`), reads, and ends; `prefills`
        one of another name, of 5 ms, and `long` ones the same kernel for 500_000."""
        trace, start = TraceBuilder(), 1_000_000
        for number, idle in enumerate(lengths):
            kernel, name = (5_000_000, "prefill") if number in prefills else (100_000, "gemm")
            kernel += 400_000 * (number in long)
            trace.nvtx(f"step {number}", start - 21_000, start + kernel + idle - 25_000)
            if works is None or number in works:
                trace.kernel(start, start + kernel, name=name, launch=(start - 20_000, start - 10_000))
            trace.osrt("read", start + kernel, start + kernel + idle - 30_000)
            start += kernel + idle
        return trace

    def test_slow_ones_point_and_lose_nothing_of_their_own(self, tmp_path: Path) -> None:
        """Nine steps of 400 µs and one of 1,400 µs: 1 ms more, all of it reads, which the read finding has already."""
        report = report_of(self.steps([300_000] * 6 + [1_300_000] + [300_000] * 3), tmp_path)
        found = by_cause(report)
        slow = found["slow_iterations"]
        assert (slow.lost_ns, slow.ceiling_ns, slow.nvtx) == (0, 1_000_000, ["step #"])
        assert slow.evidence == ["iteration 6: +1.00 ms: file and network I/O +1.00 ms"]
        assert [where(row) for row in slow.rows] == [("CUPTI_ACTIVITY_KIND_KERNEL", 3_400_000, None, 107)]
        assert sum(each.lost_ns for each in report.findings) <= report.devices[0].idle_ns

    def test_all_slow_ones_count_and_their_period_is_told(self, tmp_path: Path) -> None:
        """Every fifth of 81 steps takes 1 ms more: sixteen, of which ten are listed."""
        idle = [1_300_000 if number % 5 == 4 else 300_000 for number in range(81)]
        slow = by_cause(report_of(self.steps(idle), tmp_path))["slow_iterations"]
        assert slow.ceiling_ns == 16 * 1_000_000
        assert slow.title == "Every 5th iteration takes far longer than the median"
        assert slow.evidence[0] == "16 of 80 iterations are slow, every 5th: 16.0 ms more in all"

    def test_what_slow_ones_compute_more_is_no_saving(self, tmp_path: Path) -> None:
        """Three of 41 steps compute 400 µs more, at no regular distance, and one of these reads for 1 ms more."""
        idle = [1_300_000 if number == 19 else 300_000 for number in range(41)]
        slow = by_cause(report_of(self.steps(idle, long=(7, 19, 24)), tmp_path))["slow_iterations"]
        assert slow.ceiling_ns == 1_000_000
        assert slow.evidence[0] == "3 of 40 iterations are slow: 2.20 ms more in all"

    def test_even_ones_are_no_finding(self, tmp_path: Path) -> None:
        assert "slow_iterations" not in by_cause(report_of(self.steps([300_000] * 10), tmp_path))

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("pause_ms", [60, 100, 400])
    def test_a_pause_between_two_phases_is_no_slow_iteration(self, pause_ms: int, tmp_path: Path) -> None:
        """Two loops of 150 steps of 400 µs each, and time between them that is longer than any step."""
        idle = [300_000] * 149 + [pause_ms * 1_000_000] + [300_000] * 150
        report = report_of(self.steps(idle), tmp_path)
        assert [each.name for each in report.phases] == ["steady", "pause", "steady"]
        assert "slow_iterations" not in by_cause(report)
        assert all(each.iterations is None or not each.iterations.slow for each in report.devices)

    @pytest.mark.slow
    def test_slow_ones_of_the_judged_phase_alone_are_told(self, tmp_path: Path) -> None:
        """Two loops, the second one with more to save: of the slow steps of both, those of this one are the finding."""
        first, second = ([300_000] * 150 for _ in range(2))
        first[20], second[40], second[90] = 9_300_000, 2_300_000, 2_300_000
        report = report_of(self.steps([*first[:-1], 200_000_000, *second]), tmp_path)
        (phase,) = (each for each in report.phases if each.judged and each.start_ns == _focus(report))
        slow = by_cause(report).get("slow_iterations")
        outside = 9_000_000 if phase.start_ns < 100_000_000 else 4_000_000
        assert slow is not None
        assert slow.ceiling_ns == outside

    @pytest.mark.slow
    def test_longer_steps_of_another_kind_are_not_slow(self, tmp_path: Path) -> None:
        """Two loops of 150 steps, every fifth a prefill of 5.3 ms: the slow decode steps of the judged loop count."""
        first, second = ([300_000] * 150 for _ in range(2))
        for at in (21, 47, 62, 86, 114):
            first[at] = 3_300_000
        for at in (17, 32, 51, 76, 90, 111, 139):
            second[at] = 3_300_000
        trace = self.steps([*first[:-1], 200_000_000, *second], prefills=range(3, 300, 5))
        report = report_of(trace, tmp_path)
        count = 5 if _focus(report) < 100_000_000 else 7
        slow = by_cause(report)["slow_iterations"]
        assert slow.ceiling_ns == count * 3_000_000
        assert slow.evidence[0].startswith(f"{count} of ")
        assert len(slow.rows) == 3

    def test_steps_without_work(self, tmp_path: Path) -> None:
        """Thirty of 32 steps launch nothing to the device: the first and the last do."""
        report = report_of(self.steps([300_000] * 32, works={0, 31}), tmp_path)
        empty = by_cause(report)["empty_iterations"]
        assert empty.title == "30 of 32 iterations have no work for the device"
        assert empty.lost_ns == 0
        assert empty.saves is None  # nothing tells what work there is for them
        assert empty.evidence[1].startswith("it was idle for 1")
        assert where(empty.rows[0]) == ("NVTX_EVENTS", 1_379_000, THREAD, None)

    @pytest.mark.parametrize("works", [None, set(range(1, 32))])
    def test_full_or_nearly_full_ones_are_no_finding(self, works: set[int] | None, tmp_path: Path) -> None:
        report = report_of(self.steps([300_000] * 32, works=works), tmp_path)
        assert "empty_iterations" not in by_cause(report)

    def test_launches_of_another_thread_count(self, tmp_path: Path) -> None:
        """A backward thread launches inside every second step: none of them is empty."""
        trace = self.steps([300_000] * 10, works=set(range(0, 10, 2)))
        for number in range(1, 10, 2):
            start = 1_000_000 + number * 400_000
            trace.kernel(start, start + 100_000, launch=(start - 20_000, start - 10_000), thread=(4242, 4300))
        assert "empty_iterations" not in by_cause(report_of(trace, tmp_path))


@pytest.mark.slow
def test_rows_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    """Two processes copy at the very same time under the same correlation id, each on a GPU of its own."""
    trace = TraceBuilder(schema="3.24.8").gpu(0).gpu(1)
    for gpu, pid in enumerate((4242, 5000)):
        trace.cuda_device(gpu, 0, pid).memcpy(1_000, 61_000, launch=(1, 2), thread=(pid, pid))
    for device, pid in (("gpu0", 4242), ("gpu1", 5000)):
        findings = report_of(trace, tmp_path, Settings(device=device, replay=False)).findings
        (row,) = [row for each in findings if each.cause == "exposed_copy" for row in each.rows]
        assert row.process == global_pid(pid)
        assert selected(tmp_path / "trace.sqlite", row) == 1


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("example", ["read", "cudaMalloc", "sem_wait", "cudaDeviceSynchronize"])
def test_every_row_can_be_selected(example: str, tmp_path: Path) -> None:
    trace = late()
    trace = (
        trace.api(example, 120_000, 260_000) if example.startswith("cuda") else trace.osrt(example, 120_000, 260_000)
    )
    report = report_of(trace, tmp_path)
    rows = [row for each in report.findings for row in each.rows]
    assert rows
    assert [selected(tmp_path / "trace.sqlite", row) for row in rows] == [1] * len(rows)


class TestPlacesOfWaits:
    """A wait is found where it is called, however the idle time behind it is divided among ranges.

    ```
    device  [===A===)             [===A===)             [===A===)
    thread  [loss: sync )[a][b][c]         [loss: sync )...
    ```
    """

    def test_the_place_is_that_of_the_call(self, tmp_path: Path) -> None:
        report = report_of(waiting_steps(), tmp_path, EVERYTHING)
        found = by_cause(report)["sync"]
        assert found.nvtx == ["step #", "loss"]
        assert found.title == "Synchronization: waits for a stream, in loss"
        assert found.ceiling_ns == STEPS * 300_000 + (STEPS - 1) * 70_000
        assert len([each for each in report.findings if each.cause == "sync"]) == 1

    def test_its_rows_are_the_calls(self, tmp_path: Path) -> None:
        found = by_cause(report_of(waiting_steps(), tmp_path, EVERYTHING))["sync"]
        assert {row.name for row in found.rows} == {"cudaStreamSynchronize"}
        assert {row.ns for row in found.rows} == {370_000}

    def test_two_places_are_two_findings(self, tmp_path: Path) -> None:
        trace = waiting_steps()
        trace = waiting_steps(trace, begin=STEPS * 1_000_000, place="metrics")
        found = [each for each in report_of(trace, tmp_path, EVERYTHING).findings if each.cause == "sync"]
        assert sorted(each.nvtx[-1] for each in found) == ["loss", "metrics"]


STEPS = 6


def waiting_steps(trace: TraceBuilder | None = None, begin: int = 0, place: str = "loss") -> TraceBuilder:
    """Steps of 1 ms: a kernel of 600 µs that a call at `place` waits for, then three kernels of 10 µs in ranges of
    their own, 100 µs apart, and 70 µs until the next step."""
    trace = trace or TraceBuilder()
    for step in range(STEPS):
        at = begin + step * 1_000_000 + 10_000
        trace.nvtx(f"step {step}", at - 5_000, at + 990_000)
        trace.kernel(at, at + 600_000, name="forward", launch=(at - 4_000, at - 1_000))
        trace.nvtx(place, at + 1_000, at + 600_000).api("cudaStreamSynchronize", at + 2_000, at + 600_000)
        for number, name in enumerate("abc", 1):
            start = at + 600_000 + number * 110_000 - 10_000
            trace.nvtx(name, start - 100_000, start + 5_000)
            trace.kernel(start, start + 10_000, name=f"small_{name}", launch=(start - 3_000, start))
    return trace
