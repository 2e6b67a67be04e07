"""The numbers of a report as sums of rows of its table of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.report import DeviceReport, Report

if TYPE_CHECKING:
    import pandas as pd

STATES = ("compute", "exposed_comm", "exposed_copy", "idle")


def assert_adds_up(report: Report) -> None:
    """Each split, ledger and account of a report is a sum of rows, and each nanosecond is in one row."""
    time = report.time
    assert (time.ns > 0).all()
    for device in report.devices:
        rows = time[time.device == device.key]
        assert (rows.start_ns.to_numpy()[1:] >= rows.end_ns.to_numpy()[:-1]).all(), "rows overlap"
        window = rows[rows.state != "outside"]
        assert window.ns.sum() == device.window_ns
        assert by(window, "state") == _left({name: getattr(device, f"{name}_ns") for name in STATES})
        assert by(window, "cause") == _left(device.ledger)
        assert by(window, "root_cause") == _left(device.root_ledger)
        assert window[window.state != "idle"].cause.isna().all()
        _phases_add_up(report, device, rows)
        _steps_add_up(device, window)
        _ranges_add_up(device)
        _flames_add_up(device)
    if report.diagnosis is not None and len(report.devices) == 1 and report.diagnosis.basis != "none":
        _headline_adds_up(report, time[time.judged])


def by(rows: pd.DataFrame, column: str) -> dict[str, int]:
    """The ns of each name in a column."""
    return _left({str(name): ns for name, ns in rows.groupby(column, observed=True).ns.sum().items()})


def _left(sums: dict[str, int]) -> dict[str, int]:
    return {name: int(ns) for name, ns in sums.items() if ns}


def _phases_add_up(report: Report, device: DeviceReport, rows: pd.DataFrame) -> None:
    for at, phase in enumerate(report.phases):
        found = next(each for each in phase.devices if each.key == device.key)
        mine = rows[rows.phase == at]
        inside = mine[mine.state != "outside"]
        assert by(inside, "state") == _left({name: getattr(found, f"{name}_ns") for name in STATES})
        assert by(inside, "cause") == _left(found.ledger)
        assert by(mine if found.account_base == "start" else inside, "bottleneck") == _left(found.account)


def _steps_add_up(device: DeviceReport, window: pd.DataFrame) -> None:
    for row in device.iterations.rows if device.iterations else ():
        mine = window[window.step == row.index]
        assert by(mine, "state") == _left(
            {**{name: getattr(row, f"{name}_ns") for name in STATES[:3]}, "idle": sum(row.ledger.values())}
        )
        assert by(mine, "cause") == _left(row.ledger)


def _ranges_add_up(device: DeviceReport) -> None:
    """The first row is the window; each holds those inside it, and their own times are all of it."""
    if device.ranges is None:
        return
    whole, rows = device.ranges.rows[0], device.ranges.rows
    assert (whole.path, whole.work_ns, _left(whole.idle)) == ([], device.busy_ns, _left(device.ledger))
    if len(rows) < device.ranges.count:
        return
    assert sum(row.own_work_ns for row in rows) == device.busy_ns
    assert sum(row.own_idle_ns for row in rows) == device.idle_ns
    for row in rows:
        inside = [each for each in rows if len(each.path) == len(row.path) + 1 and each.path[:-1] == row.path]
        assert row.time_ns == row.own_ns + sum(each.time_ns for each in inside)


def _flames_add_up(device: DeviceReport) -> None:
    """The stacks of idle time divide it by root cause."""
    assert device.flames is not None
    by_cause: dict[str, int] = {}
    for each in device.flames.idle:
        by_cause[each.cause] = by_cause.get(each.cause, 0) + each.ns
    assert by_cause == _left(device.root_ledger)
    assert sum(by_cause.values()) == device.idle_ns


def _headline_adds_up(report: Report, judged: pd.DataFrame) -> None:
    """The share of the bottleneck that leads is that of its judged rows."""
    assert report.diagnosis is not None
    leads = report.diagnosis.bottleneck
    found = by(judged, "bottleneck")
    share = sum(found.get(name, 0) for name in (KERNELS if leads in KERNELS else (leads,))) / judged.ns.sum()
    assert share == pytest.approx(report.diagnosis.share, abs=1e-5)
