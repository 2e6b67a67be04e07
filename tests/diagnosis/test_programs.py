"""Simulated programs: first that each trace shows what its program did, then that the diagnosis says what is true."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.formats import FORMATS, RenderOptions
from tests.diagnosis.agreement import CHECKS, Reading
from tests.diagnosis.invariants import broken
from tests.diagnosis.programs import PROGRAMS, Program
from tests.diagnosis.report_json import as_json, diagnosis_of, phases_of, sentences
from tests.test_scenarios import compare

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from nsysdiag.report import DeviceReport
    from tests.shared import Shared
    from tests.simulator import Simulation

HELD_TO = [name for name in CHECKS if name != "shares"]  # those are in the truth of each program


def cases(*, exact: bool = False) -> list[ParameterSet]:
    """The programs, all but the quick ones slow; with `exact` those whose trace is all that happened."""
    return [
        pytest.param(each, id=name, marks=() if each.quick else pytest.mark.slow)
        for name, each in PROGRAMS.items()
        if each.exact or not exact
    ]


every_program = pytest.mark.parametrize("program", cases())


@lru_cache(maxsize=1)
def _ran(name: str) -> tuple[Simulation, Reading]:
    return PROGRAMS[name].run()


@cache
def _reading(name: str) -> Reading:
    return _ran(name)[1]


def _trace(program: Program, shared: Shared) -> Path:
    return shared.file(f"{program.name}.sqlite", lambda path: _write(program, path))


def _write(program: Program, path: Path) -> Path:
    return _ran(program.name)[0].write(path)


def _share(device: DeviceReport, name: str) -> float:
    part = getattr(device, f"{name}_ns", None)
    return (device.root_ledger.get(name, 0) if part is None else part) / device.window_ns


@pytest.mark.sampled(normal=6)
@every_program
def test_the_trace_shows_what_the_program_did(program: Program, shared: Shared) -> None:
    reading = _reading(program.name)
    start, end = reading.judged or (None, None)
    report = analyze(_trace(program, shared), Settings(start_ns=start, end_ns=end, timeline=False))
    devices = {device.key: device for device in report.devices}
    for key, truth in program.truth.items():
        found = {name: _share(devices[key], name) for name in truth}
        wrong = {name: share for name, share in found.items() if not truth[name][0] <= share <= truth[name][1]}
        assert not wrong, f"{key}: {wrong}; {devices[key].root_ledger}"


@pytest.mark.sampled(normal=6)
@pytest.mark.parametrize("program", cases(exact=True))
def test_the_ledger_is_true(program: Program, shared: Shared) -> None:
    report = shared.report(_trace(program, shared))
    compare(report, _ran(program.name)[0], program.capture, tolerated=program.tolerated, slack=0.001)


@pytest.mark.sampled(quick=64, normal=2)
@every_program
def test_the_diagnosis_is_true(program: Program, shared: Shared) -> None:
    reading = _reading(program.name)
    report = shared.report(_trace(program, shared))
    plain, text = as_json(report), FORMATS["txt"].render(report, RenderOptions()).decode()
    diagnosis_of(plain), phases_of(plain)
    wrong = [f"{name}: {what}" for name in HELD_TO for what in CHECKS[name](reading, plain, text)]
    wrong += [f"nothing says {each!r}" for each in program.said if not re.search(each, "\n".join(sentences(plain)))]
    names = " ".join(phase["name"] for phase in phases_of(plain))
    wrong += [] if re.fullmatch(program.phases, names) else [f"phases: {names}"]
    if program.working is not None:
        wrong += [
            f"finding of {each['devices']}" for each in plain["findings"] if set(each["devices"]) - program.working
        ]
    assert wrong == []


@pytest.mark.sampled(quick=9, normal=3)
@every_program
def test_the_invariants_hold(program: Program, shared: Shared) -> None:
    assert broken(as_json(shared.report(_trace(program, shared)))) == []
