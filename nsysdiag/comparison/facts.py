"""Two sides of a comparison as plain data: the time of a unit of work before and after, and why it changed.

All times are integer nanoseconds for one unit of work: the mean of the steady iterations, if there are iterations. Work
and causes have the names of iterations: compute, exposed_comm, exposed_copy, and the causes of idle time.
"""

from __future__ import annotations

from nsysdiag.comparison.step_facts import AlignedSteps
from nsysdiag.fields import (
    Bytes,
    CauseId,
    Count,
    FileHash,
    FileName,
    GpuName,
    HashedId,
    KernelName,
    MeanCount,
    Moment,
    NamedIteration,
    Ns,
    NsysWarning,
    OwnText,
    RangeName,
    Ratio,
    Sentence,
    Share,
    ValueBySetting,
    Varying,
    Version,
)
from nsysdiag.phrases import Phrases
from nsysdiag.record import Record, Result
from nsysdiag.report import CauseInfo, Tool
from nsysdiag.timeline.facts import TimelineLevel

COMPARISON_SCHEMA_VERSION = "2"
KIND = "comparison"
IMPROVED, REGRESSED, SAME, UNKNOWN, MIXED = "improved", "regressed", "same", "unknown", "mixed"
DECIDED = (IMPROVED, REGRESSED)
"""Verdicts; the decided ones are beyond chance."""
BOTH, ADDED, GONE, RECAUSED = "both", "added", "gone", "recaused"
UNSEEN = UNSEEN_BEFORE, UNSEEN_AFTER = "unrecorded_before", "unrecorded_after"
"""The status of a row: which side has it, or could not record it."""
NOT_COMPARED = "not_compared"
"""The id of the causes that some captures alone could tell, which are compared as one."""
ITERATIONS, PHASES, STEP, WINDOW = "iterations", "phases", "step", "window"
PREDICTED = (STEP, WINDOW)
"""Kinds of units; the last two are those of a prediction. That of runs of common kernels is KERNELS."""


class Change(Record, frozen=True):
    """A time for a unit of work on both sides; `change_ns` is after - before.

    [low_ns, high_ns] is the 95% interval of the change, None if too little repeats to tell. `verdict`: `improved` or
    `regressed` if the interval leaves 0 out and the change is larger than `least_ns`, the largest one that does not
    count; else `same`. If several devices are compared the interval of one alone must leave 0 out by more, see
    docs/before-and-after.md. Without an interval it is `unknown`."""

    before_ns: Ns
    after_ns: Ns
    change_ns: Ns
    low_ns: Ns | None
    high_ns: Ns | None
    least_ns: Ns
    verdict: OwnText


class PartChange(Record, frozen=True):
    """A part of the time, or a cause of idle time. `id` is `not_compared` for causes for which some captures lack the
    evidence or the analysis, joined with the causes that get their time instead."""

    id: CauseId
    change: Change


class Step(Record, frozen=True):
    """A step of the way from the length before to the length after; all of them add up to the change."""

    id: OwnText
    change_ns: Ns


class Move(Record, frozen=True):
    """Time that moved from `before` to `after`, each work or a cause. None as `before` is new time, None as `after` is
    removed time; equal ids are unchanged time. `seen_ns` of it is in gaps between the same operations, in the same NVTX
    range, on both sides."""

    before: CauseId | None
    after: CauseId | None
    ns: Ns
    seen_ns: Ns


class Renaming(Record, frozen=True):
    """Where the lost time of causes went. `lost_ns` = `removed_ns` (gone) + `renamed_ns` (now other causes, exposed
    communication or exposed copies). `verdict`: removed, renamed, partly, or none if no cause lost time that counts."""

    lost_ns: Ns
    removed_ns: Ns
    renamed_ns: Ns
    verdict: OwnText
    sentence: Sentence


class CountChange(Record, frozen=True):
    """Operations of a kind for a unit of work; `changed` if they differ by more than 2%, of parts of steps 10%."""

    id: OwnText
    before: MeanCount
    after: MeanCount
    changed: bool


class KernelChange(Record, frozen=True):
    """A kernel by name: how often it runs and how long, for a unit of work. `status`: both, added, gone; or
    unrecorded_before, unrecorded_after if graphs of that side, which were recorded as wholes, may run it. Then, and
    if it does not run as often outside of them, the verdict is unknown."""

    name: KernelName
    short_name: KernelName
    communication: bool
    status: OwnText
    count_before: MeanCount
    count_after: MeanCount
    mean_before_ns: Ns
    mean_after_ns: Ns
    change: Change


class FamilyChange(Record, frozen=True):
    """Kernels of one family, for a unit of work: those of one side alone, or those of both whose time changed.

    `how`: elementwise ones `fused` into fewer runs; `renamed`, with as many runs in the same time, or else `replaced`;
    `gone` or `added`; `more` or `fewer` runs of the same kernels, `slower` or `faster` ones. `names_before` and
    `names_after` are how many names a side has; `name_before` and `name_after` are those with most time."""

    family: OwnText
    how: OwnText
    names_before: Count
    names_after: Count
    name_before: KernelName
    name_after: KernelName
    count_before: MeanCount
    count_after: MeanCount
    before_ns: Ns
    after_ns: Ns
    change_ns: Ns


class SignatureChange(Record, frozen=True):
    """Gaps between the same operations in the same NVTX range, and their time for a unit of work. `status`: both,
    added, gone, or recaused if they have another largest cause after than before; the id is that of the side that
    has them, after first. Unrecorded_before and unrecorded_after are as for kernels. The verdict is unknown if a report
    lacks their times per iteration, or cut its list: on that side they may be below those that it keeps."""

    id: HashedId
    status: OwnText
    previous_op: KernelName
    next_op: KernelName
    nvtx: list[RangeName]
    cause_before: CauseId | None
    cause_after: CauseId | None
    count_before: MeanCount
    count_after: MeanCount
    change: Change


class CopyChange(Record, frozen=True):
    """Copies or sets of one kind between two kinds of memory, for a unit of work."""

    operation: OwnText
    src: OwnText | None
    dst: OwnText | None
    count_before: MeanCount
    count_after: MeanCount
    bytes_before: Bytes
    bytes_after: Bytes
    before_ns: Ns
    after_ns: Ns


class CollectiveChange(Record, frozen=True):
    """Collectives of one kind for a unit of work: all their time, and that which no compute hides."""

    kind: OwnText
    count_before: MeanCount
    count_after: MeanCount
    before_ns: Ns
    after_ns: Ns
    exposed_before_ns: Ns
    exposed_after_ns: Ns


class MetricChange(Record, frozen=True):
    """A number that is not a time for a unit of work. `unit`: ns, share, count; None if a side cannot tell."""

    id: OwnText
    title: OwnText
    unit: OwnText
    before: Varying | None
    after: Varying | None


class FindingChange(Record, frozen=True):
    """A finding by its id, with its cost per unit of work. `status`: both, added, gone, or not_compared if some
    captures lack the evidence for its cause: then a difference between the sides may have no other reason. One of
    kernels is unrecorded_before or unrecorded_after if graphs of that side were recorded as wholes."""

    id: HashedId
    title: Sentence
    cause: CauseId
    status: OwnText
    severity_before: OwnText | None
    severity_after: OwnText | None
    before_ns: Ns
    after_ns: Ns


class Unit(Record, frozen=True):
    """What is compared: `iterations`, or, for equal numbers of runs of common kernels, the judged steady phases
    (`phases`) or the whole windows (`kernels`). With a prediction it is a `step` or the `window`. `scale` is how many
    iterations (windows) after do the work of one before. The counts are of the units of each side; the names are those
    of the iterations. `part_of_step`: layers or slices of longer runs are compared, not whole steps. `same_work`: one
    run a side did the same operations, once or in steps too few for an interval, whose time is compared without one."""

    kind: OwnText
    name_before: NamedIteration
    name_after: NamedIteration
    count_before: Count
    count_after: Count
    scale: Ratio
    part_of_step: bool = False
    same_work: bool = False


KERNELS, LAUNCHES, BYTES, THREADS = "kernels", "launches", "bytes", "threads"
"""What the work of a step is counted in."""


class WorkChange(Record, frozen=True):
    """How much work a step has: `kernels` that run, `launches`, the calls that launch, `bytes` that copies move, or
    `threads` of the kernels that both sides run as often. The median over the steps; of launches and threads the mean.
    `differs` if kernels, bytes or threads are not the same work: more than 10% apart."""

    id: OwnText
    before: Varying
    after: Varying
    differs: bool


class AccountChange(Record, frozen=True):
    """The part of the job's step that is charged to a bottleneck: its share of the judged time of all devices, times
    the length of a step. The parts add up to the step."""

    bottleneck: OwnText
    before_ns: Ns
    after_ns: Ns
    change_ns: Ns


class Reason(Record, frozen=True):
    """One of the largest changes of the job's step: a bottleneck, or without an account the part or `cause`. `causes`
    are the root causes of the slowest device that changed with it."""

    bottleneck: OwnText
    cause: CauseId | None
    before_ns: Ns
    after_ns: Ns
    change_ns: Ns
    causes: list[PartChange]


class Speedup(Record, frozen=True):
    """How many times as fast as before: before / after, with its 95% interval, None if too little repeats."""

    factor: Ratio
    low: Ratio | None
    high: Ratio | None


class PhaseChange(Record, frozen=True):
    """A phase that the verdict is not about, on both sides: the mean step of another loop, which is the steady phase of
    this `number`, from 1; or the length of the start-up, whose number is 0. `other_work`: the numbers of operations in
    a step are more than 10% apart."""

    number: Count
    change: Change
    other_work: bool = False

    @property
    def changed(self) -> bool:
        """Whether its step did: beyond chance, or if chance is not known by more than 10%."""
        times = self.change.before_ns, self.change.after_ns
        unknown = self.change.verdict == "unknown" and max(times) > 1.1 * min(times)
        return bool(self.number) and (unknown or self.change.verdict in ("improved", "regressed"))


class JobComparison(Record, frozen=True):
    """The job, which takes as long as its slowest device.

    `step` is the time of its step: the `median` step, or the `mean` if only that changed; without steps, the time of
    the unit of work. `mean` is the mean of it. `device_before` and `device_after` are the slowest devices, `work` is
    that of the one after. `account` divides the mean of all devices, empty if a report has none or judges no steady
    phase. `top` are the largest changes on the slowest device, kinds of work and root causes, beyond chance if
    known. It is empty for several devices with an account, in which waits of one for another are charged to what they
    wait for. `slow_steps`: some step of a device takes twice as long as the median one. `phases` are the
    start-up and other loops of the program."""

    statistic: OwnText
    unit: Unit
    verdict: OwnText
    device_before: OwnText
    device_after: OwnText
    devices_differ: bool
    step: Change
    mean: Change
    speedup: Speedup | None
    work: list[WorkChange]
    account: list[AccountChange]
    top: list[PartChange]
    slow_steps: bool = False
    why: list[Reason] = []
    phases: list[PhaseChange] = []


class Strip(Record, frozen=True):
    """One side's whole timeline in little: `level` covers [start_ns, end_ns) of the trace's own clock, and `cause_ids`
    names its causes."""

    start_ns: Moment
    end_ns: Moment
    cause_ids: list[CauseId]
    level: TimelineLevel


class DeviceComparison(Record, frozen=True):
    """One GPU before and after.

    `parts` and `length` are changes for a unit of work; `ledger` divides the idle time of `parts`, `root_ledger` by
    root cause. `waterfall` leads from length.before_ns to length.after_ns. `noise` is the drift of a side from its
    first half to its second beyond chance, as a share of its length. `step` is the median step, None if no steps are
    compared; `slow_steps` if a step takes twice as long as the median one. `families` are those of the kernels,
    empty if CUDA graphs were recorded as wholes. `account` divides the length as that of the job divides its step.
    It is empty unless it differs from the division by cause, as when waits are charged to what they wait for.

    `verdict` is that of `length`, or that of `step` if there are slow steps and the length shows no difference. It is
    `mixed` if `work` differs and the time changes in the same direction, `unknown` if parts of steps are compared.

    `steps` are single steps of the first capture of each side; if there are none, `no_steps` says why.
    """

    key: OwnText
    name_before: GpuName
    name_after: GpuName
    unit: Unit
    verdict: OwnText
    sentence: Sentence
    noise: Share
    length: Change
    parts: list[PartChange]
    ledger: list[PartChange]
    root_ledger: list[PartChange]
    waterfall: list[Step]
    moves: list[Move]
    renaming: Renaming
    workload: list[CountChange]
    kernels: list[KernelChange]
    signatures: list[SignatureChange]
    copies: list[CopyChange]
    communication: list[CollectiveChange]
    launch: list[MetricChange]
    utilization: list[MetricChange]
    findings: list[FindingChange]
    notes: list[Sentence]
    strip_before: Strip | None = None
    strip_after: Strip | None = None
    step: Change | None = None
    slow_steps: bool = False
    work: list[WorkChange] = []
    families: list[FamilyChange] = []
    steps: AlignedSteps | None = None
    no_steps: Sentence = ""
    account: list[AccountChange] = []


class SideTrace(Record, frozen=True):
    """One capture of a side. `file` is the trace; `given` is the file that was read if it is another one, a report of
    the trace. `prediction` has the changes of a prediction, as options; empty for a capture."""

    file: FileName
    size_bytes: Bytes
    fingerprint: FileHash
    nsys_version: Version | None
    window: list[Sentence]
    warnings: list[NsysWarning]
    given: FileName = ""
    prediction: OwnText = ""


class Accepted(Record, frozen=True):
    """A regression that a baseline accepts, as `nsysdiag baseline accept` wrote it: `what` is the expression up to
    which it is accepted, for `reason`, up to and with the day `until` (YYYY-MM-DD).

    `status`: `used` if a broken budget does not fail because of it; `exceeded` if it grew further than accepted;
    `expired` after its day; `unused` if nothing of it is broken. `sentence` says so."""

    what: Sentence
    reason: Sentence
    until: OwnText
    status: OwnText
    sentence: Sentence


class BaselineUse(Record, frozen=True):
    """The baseline whose runs are the side before. `runs` are compared, those that are `left_out` are too far from the
    others; `spread` is the standard deviation of their steps as a share of the mean, None if they are too few to
    tell. `damaged` are the files of the baseline that cannot be read."""

    name: OwnText
    runs: Count
    spread: Share | None
    sentence: Sentence
    left_out: list[FileName] = []
    damaged: list[FileName] = []
    accepted: list[Accepted] = []


class Comparison(Result, frozen=True):
    """Two sides compared. `headline` says it in a line, `job` in numbers; None in comparisons of older versions.
    `verdict` is improved, regressed, same, mixed or unknown, over all devices: if nothing changed on any of them, one
    in twenty says otherwise. `notes` say what lowers the confidence in it. `not_compared` are the causes that some
    captures alone could tell, and those behind them; `across_gpus` says that GPUs of different models were to be
    compared. `baseline` says which baseline is before, None without one. `phrases` are the names in sentences."""

    schema_version: OwnText
    kind: OwnText
    tool: Tool
    before: list[SideTrace]
    after: list[SideTrace]
    verdict: OwnText
    sentence: Sentence
    devices: list[DeviceComparison]
    not_compared: list[CauseId]
    notes: list[Sentence]
    causes: list[CauseInfo]
    settings: ValueBySetting
    across_gpus: bool = False
    headline: Sentence = ""
    job: JobComparison | None = None
    phrases: Phrases | None = None
    baseline: BaselineUse | None = None
