"""The root ledger against the truth: where the analysis says that waits lead, and who ended them in the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.levels import crossed
from tests.simulator import EVERYTHING
from tests.simulator.roots import WAITS
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.simulator.scenarios.arbitrary import arbitrary
from tests.simulator.scenarios.pipelines import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsysdiag.report import DeviceReport, Report
    from tests.shared import Shared
    from tests.simulator import Capture, Simulation
    from tests.simulator.truth import DeviceTruth

WAITING = sorted(name for name, found in SCENARIOS.items() if found.root)
WITH_LOADERS = ["pipe_read", "starved_data_parallel", "starved_training"]
UNSEEN_WAIT = "get_with_timeout"
"""Its wait leaves no row: the simulation says that nothing can be told of it, and runs tell all the same."""
SEEN = [name for name in WAITING + WITH_LOADERS if name != UNSEEN_WAIT]
LABELLED = [*(name for name in WAITING if SCENARIOS[name].root == "data_loading"), *WITH_LOADERS, "interpreter_lock"]
EVIDENCE = ("osrt", "sched", "samples", "nvtx")
SHORT_CALLS_MISSING = "only calls above 10 µs"
BY_PIPE = {"pipe_read", "slow_read_and_pipe", "queue_between_processes", "starved_data_parallel", "starved_training"}
UNTRACED_WORKER = "untraced_worker"
"""What it did off the CPU cannot be told."""
VARIANTS = {
    "without samples": EVERYTHING.but(samples=False),
    "without NVTX": EVERYTHING.but(nvtx=False),
    "idle loops recorded": EVERYTHING.but(idle_loop=True),
    SHORT_CALLS_MISSING: EVERYTHING.but(osrt_threshold=10_000),
    "schema 3.13.2": EVERYTHING.but(schema="3.13.2"),
    "schema 2.9.1": EVERYTHING.but(schema="2.9.1"),
}
SEEDS = range(6)
PIPELINES = range(12)
LEAST = 0.95
"""How much of the time in waits must have its true root; the rest is the scheduler's latency and the like."""
INVENTED = 0.03
"""How much of the idle time a cause may have beyond what may be claimed; samples are a millisecond apart."""
UNKNOWN = {"blocked", "uncovered"}
NAMED_OTHERWISE = {
    # The read of each step waited so long that what the host did next is the read's.
    "loss_read_each_step": {"blocking_copy"},
    # What is judged are the two steps that use the GPU; the thirty between them are no part of that.
    "mostly_on_the_cpu": {"empty_iterations"},
    # What makes the rank late, and what the others wait for it, are one problem.
    "slow_rank": {"late_rank"},
}
"""Findings that name something else than the root cause of the idle time, since they say what to fix."""


def reported(name: str, shared: Shared, capture: Capture | None = None) -> tuple[Report, list[DeviceTruth]]:
    """The report about a scenario's trace, and the truths in the order of its devices."""
    return with_truths(shared.report(shared.trace(name, capture)), scenario(name), capture)


def reported_on(simulation: Simulation, path: Path, capture: Capture | None) -> tuple[Report, list[DeviceTruth]]:
    report = analyze(simulation.write(path / "trace.sqlite", capture), Settings(timeline=False, replay=False))
    return with_truths(report, simulation, capture)


def with_truths(report: Report, simulation: Simulation, capture: Capture | None) -> tuple[Report, list[DeviceTruth]]:
    truths = simulation.truth(capture)
    found = [next(truth for key, truth in truths.items() if key <= ids_of(device)) for device in report.devices]
    return report, found


def ids_of(device: DeviceReport) -> frozenset[tuple[int, int]]:
    return frozenset((one.pid, one.device_id) for one in device.ids)


def pairs(report: Report, truths: list[DeviceTruth]) -> Iterator[tuple[DeviceReport, DeviceTruth]]:
    return zip(report.devices, truths, strict=True)


def common(found: dict[str, int], true: dict[str, int]) -> int:
    """How much of two ledgers is the same."""
    return sum(min(ns, true.get(cause, 0)) for cause, ns in found.items())


@pytest.mark.sampled(quick=33, normal=13)
@pytest.mark.parametrize("name", SEEN)
def test_waits_lead_to_their_roots(name: str, shared: Shared) -> None:
    check_roots(*reported(name, shared))


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize(("name", "variant"), crossed(SEEN, list(VARIANTS), 12, thorough=2))
def test_other_captures_lead_there_too(name: str, variant: str, shared: Shared) -> None:
    found = reported(name, shared, VARIANTS[variant])
    # A write into a pipe is shorter than that, and nothing else tells who ended a read.
    if variant == SHORT_CALLS_MISSING and name in BY_PIPE:
        check_claims(*found)
    else:
        check_roots(*found)


@pytest.mark.slow
def test_a_wait_without_a_row_leads_to_its_loader(shared: Shared) -> None:
    """Off the CPU in no captured call, again and again until the loader woke the thread."""
    report, _ = reported(UNSEEN_WAIT, shared)
    (device,) = report.devices
    assert device.root_ledger["data_loading"] >= LEAST * device.ledger["off_cpu"]
    assert device.root_labels["data_loading"]["io_wait"] >= LEAST * device.root_ledger["data_loading"]
    assert device.verdict.id == "input-bound"


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("seed", SEEDS)
def test_waits_of_arbitrary_programs_lead_to_their_roots(seed: int, tmp_path: Path) -> None:
    found = reported_on(arbitrary(seed), tmp_path, EVERYTHING)
    check_roots(*found)
    check_claims(*found)


@pytest.mark.sampled(quick=12, normal=5)
@pytest.mark.parametrize("seed", PIPELINES)
def test_pipelines_lead_to_their_roots(seed: int, tmp_path: Path) -> None:
    found = reported_on(pipeline(seed), tmp_path, EVERYTHING)
    check_roots(*found)
    check_claims(*found)


def check_roots(report: Report, truths: list[DeviceTruth]) -> None:
    for device, truth in pairs(report, truths):
        waits = sum(ns for cause, ns in truth.ledger.items() if cause in WAITS)
        wrong = truth.idle - common(device.root_ledger, truth.root_ledger)
        assert wrong <= (1 - LEAST) * waits, f"found {device.root_ledger}, true {truth.root_ledger}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LABELLED if name not in (UNSEEN_WAIT, UNTRACED_WORKER)])
def test_what_a_loader_did_is_told(name: str, shared: Shared) -> None:
    for device, truth in pairs(*reported(name, shared)):
        assert truth.root_labels
        for cause, labels in truth.root_labels.items():
            found = device.root_labels.get(cause, {})
            least = LEAST * sum(labels.values())
            assert common(found, labels) >= least, f"{cause}: found {found}, true {labels}"


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {UNSEEN_WAIT}))
def test_no_cause_has_more_than_leads_to_it(name: str, shared: Shared) -> None:
    """A wait may keep its own cause, or that of a thread on the way to its root; of another thread's it may not."""
    capture = SCENARIOS[name].capture
    check_claims(*reported(name, shared, capture))


def check_claims(report: Report, truths: list[DeviceTruth]) -> None:
    for device, truth in pairs(report, truths):
        assert sum(device.root_ledger.values()) == truth.idle
        beyond = {
            cause: ns - truth.claimable.get(cause, 0)
            for cause, ns in device.root_ledger.items()
            if cause not in UNKNOWN
        }
        assert max(beyond.values(), default=0) <= INVENTED * truth.idle, f"{beyond} beyond {truth.claimable}"
        found, true = (labels.get("lock_wait", {}).get("GIL", 0) for labels in (device.root_labels, truth.root_labels))
        assert found <= true + INVENTED * truth.idle


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "evidence"), crossed(PIPELINES, EVIDENCE, 8))
def test_pipelines_without_some_evidence(seed: int, evidence: str, tmp_path: Path) -> None:
    check_claims(*reported_on(pipeline(seed), tmp_path, EVERYTHING.but(**{evidence: False})))


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize(("name", "evidence"), crossed(SEEN, EVIDENCE, 8))
def test_roots_are_not_made_up_where_evidence_is_missing(name: str, evidence: str, shared: Shared) -> None:
    check_claims(*reported(name, shared, SCENARIOS[name].capture.but(**{evidence: False})))


@pytest.mark.sampled(normal=11)
@pytest.mark.parametrize("name", [name for name, each in SCENARIOS.items() if each.findings or each.forbidden])
def test_findings_name_the_root_and_do_not_mislead(name: str, shared: Shared) -> None:
    causes = {finding.cause for finding in shared.report(shared.trace(name)).findings}
    assert causes >= NAMED_OTHERWISE.get(name, SCENARIOS[name].findings)
    assert name == UNSEEN_WAIT or not causes & SCENARIOS[name].forbidden
