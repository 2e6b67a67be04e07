"""What commands do, as functions, and the methods of a report."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from nsysdiag import UsageError
from nsysdiag.record import to_json

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.shared import Shared


@pytest.fixture(scope="module")
def trace(shared: Shared) -> Path:
    return shared.trace("counted_training")


@pytest.fixture(scope="module")
def report(trace: Path) -> Report:
    return nsysdiag.analyze(trace)


def test_devices_and_findings_have_names(report: Report, tmp_path: Path) -> None:
    assert report.devices["gpu0"] is report.devices[0]
    first = report.findings[0]
    assert report.findings[first.id] is first
    report.save(tmp_path / "saved.json")
    assert nsysdiag.load(tmp_path / "saved.json").devices["gpu0"] == report.devices[0]
    assert to_json(nsysdiag.load(tmp_path / "saved.json")) == to_json(report)
    with pytest.raises(ValueError, match="gpu9") as raised:
        report.devices["gpu9"]
    assert "gpu0" in str(raised.value.__dict__["hint"])


@pytest.mark.slow
def test_methods_are_the_functions(report: Report) -> None:
    assert report.frames().keys() == nsysdiag.frames(report).keys()
    assert report.all_gaps().equals(nsysdiag.all_gaps(report))
    assert report.compare(report).verdict == nsysdiag.compare(report, report).verdict
    idle = report.devices[0].idle_ns / report.devices[0].window_ns
    assert [each.broken for each in report.check(f"idle_share > {idle / 2:.1%}")] == [True]
    assert [each.broken for each in report.check(f"idle_share > {min(idle * 1.5, 1):.1%}")] == [False]


@pytest.mark.slow
def test_a_prediction_by_words(report: Report, trace: Path, tmp_path: Path) -> None:
    change = f"finding {report.findings[0].id}"
    made = report.whatif(change)
    asked = nsysdiag.whatif(trace, [nsysdiag.Transform(option="finding", of=report.findings[0].id)])
    assert (made.predicted_ns, made.low_ns, made.high_ns) == (asked.predicted_ns, asked.low_ns, asked.high_ns)
    report.save(tmp_path / "saved.json")
    with pytest.raises(UsageError, match="read from a file"):
        nsysdiag.load(tmp_path / "saved.json").whatif(change)


@pytest.mark.parametrize("change", ["", "sync", "witout sync", "without", "kernel gemm", "workers many", "overlap all"])
def test_wrong_changes_are_value_errors(report: Report, change: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        report.whatif(change)


@pytest.mark.slow
def test_files_of_a_bundle_and_a_batch(trace: Path, tmp_path: Path) -> None:
    made = nsysdiag.bundle(trace, tmp_path / "ticket.zip")
    with zipfile.ZipFile(made) as packed:
        assert {"report.html", "trace.sqlite"} <= set(packed.namelist())
    summary = nsysdiag.analyze_batch([trace], tmp_path / "out", budgets=["idle_share > 0%"], jobs=1)
    (entry,) = summary.entries
    assert [each.broken for each in entry.budgets] == [True]
    assert (tmp_path / "out" / "index.html").is_file()
    with pytest.raises(UsageError):
        nsysdiag.analyze_batch([tmp_path / "nothing"], tmp_path / "other")


def test_runs_of_a_baseline(report: Report, tmp_path: Path) -> None:
    folder = tmp_path / "baselines"
    assert len(nsysdiag.add_to_baseline("main", report, folder=folder)) == 1
    assert nsysdiag.add_to_baseline("main", report, folder=folder) == []
    (run,) = nsysdiag.baseline("main", folder)
    assert run.trace.fingerprint == report.trace.fingerprint


def test_facts_of_a_trace(trace: Path) -> None:
    facts = nsysdiag.info(trace)
    assert facts.file == trace.name
    assert facts.tables["CUPTI_ACTIVITY_KIND_KERNEL"]


@pytest.mark.slow
def test_an_open_trace_is_analyzed_and_compared(trace: Path, report: Report) -> None:
    with nsysdiag.open_trace(trace) as opened, nsysdiag.open_trace(trace) as other:
        assert opened.analyze() == report
        assert opened.compare(other).verdict == report.compare(report).verdict


def test_the_trace_of_the_demo(tmp_path: Path) -> None:
    path = nsysdiag.demo_trace(tmp_path / "demo.sqlite")
    assert nsysdiag.demo_trace(path) == path
    assert len(nsysdiag.info(path).gpus) == 2
    path.write_bytes(b"mine")
    with pytest.raises(nsysdiag.OutputError, match="another file"):
        nsysdiag.demo_trace(path)


def test_names_of_the_package() -> None:
    assert dir(nsysdiag) == sorted(nsysdiag.__all__)
