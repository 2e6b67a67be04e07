"""What the analysis of one device leaves for the steps after it."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.arrays.background import Deferred
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import Missing
from nsysdiag.events.collectives import Collectives
from nsysdiag.events.identity import MpiRanks
from nsysdiag.findings.facts import Finding
from nsysdiag.ledger.ledger import Slices, WindowSplit
from nsysdiag.phases.facts import BehindWait, PhaseDevice
from nsysdiag.phases.phases import JobPhases
from nsysdiag.replay.predict import Predictions
from nsysdiag.report import DeviceReport
from nsysdiag.time.facts import TimeColumns
from nsysdiag.timeline.timeline import DeviceLanes


class DeviceResult(Struct, frozen=True):
    """The result for one device: its report, the slices of its root ledger, its findings, what threads did behind
    waits, and the timeline without thread lanes (None: not requested, or nothing ran), which the second thread makes.
    Also the work inside its window, its communication kernels, and the MPI calls that align its threads with other
    ranks; the time in which these threads are in any call of MPI; the phases of the job, what the device did in each,
    and the judged ones. `time` is the table of time, None if not requested."""

    report: DeviceReport
    slices: Slices
    findings: list[Finding]
    behind: list[BehindWait]
    timeline: Deferred[DeviceLanes | None]
    split: WindowSplit
    collectives: Collectives
    meetings: Collectives
    in_mpi: Intervals
    job_phases: JobPhases
    phases: list[PhaseDevice]
    focus: Focus
    missing: Missing
    time: TimeColumns | None


class TraceResult(Struct, frozen=True):
    """The result of one trace for a comparison of ranks: its devices, warnings about its rows, and the frameworks of
    its programs (ids of programs.facts); the number of GPUs of the machine, and the length of the capture, both None if
    unknown. Also the function that predicts the savings of findings, or why there is none; whether the trace has
    scheduling events, the MPI ranks that it holds, and whether it shows nothing of the host but CUDA calls and
    ranges."""

    devices: list[DeviceResult]
    warnings: list[str]
    frameworks: list[str]
    gpus_present: int | None
    duration_ns: int | None
    predictions: Predictions | str
    scheduled: bool
    ranks: MpiRanks = MpiRanks()
    host_unseen: bool = False
