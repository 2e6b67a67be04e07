"""The stages of an analysis: in their order, with progress, and with what the second thread finds wrong."""

from __future__ import annotations

from typing import Any

import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.config.settings import Settings
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.pipeline import analysis, devices, reading
from nsysdiag.pipeline.analysis import analysis_of, analyze_devices
from nsysdiag.pipeline.device_time import DeviceGaps, gaps_of
from tests.diagnosis.report_json import as_json
from tests.shared import Shared


@pytest.fixture
def trace(shared: Shared) -> str:
    return str(shared.fixture("sim_two_gpus.sqlite"))


@pytest.mark.slow
def test_progress_only_grows(trace: str) -> None:
    told: list[tuple[str, float]] = []
    analyze(trace, progress=lambda step, share: told.append((step, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert len({step for step, _ in told}) == len(told) > 3


def test_ranks_need_neither_the_report_nor_the_host(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in ("judge_job", "write_report"):
        monkeypatch.setattr(analysis, stage, None)
    with open_trace(trace) as opened:
        found = analyze_devices(opened, Settings())
    assert [each.report.key for each in found.devices] == ["gpu0", "gpu1"]


@pytest.mark.slow
def test_a_table_of_time_is_kept_on_request_alone(trace: str) -> None:
    with open_trace(trace) as opened:
        kept = [analysis_of(opened, Settings(), keep_time=keep).job.results for keep in (False, True)]
    assert [[each.time is not None for each in results] for results in kept] == [[False] * 2, [True] * 2]


@pytest.mark.slow
def test_one_thread_says_what_two_say(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them are used depends on the size of the file."""
    said = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(reading, "SMALL_BYTES", least)
        said.append(as_json(analyze(trace)))
    assert said[0] == said[1]


class BrokenError(Exception):
    pass


@pytest.mark.parametrize(
    "function",
    [
        "reading.read_counters",
        "device_time.launch_report",
        "device_time.flame_graph",
        "device_time.pack_gaps",
        "devices.predictions_of",
    ],
)
def test_errors_of_the_second_thread_reach_the_caller(
    function: str, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_values: object) -> None:
        raise BrokenError

    monkeypatch.setattr(f"nsysdiag.pipeline.{function}", broken)
    with pytest.raises(BrokenError):
        analyze(trace)


@pytest.mark.parametrize("wrong", [0, 1])
def test_errors_of_a_device_reach_the_caller_from_either_thread(
    wrong: int, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def broken(device: DeviceTimeline, *values: Any) -> DeviceGaps:
        seen.append(device.number)
        if device.number == wrong:
            raise BrokenError
        return gaps_of(device, *values)

    monkeypatch.setattr(devices, "gaps_of", broken)
    with pytest.raises(BrokenError):
        analyze(trace)
    assert wrong in seen
