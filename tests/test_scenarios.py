"""The ledger against the truth: what the analysis says of a trace and what the simulator knows of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.config.settings import Settings
from tests.levels import crossed, quick, some
from tests.schemas import SCHEMAS
from tests.simulator import CUDA_ONLY, EVERYTHING, forbidden
from tests.simulator.scenarios import SCENARIOS, cases, scenario
from tests.simulator.scenarios.arbitrary import arbitrary

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport, Report
    from tests.shared import Shared
    from tests.simulator import Capture, Simulation
    from tests.simulator.truth import DeviceTruth

pipeline = pytest.importorskip("nsysdiag.pipeline")

EVIDENCE = (
    "osrt",
    "sched",
    "samples",
    "nvtx",
    "overhead",
    "sync_rows",
    "event_rows",
    "context_switches",
    "libraries",
)
LEFT_OUT = [
    (name, evidence)
    for name, evidence in crossed([name for name in SCENARIOS if not SCENARIOS[name].not_yet], EVIDENCE, 16, thorough=2)
    if getattr(SCENARIOS[name].capture, evidence)
]
BLURRED = 0.93
"""Without scheduling, CPU samples say when a thread computed: right to half a sampling period at each end."""
INVENTED = 0.03
"""How much of the idle time may have a cause that it did not have, a few samples being what they are; what nothing
explains is no cause."""
LEDGERS = Settings(timeline=False, replay=False)
"""What ledgers need."""


def analyze(
    simulation: Simulation,
    path: Path,
    capture: Capture,
    settings: Settings = LEDGERS,
    *,
    shuffle_seed: int | None = None,
    lazy: bool = True,
) -> Report:
    simulation.write(path, capture, shuffle_seed=shuffle_seed, lazy=lazy)
    report: Report = pipeline.analyze(path, settings)
    return report


def compare(
    report: Report,
    simulation: Simulation,
    capture: Capture,
    *,
    tolerated: frozenset[str] = frozenset(),
    same_gpu: bool = False,
    slack: float = 0,
) -> None:
    """Every device of the truth is in the report, nothing else is, and they agree."""
    truths = simulation.truth(capture, same_gpu=same_gpu)
    found = {frozenset((one.pid, one.device_id) for one in device.ids): device for device in report.devices}
    assert len(found) == len(truths)
    for key, truth in truths.items():
        (device,) = [device for ids, device in found.items() if key <= ids]
        if capture.sched:
            agree(device, truth, tolerated, 0.98, slack)
        else:
            agree(device, truth, tolerated | {"uncovered", "host_compute"}, BLURRED, slack)


def agree(device: DeviceReport, truth: DeviceTruth, tolerated: frozenset[str], least: float, slack: float = 0) -> None:
    """The split is exact, the ledger adds up, nearly all of it has the true cause, none of it an absurd one."""
    assert (device.window.start_ns, device.window.end_ns) == truth.window
    split = device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns, device.idle_ns
    assert split == (truth.compute, truth.exposed_comm, truth.exposed_copy, truth.idle)
    assert sum(device.ledger.values()) == device.idle_ns
    assert sum(device.root_ledger.values()) == device.idle_ns
    wrong = forbidden(truth, tolerated)
    assert not {cause: ns for cause, ns in device.ledger.items() if cause in wrong and ns > slack * truth.idle}, (
        truth.ledger
    )
    overlap = sum(min(ns, truth.ledger.get(cause, 0)) for cause, ns in device.ledger.items())
    assert overlap >= least * truth.idle, f"found {device.ledger}, true {truth.ledger}"
    invented = {cause: ns - truth.ledger.get(cause, 0) for cause, ns in device.ledger.items() if cause != "uncovered"}
    most = max(INVENTED, slack) * truth.idle
    assert sum(max(ns, 0) for ns in invented.values()) <= most, f"found {device.ledger}, true {truth.ledger}"


@pytest.mark.sampled(quick=105)
@pytest.mark.parametrize("name", cases(SCENARIOS))
def test_the_ledger_is_true(name: str, shared: Shared) -> None:
    report = shared.report(shared.trace(name))
    compare(report, scenario(name), SCENARIOS[name].capture, tolerated=SCENARIOS[name].tolerated)


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("name", some(list(SCENARIOS), 10))
def test_the_order_of_rows_means_nothing(name: str, shared: Shared, tmp_path: Path) -> None:
    plain = shared.report(shared.trace(name))
    shuffled = analyze(scenario(name), tmp_path / "trace.sqlite", SCENARIOS[name].capture, Settings(), shuffle_seed=7)
    assert replace(shuffled, trace=plain.trace) == plain


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize("seed", some(list(range(24)), 6))
@pytest.mark.parametrize("left_out", ["event_rows", "sync_rows"])
def test_fewer_rows_make_no_cause_more_specific(seed: int, left_out: str, tmp_path: Path) -> None:
    """A launch on its way is not called a wait for another stream because the rows of events are missing."""
    simulation = arbitrary(seed)
    whole, less = (
        analyze(simulation, tmp_path / f"{number}.sqlite", capture)
        for number, capture in enumerate((EVERYTHING, EVERYTHING.but(**{left_out: False})))
    )
    for device, again in zip(whole.devices, less.devices, strict=True):
        for cause, worse in (("stream_wait", int.__le__), ("launch_latency", int.__ge__)):
            assert worse(again.ledger.get(cause, 0), device.ledger.get(cause, 0)), (device.ledger, again.ledger)


@pytest.mark.usefixtures("analyzed_once")  # a third of these traces are those that more was captured of
@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize(("name", "evidence"), LEFT_OUT)
def test_evidence_left_out_is_not_made_up(name: str, evidence: str, tmp_path: Path) -> None:
    simulation, capture = scenario(name), SCENARIOS[name].capture.but(**{evidence: False})
    report = analyze(simulation, tmp_path / "trace.sqlite", capture)
    compare(report, simulation, capture, tolerated=SCENARIOS[name].tolerated)


CAPTURES = (
    EVERYTHING,
    EVERYTHING.but(samples=False),
    EVERYTHING.but(graphs="graph"),
    EVERYTHING.but(schema="3.13.2", sync_rows=False),
    EVERYTHING.but(api=False),
    CUDA_ONLY,
)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize(("seed", "capture"), crossed(range(6), CAPTURES, 6))
def test_arbitrary_programs(seed: int, capture: Capture, tmp_path: Path) -> None:
    """Where many small things meet, microseconds go to a neighbouring cause; a thousandth of the idle time may."""
    simulation = arbitrary(seed)
    report = analyze(simulation, tmp_path / "trace.sqlite", capture, shuffle_seed=seed)
    compare(report, simulation, capture, slack=0.001)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("name", ["many_causes", "pageable_copy", "intra_graph", "two_gpus_in_turn"])
def test_every_schema_tells_the_same(name: str, schema: str, tmp_path: Path) -> None:
    simulation, capture = scenario(name), SCENARIOS[name].capture.but(schema=schema)
    report = analyze(simulation, tmp_path / "trace.sqlite", capture, lazy=False)
    compare(report, simulation, capture, tolerated=SCENARIOS[name].tolerated)


@pytest.mark.slow
def test_without_a_device_map_processes_are_devices_of_their_own(tmp_path: Path) -> None:
    simulation = scenario("two_processes")
    capture = simulation.capture.but(schema="3.13.2")
    report = analyze(simulation, tmp_path / "trace.sqlite", capture)
    compare(report, simulation, capture)
    united = pipeline.analyze(tmp_path / "trace.sqlite", Settings(same_gpu=True))
    compare(united, simulation, capture, same_gpu=True)


@pytest.mark.parametrize("name", quick(["starved_training", "starved_data_parallel"], 2))
def test_a_starved_training_step_is_input_bound(name: str, shared: Shared) -> None:
    for device in shared.report(shared.trace(name)).devices:
        assert device.verdict.id == "input-bound"


def test_waiting_for_a_loader_is_data_loading_at_its_root(shared: Shared) -> None:
    (device,) = shared.report(shared.trace("starved_training")).devices
    assert device.root_ledger["data_loading"] >= 0.9 * device.ledger["io_wait"]
