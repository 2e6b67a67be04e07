"""A trace that does not hold all that happened is never called healthy: it is said, in the verdict too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import Report, Settings, UsageError, analyze
from nsysdiag.diagnosis.missing import DOUBTED
from tests.builder import TraceBuilder
from tests.hostile.damage import change, copied
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport

pytestmark = pytest.mark.slow

KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
HEALTHY = "Kernels take 97.1% of the judged time."


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("healthy") / "trace.sqlite"
    scenario("healthy").write(path, SCENARIOS["healthy"].capture)
    return path


def changed(trace: Path, folder: Path, *statements: str) -> Report:
    target = copied(trace, folder / "changed.sqlite")
    change(target, *statements)
    return analyze(target)


def only(report: Report) -> DeviceReport:
    (device,) = report.devices
    return device


def headline(report: Report) -> str:
    assert report.diagnosis is not None
    return report.diagnosis.headline


def incomplete(device: DeviceReport) -> str:
    (note,) = (note for note in device.notes if note.startswith("The trace is incomplete: "))
    return note


def test_the_whole_one_is_healthy(healthy: Path) -> None:
    device = only(analyze(healthy))
    assert (device.verdict.id, device.verdict.sentence) == ("gpu-bound", HEALTHY)
    assert device.notes == []


@pytest.mark.parametrize("severity", [2, 3])
@pytest.mark.parametrize("said", ["1,234 CUPTI events were dropped", "Buffer overflow: some data was lost"])
def test_losses_that_nsys_reports(said: str, severity: int, healthy: Path, tmp_path: Path) -> None:
    columns = "timestamp, timestampType, source, severity INTEGER, text TEXT, globalPid"
    made = f"CREATE TABLE DIAGNOSTIC_EVENT ({columns})"
    report = changed(healthy, tmp_path, made, f"INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 1, 2, {severity}, '{said}', 0)")
    assert any(said in warning for warning in report.trace.warnings)
    assert only(report).verdict.sentence == (
        f"{HEALTHY[:-1]}; but the trace is incomplete: nsys reports that events were lost."
    )
    assert "events were lost" in incomplete(only(report))
    assert headline(report).startswith("The trace is incomplete: nsys reports that events were lost. Kernels take")


def test_what_failed_besides_the_gpu_is_no_doubt_of_it(healthy: Path, tmp_path: Path) -> None:
    columns = "timestamp, timestampType, source, severity INTEGER, text TEXT, globalPid"
    said = "Unable to collect CPU samples"
    made = f"CREATE TABLE DIAGNOSTIC_EVENT ({columns})"
    report = changed(healthy, tmp_path, made, f"INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 1, 2, 2, '{said}', 0)")
    assert any(said in warning for warning in report.trace.warnings)
    assert only(report).verdict.sentence == HEALTHY


@pytest.mark.parametrize(
    "gone",
    ["rowid % 2 = 0", "rowid > 150", "rowid > 1", "rowid < 150"],
    ids=["every other", "the last half", "all but one", "the first half"],
)
def test_launches_without_their_kernels(gone: str, healthy: Path, tmp_path: Path) -> None:
    report = changed(healthy, tmp_path, f"DELETE FROM {KERNELS} WHERE {gone}")
    device = only(report)
    assert headline(report).startswith("The trace cannot tell how busy the GPU was: ")
    assert device.verdict.id == "unresolved"
    assert device.verdict.sentence.startswith("The trace cannot tell how busy the GPU was: ")
    assert "kernel launches have no kernel in it" in incomplete(device)


def test_few_launches_without_their_kernels(healthy: Path, tmp_path: Path) -> None:
    few = only(changed(healthy, tmp_path, f"DELETE FROM {KERNELS} WHERE rowid % 20 = 0"))
    assert "but the trace is incomplete: 15 of 300 (5.0%) kernel launches have no kernel in it" in few.verdict.sentence
    assert "15 of 300" in incomplete(few)
    one = only(changed(healthy, tmp_path, f"DELETE FROM {KERNELS} WHERE rowid = 20"))
    assert "incomplete" not in one.verdict.sentence


@pytest.mark.parametrize("name", ["cudaStreamBeginCapture_v10000", "cuStreamBeginCapture"])
def test_launches_into_a_graph_run_later(name: str, tmp_path: Path) -> None:
    trace = TraceBuilder().process().gpu()
    trace.api(name, 1_000, 2_000)
    for number in range(20):
        trace.api("cudaLaunchKernel", 10_000 + 100 * number, 10_050 + 100 * number)
    trace.api(name.replace("Begin", "End"), 20_000, 21_000)
    for number in range(20):
        at = 100_000 + 10_000 * number
        trace.kernel(at + 1_000, at + 9_000, launch=(at - 5_000, at - 1_000))
    assert only(analyze(trace.write(tmp_path / "trace.sqlite"))).notes == []


def test_failed_launches_run_nothing(healthy: Path, tmp_path: Path) -> None:
    gone = f"SELECT correlationId FROM {KERNELS} WHERE rowid % 10 = 0"
    fails = f"UPDATE {CALLS} SET returnValue = 719 WHERE correlationId IN ({gone})"
    device = only(changed(healthy, tmp_path, fails, f"DELETE FROM {KERNELS} WHERE rowid % 10 = 0"))
    assert device.notes == []


def test_holes_among_the_calls(healthy: Path, tmp_path: Path) -> None:
    device = only(changed(healthy, tmp_path, f"DELETE FROM {CALLS} WHERE rowid % 3 = 0"))
    assert "100 of 300 (33.3%) operations have no launch in it" in device.verdict.sentence
    assert "operations have no launch" in incomplete(device)


def test_work_behind_the_end_of_the_session(healthy: Path, tmp_path: Path) -> None:
    device = only(changed(healthy, tmp_path, "UPDATE ANALYSIS_DETAILS SET duration = duration / 2"))
    assert "operations have times that cannot be" in device.verdict.sentence
    assert any("malformed operation rows were left out" in note for note in device.notes)


@pytest.mark.slow
def test_findings_of_it_are_half_as_sure(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    scenario("launch_bound").write(path, SCENARIOS["launch_bound"].capture)
    whole = analyze(path)
    cut = changed(path, tmp_path, f"DELETE FROM {KERNELS} WHERE rowid % 20 = 0")
    assert "incomplete" in only(cut).verdict.sentence
    sure = {finding.cause: finding.confidence for finding in whole.findings}
    found = [finding for finding in cut.findings if finding.cause in sure]
    assert found
    assert all(finding.confidence <= DOUBTED for finding in found)
    assert all(sure[finding.cause] > finding.confidence for finding in found)


def test_no_kernel_at_all(healthy: Path, tmp_path: Path) -> None:
    report = changed(healthy, tmp_path, f"DELETE FROM {KERNELS}")
    assert report.devices == []
    assert "300 kernel launches, but no kernel: GPU work was not recorded" in report.trace.warnings
    assert report.recapture is not None


@pytest.mark.parametrize("name", ["graph_untraced"])
def test_graphs_of_which_nothing_was_traced(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    scenario(name).write(path, SCENARIOS[name].capture)
    report = analyze(path)
    device = only(report)
    assert device.ledger["graph_untraced"] > 0
    assert device.verdict.id != "gpu-bound"
    assert "--cuda-graph-trace=node" in (report.recapture or "")


def test_an_empty_window_is_a_mistake_and_no_verdict(healthy: Path) -> None:
    with pytest.raises(UsageError, match="no GPU work is in the chosen time"):
        analyze(healthy, Settings(start_ns=10**12, end_ns=2 * 10**12))


def test_only_work_without_length(tmp_path: Path) -> None:
    trace = TraceBuilder().process().gpu().kernel(5_000, 5_000, launch=(1_000, 2_000))
    assert only(analyze(trace.write(tmp_path / "trace.sqlite"))).verdict.id == "no-gpu-work"


def sliced(*, running: int = 12_000_000, queued: int = 20, session: int = 0) -> TraceBuilder:
    """A slice: `queued` kernels of 100 µs from before it, 100 launched in it, a last kernel runs while `queued` more
    are launched; `session` ns later the process makes one more call."""
    trace = TraceBuilder().process().gpu()
    for number in range(queued):
        trace.kernel(1_000 + 100_000 * number, 99_000 + 100_000 * number, correlation=1 + number)
    begin = 100_000 * queued
    for number in range(100):
        at = begin + 100_000 * number
        trace.kernel(at + 1_000, at + 99_000, launch=(20_000 * number, 20_000 * number + 5_000))
    at = begin + 100 * 100_000
    trace.kernel(at, at + running, name="flash", launch=(at - 9_000, at - 4_000))
    for number in range(queued):
        trace.api("cudaLaunchKernel", at + running + 10_000 * number, at + running + 10_000 * number + 5_000)
    return trace.api("cudaGetLastError", at + running + session + 300_000, at + running + session + 300_500)


def notes(trace: TraceBuilder, folder: Path) -> list[str]:
    return only(analyze(trace.write(folder / "trace.sqlite"))).notes


def test_the_cut_ends_of_a_slice_are_no_lost_rows(tmp_path: Path) -> None:
    device = only(analyze(sliced().write(tmp_path / "trace.sqlite")))
    assert "incomplete" not in device.verdict.sentence
    assert device.notes == [
        "The trace is a slice of a longer run: 20 operations were launched before it begins, "
        "and 20 kernels were launched and start after it ends."
    ]


def test_a_short_cut_end_is_not_worth_a_word(tmp_path: Path) -> None:
    assert notes(sliced(queued=9), tmp_path) == []


def test_calls_that_go_on_long_after_the_last_kernel(tmp_path: Path) -> None:
    """Nothing that the trace holds runs for as long as the kernels have not come."""
    (said,) = (note for note in notes(sliced(session=13_000_000), tmp_path) if "incomplete" in note)
    assert "20 of 121 (16.5%) kernel launches have no kernel in it" in said


def test_a_synchronization_came_back_after_them(tmp_path: Path) -> None:
    trace = sliced()
    trace.api("cudaDeviceSynchronize", 24_210_000, 24_220_000).api("cudaGetLastError", 24_230_000, 24_231_000)
    assert any("20 of 121 (16.5%) kernel launches have no kernel in it" in note for note in notes(trace, tmp_path))


def test_more_than_fit_into_the_queue(tmp_path: Path) -> None:
    trace = sliced()
    for number in range(1_010):
        trace.api("cudaLaunchKernel", 24_200_000 + 50 * number, 24_200_000 + 50 * number + 40)
    assert any("1,030 of 1,131 (91.1%) kernel launches" in note for note in notes(trace, tmp_path))


def test_operations_without_a_launch_behind_the_first_call(tmp_path: Path) -> None:
    trace = sliced()
    for number in range(20):
        trace.kernel(24_300_000 + 2_000 * number, 24_301_000 + 2_000 * number, correlation=500 + number)
    said = notes(trace, tmp_path)
    assert any("20 of 141 (14.2%) operations have no launch in it" in note for note in said)
    assert any("20 operations were launched before it begins" in note for note in said)


def test_more_operations_without_a_launch_than_were_ever_queued(tmp_path: Path) -> None:
    trace = TraceBuilder().process().gpu()
    for number in range(1_025):
        trace.kernel(1_000 * number + 50, 1_000 * number + 950, correlation=1 + number)
    for number in range(100):
        at = 1_025_000 + 100_000 * number
        trace.kernel(at + 50_000, at + 99_000, launch=(at, at + 5_000), correlation=2_000 + number)
    assert any("1,025 of 1,125 (91.1%) operations have no launch in it" in note for note in notes(trace, tmp_path))
