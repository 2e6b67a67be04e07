"""What CI gets, as plain data: budgets that were checked, what became of many traces, and the state of each GPU."""

from __future__ import annotations

from typing import Annotated

from nsysdiag.diagnosis.facts import NO_WORK, UNRESOLVED
from nsysdiag.fields import (
    SECONDS,
    Bytes,
    CauseId,
    Count,
    FileHash,
    FileName,
    FinishedSentence,
    GpuName,
    HashedId,
    Ns,
    NsByCause,
    NsysWarning,
    Number,
    OwnText,
    RangeName,
    Share,
    TotalNs,
    ValueBySetting,
    Varying,
)
from nsysdiag.phases.facts import LEAST_WORK
from nsysdiag.record import Record
from nsysdiag.report import DeviceReport, Report, Tool

JUDGED, BARELY_USED, UNEXPLAINED, IDLE = "judged", "barely-used", "unexplained", "no-gpu-work"
"""It worked, and the report says what limits it; it did less than LEAST_WORK of the busiest GPU's work; it worked, and
the trace does not tell what limits it; nothing ran on it in the judged time."""


def states(report: Report) -> dict[str, str]:
    """The state of each device, by its key."""
    work = _work(report)
    most = max(work.values(), default=0)
    return {device.key: _state(device, work.get(device.key, 0), most) for device in report.devices}


def unused_gpus(report: Report) -> int:
    """How many GPUs of the machine the trace has no work of; 0 if it does not say, and if devices were chosen."""
    present = report.diagnosis.gpus_present if report.diagnosis else None
    return max(0, (present or 0) - len(report.devices)) if "device" not in report.settings else 0


def _state(device: DeviceReport, work_ns: int, most_ns: int) -> str:
    if device.verdict.id == NO_WORK or not device.window_ns:
        return IDLE
    if work_ns < LEAST_WORK * most_ns:
        return BARELY_USED
    return UNEXPLAINED if device.verdict.id == UNRESOLVED else JUDGED


def _work(report: Report) -> dict[str, int]:
    """The time in ns that each device worked in the judged phase; in the whole window if no phase is judged alone,
    and in reports of older versions, which have none."""
    at = report.diagnosis.phase if report.diagnosis else None
    if at is None or not report.phases[at : at + 1]:
        return {device.key: device.busy_ns for device in report.devices}
    judged = report.phases[at].devices
    return {each.key: each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in judged}


BATCH_SCHEMA_VERSION = "2"
KIND = "batch"
FAIL, WARN, IGNORE = "fail", "warn", "ignore"
"""The levels of budgets, and the outcomes of those that cannot be judged."""


class Budgeted(Record, frozen=True):
    """What a budget is about: one device of one trace, or a comparison.

    `budget` is the expression as it was written, `source` where (`--fail-on`, or file and key), `level` fail or warn.
    `device` is a key, empty for what is of the whole trace; `nvtx` the range that the budget is about, empty for all
    time."""

    id: OwnText
    budget: FinishedSentence
    source: FinishedSentence
    level: OwnText
    device: OwnText
    nvtx: RangeName


class DeviceValue(Record, frozen=True):
    """The value of a budget on one device, in the budget's unit, and whether this device breaks it."""

    device: OwnText
    value: Varying
    broken: bool


class BudgetResult(Budgeted, frozen=True):
    """A budget that was checked. `device` is the one that came closest to the limit or broke it most. `value` and
    `limit` are in `unit`: ns, share, count. `broken` says whether the expression holds, `sentence` the same for a
    person. `devices` has the value of each device that was judged, and is empty for what is of the whole trace."""

    value: Varying
    limit: Varying
    unit: OwnText
    broken: bool
    sentence: FinishedSentence
    devices: list[DeviceValue] = []

    def judges(self, device: str) -> bool:
        """Whether it says something of this device, which it does of all if it is of the whole trace."""
        return not self.devices or any(each.device == device for each in self.devices)

    def broken_on(self, device: str) -> bool:
        """Whether this device breaks it, or the whole trace does."""
        if not self.devices:
            return self.broken
        return any(each.broken for each in self.devices if each.device == device)


class UnjudgedBudget(Budgeted, frozen=True):
    """A budget that a trace cannot tell: neither kept nor broken. `device` is the one that it names. `error` is the
    whole sentence, `why` the reason in it, `hint` what to do. `devices` are those that cannot be judged if others
    can; empty if nothing can. `outcome` is what that does to the run: fail, warn or ignore; a budget that only warns
    never fails."""

    error: FinishedSentence
    why: FinishedSentence
    hint: FinishedSentence
    devices: list[OwnText] = []
    outcome: OwnText = FAIL

    def concerns(self, device: str) -> bool:
        """Whether it leaves this device without a judgement."""
        return not self.devices or device in self.devices


class BatchDevice(Record, frozen=True):
    """One device of a trace in a batch; times in ns, `iteration_ns` the median steady iteration, None without any.
    `causes` are the causes of idle time, largest first. `state` is one of `nsysdiag.ci.states`."""

    key: OwnText
    name: GpuName
    verdict: OwnText
    sentence: FinishedSentence
    window_ns: TotalNs
    busy_ns: TotalNs
    idle_ns: TotalNs
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    coverage: Share | None
    iteration_ns: Ns | None
    causes: list[tuple[CauseId, TotalNs]]
    state: OwnText = ""


class BatchFinding(Record, frozen=True):
    """A finding of a trace in a batch, without its evidence. `devices` are all that have it, `device` is the one that
    lost most."""

    id: HashedId
    device: OwnText
    cause: CauseId
    severity: OwnText
    title: FinishedSentence
    lost_ns: Ns
    lost_share: Share
    devices: list[OwnText] = []


class BatchEntry(Record, frozen=True):
    """What became of one input. `input` is its path as found, `/` between its parts, relative to what was named; `name`
    the path of its outputs within the folder, without a suffix. `status`: `analysed`, `resumed` (done before) or
    `failed`, for which `error`, `hint` and `exit_code` say why and the rest is empty. `report` is the path of the
    page within the folder. `budgets` are those that the trace can tell, `unjudged` the others. `unused_gpus` counts
    GPUs of the machine that the trace has no work of."""

    input: FileName
    name: FileName
    status: OwnText
    fingerprint: FileHash
    size_bytes: Bytes
    report: FileName
    devices: list[BatchDevice]
    findings: list[BatchFinding]
    budgets: list[BudgetResult]
    warnings: list[NsysWarning]
    error: FinishedSentence = ""
    hint: FinishedSentence = ""
    exit_code: Number = 0
    unjudged: list[UnjudgedBudget] = []
    unused_gpus: Count = 0


class BatchSummary(Record, frozen=True):
    """A batch: its entries by their names. `failed` counts inputs that could not be analyzed, `broken` and `warned`
    broken budgets that fail or warn. `unjudged` counts budgets without a value in the trace; `unjudged_failing` of them
    fail the run. `settings` are those that differ from their defaults, as text; `config` names the file that they come
    from."""

    schema_version: OwnText
    kind: OwnText
    tool: Tool
    entries: list[BatchEntry]
    failed: Count
    broken: Count
    warned: Count
    unjudged: Count = 0
    settings: ValueBySetting = {}
    unjudged_failing: Count = 0


class HistoryLine(Record, frozen=True):
    """One run of one device in a history, a line of JSON. `at` is the UTC second since 1970 of the run, `run` its name
    (a commit, a job); `input` is as in BatchEntry, `state` as in BatchDevice; `broken` counts the budgets that this
    device breaks."""

    at: Annotated[int, SECONDS]
    run: FinishedSentence
    input: FileName
    device: OwnText
    window_ns: TotalNs
    busy_ns: TotalNs
    idle_ns: TotalNs
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    iteration_ns: Ns | None
    causes: NsByCause
    broken: Count
    state: OwnText = ""
