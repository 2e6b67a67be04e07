"""The report as plain data: frozen records that are saved as JSON and read back unchanged.

Everything that outputs, comparisons and CI ever see is in here; nothing goes back to the trace. Times are integer
nanoseconds in the trace's own clock, intervals are half-open. A field that holds `None` was not measurable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from nsysdiag import typed
from nsysdiag.causes.ids import HOST_CODE
from nsysdiag.communication.facts import Communication
from nsysdiag.copies.facts import Copies
from nsysdiag.cost.facts import Cost, TotalCost
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.diagnosis.facts import Diagnosis, Saves
from nsysdiag.fields import (
    COUNT,
    NO_BUDGET,
    POSITIVE,
    VARIES,
    ApiName,
    Base64,
    Bytes,
    CallName,
    CauseId,
    Count,
    FileHash,
    FileName,
    GpuName,
    HashedId,
    Index,
    IterationName,
    KernelName,
    ModuleName,
    Moment,
    Needs,
    Ns,
    NsByCause,
    NsByLabel,
    NsysWarning,
    Number,
    OwnText,
    RangeName,
    RowName,
    RowsByTable,
    Sentence,
    Share,
    SymbolName,
    ThreadName,
    TotalCount,
    TotalNs,
    ValueBySetting,
    Version,
    WhyNone,
)
from nsysdiag.host.facts import HostReport
from nsysdiag.iterations.facts import StepReference
from nsysdiag.kernels.facts import FamilyTime, KernelRow
from nsysdiag.launches.facts import Launch
from nsysdiag.memory.facts import DeviceMemory, UnifiedMemory
from nsysdiag.phases.facts import Phase, PhaseDevice, added
from nsysdiag.phrases import Phrases
from nsysdiag.ranges.facts import RangeTree
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.record import Packed, PackedColumn, Record, Result, Shown, asked, in_a_cell, timed
from nsysdiag.time.facts import GapPlaces
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.utilization.facts import Utilization

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

SCHEMA_VERSION = "2"
_NO_NAME = re.compile(r"(main|0x[0-9a-f]+)?")


class Tool(Record, frozen=True):
    """The program that wrote the report."""

    name: OwnText
    version: OwnText


class Capability(Record, frozen=True):
    """One kind of evidence: whether the trace has it, why (not), and the `nsys profile` option that brings it."""

    id: OwnText
    available: bool
    why: Sentence
    recapture: OwnText | None = None


class TraceInfo(Record, frozen=True):
    """Where the data came from. `tables` maps a table to its rows: exact, or `~N`, the largest rowid."""

    file: FileName
    size_bytes: Bytes
    fingerprint: FileHash
    nsys_version: Version | None
    export_schema_version: Version | None
    tables: RowsByTable
    capabilities: list[Capability]
    warnings: list[NsysWarning]
    sha256: FileHash | None = None


class DeviceId(Record, frozen=True):
    """A process's own number for the device: its CUDA ordinal."""

    pid: Number
    device_id: Number


class Window(Record, frozen=True):
    """The analysed time; its length is the sum of `parts`.

    Time outside is edge, never idle. `outside_ns` is the part of the time from first to last launched operation that
    the chosen parts leave out. `edge_ns` is the capture time before and after that; None if the length of the capture
    is unknown."""

    start_ns: Moment
    end_ns: Moment
    parts: list[tuple[Moment, Moment]]
    reason: Sentence
    outside_ns: Ns = 0
    edge_ns: Ns | None = None


class OpCounts(Record, frozen=True):
    """Operations that ran inside the window; `zero_length` ones are in the counts of their kind too."""

    kernel: TotalCount
    memcpy: TotalCount
    memset: TotalCount
    graph: TotalCount
    zero_length: TotalCount = 0
    malformed: TotalCount = 0


class Verdict(Record, frozen=True):
    """The first sentence that a person reads about a device."""

    id: OwnText
    sentence: Sentence


class Slice(Record, frozen=True):
    """A part of a gap that one cause explains. `evidence` names the rows behind it, for a person."""

    cause: CauseId
    ns: TotalNs
    evidence: Sentence


class Thread(Record, frozen=True):
    """A host thread; `name` is None where the trace has none."""

    pid: Number
    tid: Number
    name: ThreadName | None


class Operation(Record, frozen=True):
    """An operation on the device before or after a gap. `category`: kernel, memcpy, memset or graph."""

    name: KernelName
    category: OwnText
    start_ns: Moment
    end_ns: Moment
    stream: Number


class Hop(Record, frozen=True):
    """One step from a wait to the thread that ended it: the evidence, what that thread did meanwhile, and when it ended
    the wait (`at_ns`)."""

    thread: Thread
    how: Sentence
    did: Sentence
    confidence: Share
    at_ns: Moment | None = None


class Root(Record, frozen=True):
    """The threads that ended the longest wait of a gap, hop by hop, and the root cause at the end.

    `chain` is the same as text, from the wait to its root. The confidence is that of all hops together. `cause` is an
    id as in the root ledger. A wait without a known waker is its own root."""

    chain: list[Sentence]
    confidence: Share
    cause: CauseId = ""
    hops: list[Hop] = []


class CodeFrame(Record, frozen=True):
    """A function on a thread's stack. `symbol` is empty if the trace has only an address. `module` is the file name of
    its library or program; for Python, of its source, where `line` is known too."""

    symbol: SymbolName
    module: ModuleName
    python: bool = False
    line: Number | None = None


class CallSite(Record, frozen=True):
    """Where in the program time was spent: the program's own functions, innermost first, without library functions.

    If a call chain holds only libraries, this is its innermost function and `own` is false. `source` says which call
    chains showed it: `cuda`, `osrt`, `sampling`, `python`; `chains` of the `of` that were read lead here. `launch` is
    true if no chain shows the cause, and the launch of the next operation is shown instead."""

    frames: list[CodeFrame]
    source: OwnText
    chains: Count
    of: Count
    own: bool = True
    launch: bool = False


class CodeShare(Record, frozen=True):
    """An innermost function, or the module of one without a name, with its share of the samples. `kind`: program,
    interpreter, garbage collector, native library, kernel, Python library, profiler."""

    symbol: SymbolName
    kind: OwnText
    share: Share


class Gap(Shown, frozen=True):
    """One maximal idle interval [start_ns, end_ns) of a device; its slices add up to its length.

    `nvtx` are the ranges open on the launching thread, outermost first; `nvtx_elsewhere` start/end ranges that another
    thread of its process had begun, which name the phase of the program and prove nothing. `sm_active` is the share of
    SMs that the GPU's counters saw active, by samples wholly inside the gap; None where there are none."""

    start_ns: Moment
    end_ns: Moment
    slices: list[Slice]
    thread: Thread | None
    previous_op: Operation | None
    next_op: Operation | None
    nvtx: list[RangeName]
    sync_drained: bool
    drained_by: ApiName | None
    root: Root | None
    confidence: Share
    call_site: CallSite | None = None
    nvtx_elsewhere: list[RangeName] = []
    sm_active: Share | None = None


class GapsPacked(Packed, frozen=True):
    """Every gap, compact. `starts` (delta coded) and `lengths` are zlib-compressed little-endian int64 in base64,
    `causes` likewise one byte a gap, an index into `cause_ids`: the gap's dominant cause. `places` has the place of
    each gap in the program, None in older reports."""

    count: Count
    starts: Base64
    lengths: Base64
    causes: Base64
    cause_ids: list[CauseId]
    places: GapPlaces | None = None
    encoding: OwnText = "base64(zlib(little-endian)); starts: int64 deltas, lengths: int64, causes: uint8"

    def columns(self) -> Iterable[PackedColumn]:
        """Starts, lengths and causes."""
        return [
            PackedColumn(self.starts, self.count, 8),
            PackedColumn(self.lengths, self.count, 8),
            PackedColumn(self.causes, self.count, 1),
        ]


class SignatureRow(Record, frozen=True):
    """Gaps with the same previous op, next op, NVTX path and dominant cause; counters in names read `#`, template
    arguments that distinguish nothing `…`. `representative_start_ns` is where the longest of them begins,
    `representative_index` its place among all gaps of the device. `per_iteration_ns` is what they cost a steady
    iteration on average, None where the device has no iterations; `share_of_idle` is of the device's idle time,
    `host_code` what the samples of host code were in."""

    id: HashedId
    previous_op: KernelName
    next_op: KernelName
    nvtx: list[RangeName]
    cause: CauseId
    count: TotalCount
    total_ns: TotalNs
    median_ns: Ns
    max_ns: Ns
    representative_start_ns: Moment
    call_site: CallSite | None = None
    host_code: list[CodeShare] = []
    representative_index: Index = 0
    p95_ns: Ns = 0
    per_iteration_ns: Ns | None = None
    share_of_idle: Share = 0.0


class Iteration(Record, frozen=True):
    """One iteration on the device: [start_ns, end_ns). Its work and its ledger add up to its length."""

    index: Index
    start_ns: Moment
    end_ns: Moment
    steady: bool
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    ledger: NsByCause


class SlowIteration(Record, frozen=True):
    """An iteration longer than the median one by `extra_ns`; `more` is what it has more of: causes, kinds of work."""

    index: Index
    extra_ns: TotalNs
    more: dict[OwnText, TotalNs]


class IterationsPacked(Packed, frozen=True):
    """The steady iterations in order, compact: `count` entries, each the sum over `each` consecutive iterations (1
    unless there are very many; the last few may then be left out).

    `lengths` is their time, which `work` (compute, exposed_comm, exposed_copy) and `ledger` (by cause) add up to;
    `root_ledger` is the same idle time by root cause. `ops` counts the operations that begin in each. `kernels` holds
    the time of kernels by name, for the first rows of the device's `kernels`, one entry each; `signatures` that of gap
    groups, for the first rows of its `signatures`. `copied` is the bytes moved by copies that begin in it; empty if
    unknown, and in older reports. The first entry begins at `first_ns`, and `apart` is the time from the end of the one
    before to each, 0 for the first; None and empty where an entry is several iterations, and in older reports. Numbers
    from 0 up, each column as planes of bytes: the lowest byte of every number, then the next one of each, as many as
    the largest needs.
    """

    count: Count
    each: Annotated[int, COUNT, POSITIVE]
    lengths: Base64
    work: dict[OwnText, Base64]
    ledger: dict[CauseId, Base64]
    root_ledger: dict[CauseId, Base64]
    ops: dict[OwnText, Base64]
    kernels: list[Base64]
    signatures: list[Base64] = []
    copied: Base64 = ""
    first_ns: Moment | None = None
    apart: Base64 = ""
    encoding: OwnText = "base64(zlib(planes of bytes))"

    def columns(self) -> Iterable[PackedColumn]:
        """All columns, each of `count` numbers."""
        named = (self.work, self.ledger, self.root_ledger, self.ops)
        texts = [
            self.lengths,
            *(text for text in (self.copied, self.apart) if text),
            *(text for columns in named for text in columns.values()),
            *self.kernels,
            *self.signatures,
        ]
        return [PackedColumn(text, self.count, 8) for text in texts]


class InnerLoop(Record, frozen=True):
    """A shorter period inside iterations: what comes `per_iteration` times in each, `median_ns` from one to the next.
    Its name is that of an NVTX range or of an operation, by `source`, as for iterations."""

    source: OwnText
    name: IterationName
    per_iteration: Count
    median_ns: Ns


class IterationKind(Record, frozen=True):
    """Iterations that spend most of their time in this kernel, or in CUDA graphs recorded as a whole: how many of the
    steady ones, their median and their total time."""

    name: KernelName
    count: Count
    median_ns: Ns
    total_ns: TotalNs


class IterationReport(Record, frozen=True):
    """Iterations found by `source`: `nvtx`, ranges of this name, or `anchor`, an operation that repeats.

    Percentiles are over the steady ones; `left_out` are warm-up, graph captures and iterations without an end. `rows`
    holds at most 200 of them, the longest; `packed` all steady ones. `slow` holds at most ten; `slow_count` and
    `slow_extra_ns` are of all slow ones; `slow_period` is their distance in iterations, None if irregular. `kind` is
    `step`; `layer` for the repeating parts of a model in one pass, `repeat` for what may be such: these are not packed.
    `closed`: the program's own loop surely closes in each. `inner` is the shorter period in them, None if none was
    found; `levels` are all of them, from that one on. `certain` is False where the trace does not show which are the
    steps and which their parts; then `outer`, if any, is a longer period that may be the step: so many iterations are
    in each, and its median length. `kinds` of iterations take turns, as prefill and decode in a server, the most
    frequent first; empty where all do the same work. Only those of the first kind are slow.
    """

    source: OwnText
    name: IterationName
    count: Count
    steady: Count
    left_out: list[Index]
    p50_ns: Ns
    p95_ns: Ns
    worst_ns: Ns
    median_index: Index
    rows: list[Iteration]
    slow: list[SlowIteration]
    packed: Annotated[IterationsPacked | None, NO_BUDGET] = None
    slow_count: Count = 0
    slow_extra_ns: TotalNs = 0
    slow_period: Annotated[Count | None, WhyNone("slow iterations come at no regular distance")] = None
    kind: OwnText = "step"
    closed: bool = True
    inner: Annotated[InnerLoop | None, NO_BUDGET] = None
    levels: Annotated[list[InnerLoop], NO_BUDGET] = []
    outer: Annotated[InnerLoop | None, NO_BUDGET] = None
    kinds: Annotated[list[IterationKind], NO_BUDGET] = []
    certain: bool = True


class DeviceReport(Shown, frozen=True):
    """One physical GPU. compute_ns + exposed_comm_ns + exposed_copy_ns + idle_ns = window_ns; ledger sums to idle_ns.

    `labels` splits causes further, `root_labels` those of `root_ledger`. `sync_drained` holds the number and ns of gaps
    that a synchronization opened. `sliced`: the trace begins or ends in the middle of queued work.
    """

    key: OwnText
    name: GpuName
    sm_count: Count | None
    ids: list[DeviceId]
    window: Window
    window_ns: TotalNs
    busy_ns: TotalNs
    idle_ns: TotalNs
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    overlapped_comm_ns: TotalNs
    ops: OpCounts
    ledger: NsByCause
    root_ledger: NsByCause
    labels: NsByLabel
    sync_drained: Annotated[dict[OwnText, Annotated[int, VARIES]], Needs("cuda-api")]
    coverage: Annotated[Share | None, WhyNone("it has no idle time that the host must explain")]
    floor_ns: Ns
    floor_calibrated: bool
    launch_latency_ns: Ns
    launch_latency_calibrated: bool
    verdict: Verdict
    gap_count: TotalCount
    gaps: list[Gap]
    gaps_packed: Annotated[GapsPacked, NO_BUDGET]
    signatures: list[SignatureRow]
    iterations: Annotated[
        IterationReport | None,
        WhyNone("nothing repeats in it: put NVTX ranges around the steps, and capture with --trace=nvtx"),
    ]
    launch: Annotated[Launch, Needs("cuda-api")]
    kernels: list[KernelRow]
    copies: Copies
    communication: Communication
    utilization: Annotated[
        Utilization,
        WhyNone("the trace does not say what the chip holds: --gpu-metrics-devices=all measures it"),
    ]
    notes: list[Sentence]
    root_labels: NsByLabel = {}
    cost: Annotated[Cost | None, WhyNone("this GPU has no price: give one with --gpu-hour-cost or in [cost]")] = None
    gpu_metrics: Annotated[
        GpuMetrics | None, WhyNone("its GPU counters were not captured: --gpu-metrics-devices=all brings them")
    ] = None
    unified_memory: Annotated[
        UnifiedMemory | None,
        WhyNone(
            "nothing of unified memory was captured: --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true "
            "bring its faults"
        ),
    ] = None
    memory: Annotated[
        DeviceMemory | None, WhyNone("the use of memory was not captured: --cuda-memory-usage=true brings it")
    ] = None
    ranges: Annotated[RangeTree | None, NO_BUDGET] = None
    kernel_families: list[FamilyTime] = []
    sliced: Annotated[bool, NO_BUDGET] = False


EvidenceOf = Literal["label", "call", "gap", "idle_behind", "kernel", "copy", "migration"]


class EvidenceRow(Record, frozen=True):
    """A row of the trace that a claim rests on, enough to SELECT it: `table`, and the values of its columns start,
    globalTid (`thread`), correlationId (`correlation`) and globalPid (`process`); None where that says nothing.

    `name` says what it is, `ns` how much of the time it stands for."""

    table: OwnText
    name: RowName
    start_ns: Moment
    ns: TotalNs
    thread: Number | None = None
    correlation: Number | None = None
    process: Number | None = None


class Joined(Record, frozen=True):
    """A finding that was joined with another one, as both are the same problem."""

    cause: CauseId
    variant: OwnText
    nvtx: list[RangeName]


class Named(Record, frozen=True):
    """A part of a finding's time with its name: a function, a place, or a function at a place; of kernels their kind.
    `share` is its part of the judged time; `short` is the name without details, empty where `text` has none. `which`
    says which kernels of the kind run, empty where `text` does. `graphs` is the number of launches of CUDA graphs that
    were recorded without their kernels, if the part is that."""

    text: Sentence
    share: Share
    short: Sentence = ""
    which: Sentence = ""
    graphs: Count = 0


class Evidence(Record, frozen=True):
    """A fact that a finding rests on, as data. `kind` says what was counted, `name` what it is about: a label of the
    cause, a CUDA or OS call, a kernel, a kind of copy; empty for the longest gap, and for idle time behind a wait.
    `count` is how many there were, `ns` how long they took in all; None where that was not measured."""

    kind: EvidenceOf
    name: Sentence
    count: Count | None = None
    ns: Ns | None = None


class Finding(Shown, frozen=True):
    """A performance problem that can be fixed.

    All times but `saves` are of the judged time. `lost_ns` is what the ledger holds, over all `devices`, and
    `lost_share` its fraction of their judged time. Findings do not overlap there: their sum is at most the time that
    the devices lost. `share` is the fraction that the account charges to `bottleneck`. It is less where a part is
    charged to something else, and more where a wait caused idle time behind it. `ceiling_ns` is the upper bound of
    the saving on one device; upper bounds overlap and must not be added. `saves` is of a step or of the window, as its
    `per` says; None if unknown.

    `confidence`, 0 to 1, is the fraction of its time with evidence in the trace. `summary` is a short description;
    `variant` is the id of the variant of its cause, empty if none. `part_of` is the id of the finding on the same
    problem that reports the saving of both. `note` explains this, or why the saving exceeds the share; `joined` are the
    findings that were merged into this one. `named` are the functions, NVTX ranges or kernels with most of the time,
    the most specific first. `measured` is the evidence as data. `counted_before`: time that the fix saves is charged to
    synchronization before it. `shown_by` is the profiler of kernels that shows more, `ncu` or `rocprof`.

    Location: the `devices`, and the `device` with the most lost time; the NVTX range path `nvtx`; the number of `gaps`
    and the `signature` of most of them; the `call`, an API or OS function, or a description. `chain` lists the steps
    from the root cause to the fix; `rows` are the rows of the trace with the most of this time, longest first."""

    id: HashedId
    cause: CauseId
    device: OwnText
    severity: OwnText
    title: Sentence
    lost_ns: TotalNs
    lost_share: Share
    ceiling_ns: Ns
    confidence: Share
    nvtx: list[RangeName]
    evidence: list[Sentence]
    advice: list[Sentence]
    signature: HashedId | None = None
    call: CallName | None = None
    gaps: TotalCount = 0
    chain: list[Sentence] = []
    rows: list[EvidenceRow] = []
    devices: list[OwnText] = []
    bottleneck: OwnText = ""
    share: Share = 0.0
    saves: Saves | None = None
    summary: Sentence = ""
    part_of: HashedId | None = None
    note: Sentence = ""
    variant: OwnText = ""
    joined: list[Joined] = []
    named: list[Named] = []
    measured: list[Evidence] = []
    counted_before: bool = False
    shown_by: OwnText = ""

    @property
    def unnamed(self) -> bool:
        """Whether it is about host code that neither CPU samples nor ranges of the program name."""
        return self.cause == HOST_CODE and not self.nvtx and names_nothing(self.call)

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return in_a_cell(self)


def names_nothing(call: Sentence | None) -> bool:
    """All of a program is in main, and an address is no name."""
    return _NO_NAME.fullmatch(typed.plain(call or "")) is not None


class Outlook(Record, frozen=True):
    """A step (or the window, `per`) of the busiest device, now and as predicted with a finding fixed: ns by what it
    did (`compute`, `exposed_comm`, `exposed_copy`) and by the causes of its idle time."""

    finding: HashedId
    device: OwnText
    per: OwnText
    now: NsByCause
    predicted: NsByCause


class CauseInfo(Record, frozen=True):
    """A cause as the rules know it, so that a saved report can be drawn without them. `bottleneck` is what its time
    is charged to; empty in reports of older versions."""

    id: CauseId
    title: OwnText
    meaning: OwnText
    color: OwnText
    unresolved: bool = False
    bottleneck: OwnText = ""


class NotRecorded(Record, frozen=True):
    """Something that matters for GPU performance and that no such trace shows, and the program that shows it."""

    what: OwnText
    tool: OwnText


class Report(Result, frozen=True, dict=True):
    """Everything that was found out about one trace. `ranks` compares its devices, None where there is one alone or
    nothing that they have in common; `not_recorded` is what no such trace tells, `cost` that of all devices that have a
    price; `host` is about threads and CPUs, None where no device worked. `phrases` are the names in all
    sentences, None in reports of older versions. `step_reference` is a step without the profiler, None unless given."""

    schema_version: OwnText
    tool: Tool
    trace: TraceInfo
    devices: list[DeviceReport]
    findings: list[Finding]
    causes: list[CauseInfo]
    recapture: OwnText | None
    settings: ValueBySetting
    timeline: dict[OwnText, TimelineLevels] | msgspec.UnsetType = msgspec.UNSET
    ranks: RankComparison | None = None
    not_recorded: list[NotRecorded] = []
    cost: TotalCost | None = None
    host: HostReport | None = None
    outlooks: list[Outlook] = []
    diagnosis: Diagnosis | None = None
    phases: list[Phase] = []
    phrases: Phrases | None = None
    step_reference: StepReference | None = None

    def query(self, expression: str, table: str = "gaps") -> pd.DataFrame:
        """The rows of a table of `nsysdiag.frames` for which an expression of pandas' DataFrame.query holds.

        Names in it are columns, not variables of Python. Raises UsageError for an unknown table or a wrong expression.
        """
        return asked(self, expression, table)

    def judged_of(self, key: str) -> PhaseDevice | None:
        """What the device with this key did in the time that the diagnosis is about: None if the report judges none, or
        holds nothing of such a device."""
        judged = None if self.diagnosis is None else self.diagnosis.phase
        phases = self.phases if judged is None else [self.phases[judged]]
        found = [each for phase in phases for each in phase.devices if each.key == key]
        return added(found) if found else None

    def keep_time(self, tables: Sequence[object]) -> None:
        """Keep the tables of time of its devices (nsysdiag.time.facts), which are not saved with it."""
        self.__dict__["_time"] = tables

    @property
    def time(self) -> pd.DataFrame:
        """Every nanosecond of every device: a row for each stretch of time in which nothing about it changes.

        `device`, `start_ns`, `end_ns`, `ns`; `phase` and `step` (indices into `phases` and the iterations of the
        device, `pd.NA` outside), `phase_name`; `judged`: the diagnosis is about it; `state` (`compute`, `exposed_comm`,
        `exposed_copy`, `idle`, or `outside`: before the first work of the device). `bottleneck` is what the time is
        charged to. Of idle time: `cause` is what the launching thread did, `root_cause` what caused that and `call`
        the same in words. `thread` is its id, `place` its NVTX ranges, `operation` what ended the gap, `waits_for`
        another device.

        Sums of it are the numbers of the report: `report.time.query("judged").groupby("bottleneck").ns.sum()`. Raises
        UsageError for a report that was read from a file.
        """
        return timed(self, self.__dict__.get("_time", ()))
