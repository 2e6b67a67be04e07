"""What the analysis of one device leaves for the steps after it."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import Missing
from nsysdiag.events.collectives import Collectives
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases
from nsysdiag.replay.savings import Predictions
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.timeline.timeline import DeviceLanes


class DeviceResult(Struct, frozen=True):
    """The result for one device: its report, the slices of its root ledger, its findings, and the timeline without
    thread lanes (None: not requested, or nothing ran). Also the work inside its window, its communication kernels, and
    the MPI calls that align its threads with other ranks; the phases of the job, what the device did in each, and the
    judged ones."""

    report: DeviceReport
    slices: Slices
    findings: list[Finding]
    timeline: DeviceLanes | None
    split: WindowSplit
    collectives: Collectives
    meetings: Collectives
    job_phases: JobPhases
    phases: list[PhaseDevice]
    focus: Focus
    missing: Missing


class TraceResult(Struct, frozen=True):
    """What the analysis of one trace leaves for a comparison of ranks: its devices, warnings about its rows, the
    frameworks of its programs (ids of programs.facts); how many GPUs the machine has, and how long the capture is, both
    None where the trace does not say; what predicts the savings of findings, or why nothing does; and whether the trace
    has scheduling events."""

    devices: list[DeviceResult]
    warnings: list[str]
    frameworks: list[str]
    gpus_present: int | None
    duration_ns: int | None
    predictions: Predictions | str
    scheduled: bool
