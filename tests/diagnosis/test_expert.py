"""Reports about real traces, held to an expert's reading of each."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.formats import FORMATS, RenderOptions
from tests.diagnosis.agreement import CHECKS, Cap, Reading, Steps
from tests.diagnosis.fakes import MS, steady_report
from tests.diagnosis.readings import READINGS
from tests.diagnosis.report_json import as_json, diagnosis_of, phases_of

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

    from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))


def _trace(reading: Reading) -> Path:
    found = list(FOLDER.glob(f"{reading.trace}*.sqlite"))
    if len(found) != 1:
        pytest.skip(f"no trace {reading.trace} in {FOLDER.name}")
    return found[0]


@cache
def _read(trace: Path, shared: Shared) -> tuple[dict[str, Any], str]:
    """The report about a trace, as JSON and as text."""
    report = shared.report(trace)
    plain, text = as_json(report), FORMATS["txt"].render(report, RenderOptions()).decode()
    diagnosis_of(plain), phases_of(plain)
    return plain, text


def _cases() -> list[ParameterSet]:
    return [
        pytest.param(reading, check, id=f"{reading.trace}-{check}", marks=_expected(reading, check))
        for reading in READINGS
        for check in CHECKS
    ]


def _expected(reading: Reading, check: str) -> list[pytest.MarkDecorator]:
    if (reading.trace, check) != ("mordred", "second"):
        return []
    reason = "neither scheduling nor samples were recorded: idle time of the host code is unexplained"
    return [pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)]


@pytest.mark.real
@pytest.mark.parametrize(("reading", "check"), _cases())
def test_the_report_agrees(reading: Reading, check: str, shared: Shared) -> None:
    assert list(CHECKS[check](reading, *_read(_trace(reading), shared))) == []


@pytest.mark.real
@pytest.mark.parametrize(
    "reading", [reading for reading in READINGS if reading.shares], ids=lambda reading: reading.trace
)
def test_the_ledger_agrees_in_the_expert_s_range(reading: Reading) -> None:
    """In the expert's range the exact split is the expert's: what differs otherwise is the judgement."""
    start, end = reading.judged or (None, None)
    report = analyze(_trace(reading), Settings(start_ns=start, end_ns=end, timeline=False))
    assert {device.ids[0].device_id for device in report.devices} == reading.shares.keys()
    for device in report.devices:
        expected = reading.shares[device.ids[0].device_id]
        parts = (device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns, device.idle_ns)
        assert [100 * part / device.window_ns for part in parts] == pytest.approx(expected, abs=0.15)


FAKE = Reading(
    trace="fake",
    bottlenecks=("kernels",),
    bases=("steady",),
    judged=(100 * MS, 500 * MS),
    step_ms=20,
    shares={0: (52.6, 2.6, 2.6, 47.4 - 5.2), 1: (52.6, 2.6, 2.6, 47.4 - 5.2)},
    points=6,
    lead=(49, 51),
    seconds=("input",),
    steps=Steps(19, 20, 19, 21),
    headline=("kernels",),
    named=("reads files",),
    never=("DataLoader",),
    caps=(Cap("input", 0.41), Cap("copies", 0.1, "overlap")),
    no_frameworks=("pytorch",),
    first_call_ns=0,
)
"""What an expert would read of `steady_report`."""


def _fake() -> dict[str, Any]:
    report = steady_report()
    for number, device in enumerate(report["devices"]):
        device["window"] = {"start_ns": 0, "end_ns": 510 * MS}
        device["ids"] = [{"pid": 1, "device_id": number}]
    return report


@pytest.mark.parametrize("check", CHECKS)
def test_a_report_like_the_reading_agrees(check: str) -> None:
    assert list(CHECKS[check](FAKE, _fake(), "nothing much")) == []


OTHERWISE = {
    "bottleneck": (replace(FAKE, bottlenecks=("copies",)), replace(FAKE, lead=(52, 60))),
    "basis": (replace(FAKE, bases=("cold",)),),
    "second": (replace(FAKE, seconds=(None,)), replace(FAKE, seconds=("host",))),
    "judged_range": (replace(FAKE, judged=(121 * MS, 500 * MS)), replace(FAKE, judged=(100 * MS, 470 * MS))),
    "cold_start": (replace(FAKE, first_call_ns=-200 * MS),),
    "shares": (replace(FAKE, shares={0: FAKE.shares[0]}), replace(FAKE, points=1), replace(FAKE, shares={})),
    "steps": (replace(FAKE, steps=Steps(21, 22, 19, 21)), replace(FAKE, steps=Steps(19, 20, 21, 22))),
    "headline": (replace(FAKE, headline=("gemm",)),),
    "names": (replace(FAKE, named=("MPI_Sendrecv",)),),
    "never": (replace(FAKE, never=("reads",)), replace(FAKE, never=("nothing much",))),
    "caps": (replace(FAKE, caps=(Cap("input", 0.39),)), replace(FAKE, caps=(Cap("copies", 0.001, "overlap"),))),
    "tops": (replace(FAKE, tops=(Cap("input", 0.39),)),),
    "frameworks": (replace(FAKE, frameworks=("mpi",)),),
}


@pytest.mark.parametrize(
    ("check", "reading"), [(check, reading) for check, others in OTHERWISE.items() for reading in others]
)
def test_a_report_that_differs_is_found(check: str, reading: Reading) -> None:
    assert list(CHECKS[check](reading, _fake(), "nothing much")) != []


def test_frameworks_that_are_not_there_are_found() -> None:
    report = _fake()
    report["diagnosis"]["frameworks"] = ["pytorch"]
    assert list(CHECKS["frameworks"](FAKE, report, "")) != []


def test_every_check_can_fail() -> None:
    assert OTHERWISE.keys() == CHECKS.keys()


def test_steps_that_were_not_found_are_missed() -> None:
    report = _fake()
    report["phases"][1]["steps"] = None
    assert list(CHECKS["steps"](FAKE, report, "")) == ["no steps"]
