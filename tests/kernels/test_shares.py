"""Kernel shares in reports, recomputed from the rows of the trace: shares of the judged time, in every place."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from nsysdiag import typed
from nsysdiag.arrays.intervals import Intervals, intersect, union
from nsysdiag.config.settings import Settings
from nsysdiag.findings.facts import Finding
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.pipeline import analyze
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of
from tests.shared import Shared
from tests.utilization.test_utilization import blocks as of_blocks
from tests.utilization.test_utilization import chip

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
MS = 1_000_000
KERNEL_FINDINGS = ("kernels", "parallelism")
_EVIDENCE = re.compile(r"(?P<name>.+?): (?P<share>[\d.]+)% of the judged time, ")
_KIND = re.compile(r"(?P<share>[\d.]+)% \((?P<name>\w+)\)")
"""A kind of kernels of one name in a headline."""
_GRAPHS = "SELECT start, end FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE WHERE deviceId = ?"
_KERNELS = (
    "SELECT k.start, k.end FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
    "WHERE k.deviceId = ? AND s.value = ?"
)


def judged_of(report: Report, device: str) -> tuple[Intervals, int]:
    """The judged time of a device in its window, and the length of its account."""
    assert report.diagnosis is not None
    chosen = report.phases if report.diagnosis.phase is None else [report.phases[report.diagnosis.phase]]
    account = [each for phase in chosen for each in phase.devices if each.key == device]
    (mine,) = (each for each in report.devices if each.key == device)
    window = Intervals.of([(mine.window.start_ns, mine.window.end_ns)])
    parts = intersect(union(Intervals.of([(phase.start_ns, phase.end_ns) for phase in chosen])), window)
    return parts, sum(sum(each.account.values()) for each in account)


def share_by_rows(path: Path, report: Report, finding: Finding, name: str) -> float:
    """In per cent, by the rows of the trace."""
    (device,) = (each for each in report.devices if each.key == finding.device)
    query = (_GRAPHS, ()) if name == "CUDA graphs" else (_KERNELS, (name,))
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as trace:
        rows = trace.execute(query[0], (device.ids[0].device_id, *query[1])).fetchall()
    parts, account = judged_of(report, finding.device)
    return 100 * intersect(union(Intervals.of(rows)), parts).total() / account


def share_of_all(path: Path, report: Report, finding: Finding, name: str) -> float:
    """The same of all GPUs of the finding."""
    keys = finding.devices
    shares = [share_by_rows(path, report, structs.replace(finding, device=key), name) for key in keys]
    accounts = [judged_of(report, key)[1] for key in keys]
    return sum(share * ns for share, ns in zip(shares, accounts, strict=True)) / sum(accounts)


def check(path: Path, report: Report, *, apart: float = 0.0951) -> int:
    """Compares every kernel share that findings say; returns how many."""
    compared = 0
    for finding in report.findings:
        for line in finding.evidence if finding.cause in KERNEL_FINDINGS else ():
            said = _EVIDENCE.match(typed.plain(line))
            if said is None or "<" in said["name"]:  # instances of a template have one short name
                continue
            expected = share_by_rows(path, report, finding, said["name"])
            assert float(said["share"]) == pytest.approx(expected, abs=apart), line
            compared += 1
        for kind in _KIND.finditer(typed.plain(finding.summary)) if finding.cause in KERNEL_FINDINGS else ():
            # Pages that move inside kernels are no time of these.
            expected = min(share_of_all(path, report, finding, kind["name"]), 100 * finding.share)
            assert float(kind["share"]) == pytest.approx(expected, abs=apart), finding.summary
            compared += 1
    return compared


def loop(folder: Path, body: list[tuple[str, int, int, int, int]], steps: int = 20, period: int = 10 * MS) -> Path:
    """A program of `steps` steps: name, begin, end, blocks and stream of each kernel in a step. `graph` is a whole
    graph."""
    trace = TraceBuilder().gpu(sm_count=108)
    for step in range(1, steps + 1):
        at = step * period
        for number, (name, begin, end, blocks, stream) in enumerate(body):
            launch = (at + begin - 30_000 - number, at + begin - 20_000)
            if name == "graph":
                trace.graph_trace(at + begin, at + end, stream=stream, launch=launch)
            else:
                trace.kernel(at + begin, at + end, name=name, stream=stream, launch=launch, shape={"gridX": blocks})
    return trace.write(folder / "trace.sqlite")


PROGRAMS: dict[str, list[tuple[str, int, int, int, int]]] = {
    "full and empty kernels": [("full", 0, 6 * MS, 216, 7), ("tiny", 6 * MS, 9 * MS, 2, 7)],
    "mostly empty kernels": [("full", 0, 2 * MS, 216, 7), ("tiny", 3 * MS, 9 * MS, 2, 7)],
    "one kernel fills the GPU for a part of its time": [("big", 0, 5 * MS, 40, 7), ("beside", 1 * MS, 3 * MS, 40, 8)],
    "kernels at the same time": [("first", 0, 8 * MS, 216, 7), ("second", 2 * MS, 9 * MS, 216, 8)],
    "kernels beside idle time": [("alone", 0, 3 * MS, 216, 7)],
    "a graph and small kernels": [("small", 0, 10_000, 216, 7), ("graph", 20_000, 9 * MS, 0, 7)],
    "a graph and a kernel": [("kernel", 0, 4 * MS, 216, 7), ("graph", 5 * MS, 9 * MS, 0, 7)],
    "a kernel and a small graph": [("kernel", 0, 8 * MS, 216, 7), ("graph", 8 * MS + 10, 8 * MS + 50_000, 0, 7)],
    "graphs alone": [("graph", 0, 9 * MS, 0, 7)],
}


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_shares_of_programs(name: str, tmp_path: Path) -> None:
    path = loop(tmp_path, PROGRAMS[name])
    report = analyze(path, Settings(replay=False))
    assert check(path, report) >= 1


@pytest.mark.slow
def test_the_kernels_of_two_gpus_are_shares_of_both(tmp_path: Path) -> None:
    """Two GPUs compute for 40% and 80% of the time, by the same kernel."""
    trace = TraceBuilder().gpu(0, sm_count=108).gpu(1, sm_count=108)
    for at in range(10 * MS, 210 * MS, 10 * MS):
        for device, length in ((0, 4 * MS), (1, 8 * MS)):
            launch = (at - 40_000 + 15_000 * device, at - 30_000 + 15_000 * device)
            trace.kernel(at, at + length, name="same", device=device, launch=launch, shape={"gridX": 216})
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(replay=False))
    assert report.diagnosis is not None
    said = re.search(r"Kernels take ([\d.]+%) .*?: same ([\d.]+%)\.", typed.plain(report.diagnosis.headline))
    assert said is not None, report.diagnosis.headline
    assert said[1] == said[2]


@pytest.mark.slow
def test_the_finding_has_the_share_of_the_headline(tmp_path: Path) -> None:
    """A short kernel on a mostly empty GPU counts as kernel time in both; a long one has a finding of its own."""
    for length, apart in ((300_000, 1), (3 * MS, 2)):
        trace = chip()
        for at in range(10 * MS, 210 * MS, 10 * MS):
            for name, begin, end, shape in (("full", 0, 6 * MS, 216), ("tiny", 6 * MS, 6 * MS + length, 2)):
                trace.kernel(
                    at + begin, at + end, name=name, launch=(at - 40_000 + begin // 1_000, at), shape=of_blocks(shape)
                )
        report = analyze(trace.write(tmp_path / f"{apart}.sqlite"), Settings(replay=False))
        assert report.diagnosis is not None
        found = [each for each in report.findings if each.cause in KERNEL_FINDINGS]
        assert len(found) == apart
        assert sum(each.share for each in found) == pytest.approx(report.diagnosis.share, abs=1e-5)


@pytest.mark.slow
def test_a_start_is_judged_from_the_first_call(tmp_path: Path) -> None:
    """One kernel of 30 ms, 170 ms after the first CUDA call: 15% of the judged time, all of the kernel time."""
    trace = TraceBuilder().gpu(sm_count=108)
    trace.api("cudaMalloc", 10 * MS, 160 * MS)
    trace.kernel(180 * MS, 210 * MS, name="only", launch=(170 * MS, 171 * MS))
    path = trace.write(tmp_path / "trace.sqlite")
    check(path, analyze(path, Settings(replay=False)))


class TestWholeGraphs:
    def said(self, body: list[tuple[str, int, int, int, int]], folder: Path) -> tuple[Report, Finding]:
        report = analyze(loop(folder, body), Settings(replay=False))
        return report, next(each for each in report.findings if each.cause == "kernels")

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["a graph and small kernels", "graphs alone"])
    def test_lead_and_are_no_kernel(self, name: str, tmp_path: Path) -> None:
        report, found = self.said(PROGRAMS[name], tmp_path)
        assert report.diagnosis is not None
        assert report.diagnosis.bottleneck == "kernels"
        assert report.diagnosis.headline.startswith("CUDA graphs, recorded as a whole, take ")
        assert report.diagnosis.headline.endswith(": 20 launches; the kernels inside are not in the trace.")
        assert found.title == "CUDA graphs, recorded as a whole, occupy the GPU: 20 launches"
        assert "--cuda-graph-trace=node" in found.advice[0]
        assert not any("ncu" in text for text in found.advice)
        assert "small" not in report.diagnosis.headline
        assert found.confidence < 0.6

    def test_share_the_time_with_a_kernel(self, tmp_path: Path) -> None:
        """Both are named with their shares, and a profile of the kernel is worth it if it is the longest."""
        body = [("kernel", 0, 4 * MS, 216, 7), ("graph", 5 * MS, 8 * MS, 0, 7)]
        report, found = self.said(body, tmp_path)
        assert report.diagnosis is not None
        assert re.search(
            r"kernel 4\d\.\d%, \d+ launches of CUDA graphs recorded without .* 3\d\.\d%", report.diagnosis.headline
        )
        assert any("--cuda-graph-trace=node" in text for text in found.advice)
        assert any("ncu --set full --kernel-name kernel" in text for text in found.advice)

    def test_that_are_most_of_it_are_named_with_the_kernels(self, tmp_path: Path) -> None:
        body = [("graph", 0, 5 * MS, 0, 7), ("kernel", 5 * MS, 8 * MS, 216, 7)]
        report, _ = self.said(body, tmp_path)
        assert report.diagnosis is not None
        assert report.diagnosis.headline.startswith("Kernels and CUDA graphs, these recorded as a whole, take ")
        assert "50.5%, kernel 30.3%; the kernels inside are not in the trace." in report.diagnosis.headline
        assert report.phases[0].devices[0].graphs_ns == pytest.approx(5 / 8 * report.devices[0].compute_ns, rel=0.05)

    @pytest.mark.slow
    def test_are_no_compute_in_any_label(self, tmp_path: Path) -> None:
        """The bar, its legend, the phases, the GPU, and what is said of its SMs by one small kernel."""
        report, _ = self.said([("graph", 0, 8 * MS, 0, 7), ("small", 8 * MS, 8 * MS + 9_000, 1, 7)], tmp_path)
        text = FORMATS["md"].render(report, RenderOptions()).decode()
        page = FORMATS["html"].render(report, RenderOptions()).decode()
        assert report.devices[0].verdict.sentence.startswith("CUDA graphs, recorded as a whole, take ")
        assert re.search(r"Judged time by bottleneck: CUDA graphs, recorded as a whole \d", text)
        assert "Compute or whole CUDA graphs" in page
        assert not re.search(r"[Kk]ernels (take )?\d\d\.\d%|computing \d\d", text + page)
        estimate = report.devices[0].utilization.estimate
        assert (estimate.sm_active_running, estimate.sm_active_computing) == (None, None)
        assert "of the SMs have work" not in text
        assert "while a kernel runs" not in page

    def test_a_small_graph_changes_nothing(self, tmp_path: Path) -> None:
        report, found = self.said(PROGRAMS["a kernel and a small graph"], tmp_path)
        assert report.diagnosis is not None
        assert "graph" not in report.diagnosis.headline
        assert found.confidence > 0.99
        assert not any("--cuda-graph-trace" in text for text in found.advice)

    def test_of_nodes_are_kernels(self, tmp_path: Path) -> None:
        """Graphs recorded node by node have kernels like any other."""
        trace = TraceBuilder().gpu(sm_count=108)
        for at in range(10 * MS, 210 * MS, 10 * MS):
            call = (at - 30_000, at - 20_000)
            trace.kernel(at, at + 9 * MS, name="node", launch=call, api="cudaGraphLaunch", graph_node=1 << 32 | 7)
        found = next(each for each in report_of(trace, tmp_path).findings if each.cause == "kernels")
        assert found.title == "Kernel time: node"
        assert "graph" not in found.advice[0]


@pytest.mark.real
@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.sqlite")), ids=lambda path: path.name[:24])
def test_shares_of_real_traces(path: Path, shared: Shared) -> None:
    check(path, shared.report(path))


@pytest.mark.real
def test_graphs_of_a_real_trace() -> None:
    """30 kernels of 78 µs in all, and 10 graphs of 7.81 s."""
    found = sorted(FOLDER.rglob("*cudagraph*.sqlite"))
    if not found:
        pytest.skip("the trace is not at hand")
    report = analyze(found[0], Settings(replay=False))
    assert report.diagnosis is not None
    assert report.diagnosis.headline.startswith("CUDA graphs, recorded as a whole, take 99.9% of each step")
    assert report.devices[0].utilization.estimate.sm_active_running is None
    assert "multi_tensor" not in report.diagnosis.headline
    assert not any("ncu" in text for finding in report.findings for text in finding.advice)
