"""Every real trace at hand, through the whole program: all formats, exact sums, nothing written beside it.

The traces are those of the folder that NSYSDIAG_TRACES names.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from nsysdiag import Report, Settings, analyze
from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import BEFORE_WORK
from nsysdiag.messages import UsageError
from nsysdiag.report import DeviceReport
from nsysdiag.saved import from_json
from nsysdiag.trace.tables import TABLES
from tests.launches.launch_checks import check_launches
from tests.levels import some
from tests.selecting import selected
from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))
SMALL_BYTES = 2 << 20

pytestmark = pytest.mark.real
every_trace = pytest.mark.parametrize("trace", FILES or [Path("none")], ids=lambda path: path.stem)
some_traces = pytest.mark.parametrize("trace", some(FILES, 5) or [Path("none")], ids=lambda path: path.stem)
every_small_trace = pytest.mark.parametrize(
    "trace",
    [path for path in FILES if path.stat().st_size <= SMALL_BYTES] or [Path("none")],
    ids=lambda path: path.stem,
)

WITHOUT_ROWS = (BEFORE_WORK.id,)
"""Before the first work a bottleneck may have neither calls nor CPU samples."""


def assert_exact(device: DeviceReport) -> None:
    """Nothing is lost or counted twice, on the device, in its ledger, its gaps and its iterations."""
    parts = device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns + device.idle_ns
    assert parts == device.window_ns == sum(end - start for start, end in device.window.parts)
    assert device.busy_ns + device.idle_ns == device.window_ns
    assert sum(device.ledger.values()) == sum(device.root_ledger.values()) == device.idle_ns
    assert all(ns > 0 for ns in device.ledger.values())
    kinds = device.communication.kinds
    assert sum(row.exposed_ns for row in kinds) == device.exposed_comm_ns == device.communication.exposed_ns
    assert sum(row.overlapped_ns for row in kinds) == device.overlapped_comm_ns
    assert sum(row.total_ns for row in kinds) == device.communication.total_ns
    assert all(row.idle_ns <= min(row.total_ns, device.idle_ns) for row in device.communication.mpi)
    for cause, labels in device.labels.items():
        assert sum(labels.values()) <= device.ledger[cause]
    for gap in device.gaps:
        assert sum(part.ns for part in gap.slices) == gap.end_ns - gap.start_ns
        assert all(part.ns > 0 for part in gap.slices)
    for row in device.iterations.rows if device.iterations else ():
        work = row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns
        assert work + sum(row.ledger.values()) == row.end_ns - row.start_ns
    check_launches(device)


@pytest.mark.sampled(normal=3)
@some_traces
def test_all_formats(trace: Path, tmp_path: Path) -> None:
    before = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir())
    outputs = [tmp_path / f"report.{suffix}" for suffix in ("html", "json", "md", "txt", "csv")]
    options = [argument for path in outputs for argument in ("-o", str(path))]
    run = subprocess.run(
        [sys.executable, "-P", "-m", "nsysdiag", "analyze", str(trace), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert all(path.stat().st_size > 0 for path in outputs)
    report = from_json(outputs[1].read_bytes(), Report)
    for device in report.devices:
        assert_exact(device)
    assert report.diagnosis is not None
    assert report.diagnosis.headline in " ".join(run.stdout.split())
    after = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir())
    assert after == before


@pytest.mark.sampled(normal=3)
@some_traces
def test_windows_side_by_side_are_the_whole(trace: Path) -> None:
    whole = analyze(trace, Settings(gaps=0))
    for device in whole.devices:
        assert_exact(device)
        middle = (device.window.start_ns + device.window.end_ns) // 2
        sides = [_part(trace, device, end_ns=middle), _part(trace, device, start_ns=middle)]
        together: dict[str, int] = {}
        for side in sides:
            for cause, ns in side.ledger.items() if side else ():
                together[cause] = together.get(cause, 0) + ns
        assert together == device.ledger
        assert sum(side.idle_ns for side in sides if side) == device.idle_ns


def _part(trace: Path, device: DeviceReport, **bounds: int) -> DeviceReport | None:
    try:
        report = analyze(trace, Settings(device=device.key, timeline=False, **bounds))  # type: ignore[arg-type]
    except UsageError:
        return None
    return report.devices[0]


@pytest.mark.sampled(normal=3)
@some_traces
def test_both_readers_tell_the_same(trace: Path, shared: Shared) -> None:
    assert _told(analyze(trace, Settings(reader="sqlite3"))) == _told(shared.report(trace))


def _told(report: Report) -> tuple[object, ...]:
    return report.devices, report.findings, report.timeline, report.recapture


@every_trace
def test_findings_claim_no_more_than_there_is(trace: Path, shared: Shared) -> None:
    report = shared.report(trace)
    assert len(report.findings) <= 12
    longest = max((device.window_ns for device in report.devices), default=0)
    for device in report.devices:
        mine = [finding for finding in report.findings if finding.devices == [device.key]]
        assert sum(finding.lost_ns for finding in mine if finding.cause in CAUSES) <= device.idle_ns
        assert all(finding.ceiling_ns <= longest or finding.cause == BEFORE_WORK.id for finding in mine)
        for finding in mine:
            assert finding.lost_ns <= device.root_ledger.get(finding.cause, device.window_ns)
            assert finding.signature is None or finding.signature.startswith("s-")
            assert finding.chain
            assert all(finding.chain)


@every_trace
def test_every_row_of_a_finding_can_be_selected(trace: Path, shared: Shared) -> None:
    findings = shared.report(trace).findings
    for finding in findings:
        assert len(finding.rows) <= 3, finding.id
        assert finding.rows or finding.cause in WITHOUT_ROWS, finding.id
        assert [selected(trace, row) for row in finding.rows] == [1] * len(finding.rows), finding.rows


@pytest.mark.thorough
@every_small_trace
def test_any_table_may_be_missing_or_empty(trace: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(f"{trace.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as source:
        rows = source.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        there = [name for (name,) in rows]
    known = {name for name in there if name in TABLES or name.startswith("CUPTI_")}
    tables = [*sorted(known), *some(sorted(set(there) - known), 8)]
    for number, table in enumerate(some(tables, 2, thorough=2)):
        copy = tmp_path / "copy.sqlite"
        shutil.copyfile(trace, copy)
        copy.chmod(0o600)
        with closing(sqlite3.connect(copy)) as changed:
            quoted = '"' + table.replace('"', '""') + '"'
            changed.execute(f"DROP TABLE {quoted}" if number % 2 else f"DELETE FROM {quoted}")
            changed.commit()
        for device in analyze(copy).devices:
            assert_exact(device)
