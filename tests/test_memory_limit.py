"""A limit of memory: the whole trace where it fits, else its middle, exactly counted and plainly told."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.events.memory import BASE_BYTES, MIB, needed_bytes
from nsysdiag.messages import UsageError
from nsysdiag.record import to_json
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder
from tests.peak_memory import peak_bytes_of
from tests.simulator.large import write_large

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

KERNELS = 200_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large(tmp_path_factory.mktemp("limit") / "large.sqlite", KERNELS)


@pytest.fixture(scope="module")
def needed(trace: Path) -> int:
    with open_trace(trace) as opened:
        return needed_bytes(opened)


@pytest.mark.thorough
def test_a_trace_that_fits_gives_the_same_bytes(trace: Path, needed: int) -> None:
    assert to_json(analyze(trace, Settings(memory_limit=needed))) == to_json(analyze(trace))


@pytest.mark.thorough
def test_a_part_is_what_that_time_of_the_whole_is(trace: Path, needed: int) -> None:
    """The parts of the time to the nanosecond, the causes but for what is calibrated over all launches."""
    limit = BASE_BYTES + (needed - BASE_BYTES) // 3
    report = analyze(trace, Settings(memory_limit=limit))
    (device,) = report.devices
    (warning,) = [each for each in report.trace.warnings if "memory limit" in each]
    assert "only the time from" in warning
    assert report.settings == {"memory_limit": limit}
    assert "as far as the memory limit allows" in device.window.reason
    assert 0.1 * KERNELS < device.ops.kernel < 0.4 * KERNELS
    low, high = device.window.start_ns, device.window.end_ns
    (same,) = analyze(trace, Settings(start_ns=low, end_ns=high)).devices
    for part in ("window_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns"):
        assert getattr(device, part) == getattr(same, part)
    assert sum(device.ledger.values()) == device.idle_ns
    for cause, ns in same.ledger.items():
        assert device.ledger.get(cause, 0) == pytest.approx(ns, rel=0.02, abs=0.001 * same.idle_ns)
    assert device.verdict == same.verdict


@pytest.mark.thorough
def test_the_middle_of_the_chosen_time(trace: Path, needed: int) -> None:
    limit = BASE_BYTES + (needed - BASE_BYTES) // 5
    (whole,) = analyze(trace).devices
    half = (whole.window.start_ns + whole.window.end_ns) // 2
    (device,) = analyze(trace, Settings(memory_limit=limit, end_ns=half)).devices
    assert device.window_ns > 0
    assert device.window.end_ns <= half


@pytest.mark.thorough
def test_what_needs_all_of_it_is_refused(trace: Path, needed: int) -> None:
    limit = (BASE_BYTES + needed) // 2
    for settings in (Settings(memory_limit=limit, nvtx="forward"), Settings(memory_limit=limit, iterations=(0, 2))):
        with pytest.raises(UsageError, match="need all of it"):
            analyze(trace, settings)
    with pytest.raises(UsageError, match="is too little"):
        analyze(trace, Settings(memory_limit=20 * MIB))


def test_a_trace_without_events_is_refused_as_plainly(tmp_path: Path) -> None:
    path = TraceBuilder().gpu().write(tmp_path / "empty.sqlite")
    with pytest.raises(UsageError, match="is too little"):
        analyze(path, Settings(memory_limit=MIB))


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not tell the memory of a process")
def test_the_process_stays_below_the_limit(trace: Path, needed: int, tmp_path: Path) -> None:
    def peak_mib(*options: str) -> float:
        out = tmp_path / "report.json"
        line = [
            sys.executable,
            "-P",
            "-m",
            "nsysdiag",
            "analyze",
            str(trace),
            "-q",
            "--force",
            "-o",
            str(out),
            *options,
        ]
        peak = peak_bytes_of(line)
        assert json.loads(out.read_bytes())["devices"]
        return peak / MIB

    limit = (BASE_BYTES + (needed - BASE_BYTES) // 4) // MIB
    assert peak_mib("--memory-limit", f"{limit}MiB") < min(limit, peak_mib())
