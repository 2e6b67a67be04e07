"""Whether another capture is worth it, and what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.diagnosis.entries import naming
from nsysdiag.diagnosis.facts import NOTABLE_UNKNOWN
from nsysdiag.diagnosis.focus import Scope
from nsysdiag.diagnosis.missing import recapture
from nsysdiag.diagnosis.sentences import Said, headline
from nsysdiag.findings.facts import Evidence
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.trace.capabilities import CPU_SAMPLES, KINDS

if TYPE_CHECKING:
    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Capability, Report
from tests.shared import Shared

READ = ["txt", "md", "html"]


@pytest.fixture
def report(shared: Shared) -> Report:
    return shared.report(shared.trace("starved_training"))


def host_code(report: Report, **changes: object) -> Finding:
    """A finding on host code that takes half of the time."""
    made = replace(report.findings[0], cause="host_compute", bottleneck="host", share=0.5, nvtx=[], call=None)
    return replace(made, **changes)


def without_samples(report: Report) -> list[Capability]:
    every = report.trace.capabilities
    absent = KINDS[CPU_SAMPLES].recapture
    return [replace(each, available=False, recapture=absent) if each.id == CPU_SAMPLES else each for each in every]


def shown(report: Report, name: str) -> str:
    return FORMATS[name].render(report, RenderOptions()).decode()


@pytest.mark.parametrize("call", [None, "main", "0x7fd99b3515d4"])
def test_host_code_without_a_name(call: str | None, report: Report) -> None:
    assert host_code(report, call=call).unnamed


def test_host_code_with_a_name_or_a_place(report: Report) -> None:
    assert not host_code(report, call="parse").unnamed
    assert not host_code(report, nvtx=["load"]).unnamed
    assert not host_code(report, cause="sync").unnamed


@pytest.mark.parametrize(
    ("basis", "bottleneck", "asked"), [("steady", "host", True), ("cold", "startup", False), ("cold", "unknown", True)]
)
def test_of_a_start_one_capture_is_asked_for(basis: str, bottleneck: str, *, asked: bool, report: Report) -> None:
    assert report.diagnosis is not None
    found = replace(report.diagnosis, basis=basis, bottleneck=bottleneck, unknown_share=0.3)
    made = shown(replace(report, diagnosis=found), "txt")
    assert ("of the time is unexplained" in made) == asked
    told = headline(Said(Scope(basis), 100, {}), bottleneck, 0.9, None, None)
    assert ("more steps" in told) == (basis == "cold" and not asked)


def test_little_host_code_needs_no_name(report: Report) -> None:
    every = [replace(each, available=True) for each in report.trace.capabilities]
    assert recapture(report.devices, every, [host_code(report, share=NOTABLE_UNKNOWN / 2)], []) is None
    assert recapture(report.devices, every, [host_code(report, share=NOTABLE_UNKNOWN)], []) is not None


def test_without_samples_the_command_has_call_chains(report: Report) -> None:
    found = host_code(report)
    made = recapture(report.devices, without_samples(report), [found], []) or ""
    assert {"--sample=process-tree", "--backtrace=dwarf"} <= set(made.split())
    assert "no CPU samples" in naming(found, sampled=False)


def test_with_samples_ranges_name_what_they_do_not(report: Report) -> None:
    every = [replace(each, available=True) for each in report.trace.capabilities]
    made = recapture(report.devices, every, [host_code(report, call="main")], []) or ""
    assert "--backtrace" not in made
    assert "--trace=cuda,nvtx" in made
    assert "NVTX ranges" in naming(host_code(report, call="main"), sampled=True)
    assert recapture(report.devices, every, [host_code(report, call="parse")], []) is None


@pytest.mark.parametrize(
    ("count", "said"), [(0, "No CPU sample is"), (1, "Only 1 CPU sample is"), (9, "Only 9 CPU samples are")]
)
def test_few_samples_do_not_ask_for_symbols(count: int, said: str, report: Report) -> None:
    found = host_code(report, measured=[Evidence("samples", "", count)])
    assert naming(found, sampled=True).startswith(said)
    assert "-g" not in naming(found, sampled=True)
    assert "-g" in naming(host_code(report, measured=[Evidence("samples", "", 10)]), sampled=True)


@pytest.mark.parametrize(("share", "asked"), [(NOTABLE_UNKNOWN / 2, False), (NOTABLE_UNKNOWN, True)])
def test_an_unexplained_start_asks_for_what_shows_the_host(share: float, *, asked: bool, report: Report) -> None:
    """Before its first work a device has no gaps."""
    start = host_code(report, cause="before_work", bottleneck="unknown", call="cudaMalloc", share=share)
    devices = [replace(each, ledger={}) for each in report.devices]
    made = recapture(devices, without_samples(report), [start], [])
    assert (made is not None and "--sample=process-tree" in made) is asked


def test_a_program_with_mpi_keeps_its_mpi_calls(report: Report) -> None:
    found = [host_code(report)]
    made = [recapture(report.devices, without_samples(report), found, each) or "" for each in ([], ["mpi"])]
    assert ["mpi" in each.split()[2] for each in made] == [False, True]


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize(("share", "asked"), [(0.02, False), (0.2, True)])
def test_little_that_is_unexplained_asks_for_no_capture(
    name: str, share: float, report: Report, *, asked: bool
) -> None:
    assert report.diagnosis is not None
    diagnosis = replace(report.diagnosis, unknown_share=share, bottleneck="kernels")
    made = replace(report, diagnosis=diagnosis, findings=[], recapture="nsys profile --trace=cuda PROGRAM")
    assert ("nsys profile --trace=cuda PROGRAM" in shown(made, name)) is asked


def test_only_what_the_capture_lacks_is_named(report: Report) -> None:
    assert report.diagnosis is not None
    diagnosis = replace(report.diagnosis, unknown_share=0.2, bottleneck="unknown")
    all_but = [replace(each, available=True) for each in without_samples(report) if each.id != CPU_SAMPLES]
    absent = [*all_but, *(each for each in without_samples(report) if each.id == CPU_SAMPLES)]
    command = "nsys profile --trace=cuda,nvtx,osrt --cpuctxsw=process-tree --sample=process-tree PROGRAM"
    made = replace(report, diagnosis=diagnosis, recapture=command, trace=replace(report.trace, capabilities=absent))
    text = " ".join(shown(made, "txt").split())
    assert "20.0% of the time is unexplained; missing: --sample. Capture with" in text
