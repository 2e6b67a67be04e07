"""Traces of the PyTorch profiler that were joined from the files of several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze
from nsysdiag.config.settings import Settings
from nsysdiag.messages import InputError
from tests.builder import TraceBuilder
from tests.trace.kineto_traces import document, write

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

    Events = list[dict[str, Any]]

US = 1_000
QUICK = Settings(replay=False, timeline=False)


def of_one(folder: Path, pid: int, kernel: str, latency: int) -> Events:
    """What the profiler wrote of one process: steps of a launch and its kernel. Both processes use the same ids."""
    trace = TraceBuilder().gpu()
    for number in range(20):
        at = (200 + 500 * number) * US
        launch = (at, at + 10 * US)
        began = at + latency * US
        trace.kernel(began, began + 100 * US, name=kernel, launch=launch, thread=(pid, pid), correlation=100 + number)
    return list(document(trace.write(folder / f"{pid}.sqlite"))["traceEvents"])


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Events, Events]:
    return of_one(tmp_path, 10, "gemm", 20), of_one(tmp_path, 20, "conv", 300)


def on_device(events: Events, device: int) -> Events:
    moved = ({**event, "pid": device, "args": {**event["args"], "device": device}} for event in events)
    return [each if each["cat"] == "kernel" else event for each, event in zip(moved, events, strict=True)]


def joined(folder: Path, events: Events) -> Report:
    return analyze(write({"schemaVersion": 1, "traceEvents": events}, folder / "a.pt.trace.json"), QUICK)


def told(report: Report) -> list[tuple[str, str, dict[str, int], int]]:
    return [(each.key, each.kernels[0].name, each.ledger, each.window_ns) for each in report.devices]


@pytest.mark.slow
def test_each_has_what_its_own_file_says(tmp_path: Path, parts: tuple[Events, Events]) -> None:
    alone = [told(joined(tmp_path, events))[0] for events in parts]
    assert [each[1] for each in alone] == ["gemm(float *, int)", "conv(float *, int)"]
    same = told(joined(tmp_path, [*parts[0], *parts[1]]))
    assert [each[0] for each in same] == ["gpu0-pid10", "gpu0-pid20"]
    assert [each[1:] for each in same] == [each[1:] for each in alone]


def test_in_order_of_time_devices_tell_whose_each_is(tmp_path: Path, parts: tuple[Events, Events]) -> None:
    mine = {**parts[0][0], "ts": 0.1, "args": {"correlation": 7}}
    first = [mine, {**parts[0][-1], "ts": 50.0, "args": {**parts[0][-1]["args"], "correlation": 7}}]
    other = on_device(parts[1], 1)
    other += [{**each, "ts": 60.0, "args": {**each["args"], "correlation": 9}} for each in (other[0], other[-1])]
    events = sorted([*parts[0], *first, *other], key=lambda event: float(event["ts"]))
    found = told(joined(tmp_path, events))
    assert [each[:2] for each in found] == [("gpu0", "gemm(float *, int)"), ("gpu1", "conv(float *, int)")]
    assert "launch_unknown" not in {**found[0][2], **found[1][2]}


def test_what_may_be_of_any_is_refused(tmp_path: Path, parts: tuple[Events, Events]) -> None:
    mixed = sorted([*parts[0], *parts[1]], key=lambda event: float(event["ts"]))
    with pytest.raises(InputError, match=r"joins 2 processes, and .* of 40 operations may be of any") as error:
        joined(tmp_path, mixed)
    assert "nsysdiag ranks" in (error.value.hint or "")
