"""The report as plain data: frozen records that are saved as JSON and read back unchanged.

Everything that outputs, comparisons and CI ever see is in here; nothing goes back to the trace. Times are integer
nanoseconds in the trace's own clock, intervals are half-open. A field that holds `None` was not measurable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec

from nsysdiag.cost.facts import Cost, TotalCost
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.critical_path.facts import CriticalPath
from nsysdiag.diagnosis.facts import Diagnosis
from nsysdiag.fields import (
    NO_BUDGET,
    VARIES,
    ApiName,
    Base64,
    Bytes,
    CauseId,
    Count,
    FileHash,
    FileName,
    GpuName,
    HashedId,
    Index,
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
from nsysdiag.findings.facts import Finding
from nsysdiag.host.facts import HostReport
from nsysdiag.iterations.facts import IterationReport, StepReference
from nsysdiag.kernels.facts import Communication, FamilyTime, KernelRow
from nsysdiag.launches.facts import Launch
from nsysdiag.memory.facts import Copies, DeviceMemory, UnifiedMemory
from nsysdiag.phases.facts import Phase, PhaseDevice, added
from nsysdiag.phrases import Phrases
from nsysdiag.ranges.facts import FlameGraph, FlameStack, RangeTree
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.record import ByName, Packed, PackedColumn, Record, Result, Shown, made_of
from nsysdiag.time.facts import GapPlaces
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.utilization.facts import Utilization

if TYPE_CHECKING:
    import pandas as pd

    from nsysdiag.ci.facts import BudgetResult
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.replay.facts import WhatIf

SCHEMA_VERSION = "2"


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
    """The analyzed time; its length is the sum of `parts`.

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
    """A host thread; `name` is None if the trace has none."""

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
    its library or program; for Python, of its source, and then `line` is known too."""

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
    SMs that the GPU's counters saw active, by samples wholly inside the gap; None if there are none."""

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
    iteration on average, None if the device has no iterations; `share_of_idle` is of the device's idle time,
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
        Utilization, WhyNone("the trace does not say what the chip holds: --gpu-metrics-devices=all measures it")
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
    flames: Annotated[FlameGraph | None, NO_BUDGET] = None
    sliced: Annotated[bool, NO_BUDGET] = False


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


if TYPE_CHECKING:
    Devices = ByName[DeviceReport]
    Findings = ByName[Finding]
else:  # what is read: a list, which becomes one that knows names
    Devices = list[DeviceReport]
    Findings = list[Finding]


class Report(Result, frozen=True, dict=True):
    """Everything that was found out about one trace. `ranks` compares its devices, None if there is one alone or
    nothing that they have in common; `not_recorded` is what no such trace tells, `cost` that of all devices that have a
    price; `host` is about threads and CPUs, None if no device worked; then `host_stacks` may have the functions of
    CPU samples. `critical_path` is None if nothing was replayed, or a start is judged. `phrases` are the names in
    all sentences, None in reports of older versions. `step_reference` is a step without the profiler, None unless
    given."""

    schema_version: OwnText
    tool: Tool
    trace: TraceInfo
    devices: Devices
    findings: Findings
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
    host_stacks: list[FlameStack] = []
    critical_path: CriticalPath | None = None

    def query(self, expression: str, table: str = "gaps") -> pd.DataFrame:
        """The rows of a table of `nsysdiag.frames` for which an expression of pandas' DataFrame.query holds.

        Names in it are columns, not variables of Python. Raises UsageError for an unknown table or a wrong expression.
        """
        return made_of(self, "formats.frames", "query", expression, table)

    def judged_of(self, key: str) -> PhaseDevice | None:
        """What the device with this key did in the time that the diagnosis is about: None if the report judges none, or
        holds nothing of such a device."""
        judged = None if self.diagnosis is None else self.diagnosis.phase
        phases = self.phases if judged is None else [self.phases[judged]]
        found = [each for phase in phases for each in phase.devices if each.key == key]
        return added(found) if found else None

    def keep_source(self, path: object, settings: object) -> None:
        """Keep where it was made from, which is not saved with it."""
        self.__dict__["_source"] = path, settings

    @property
    def source(self) -> Any:
        """The path and the settings that it was made from; None of a report that was read from a file."""
        return self.__dict__.get("_source")

    def keep_time(self, tables: Sequence[object]) -> None:
        """Keep the tables of time of its devices (nsysdiag.time.facts), which are not saved with it."""
        self.__dict__["_time"] = tables

    @property
    def kept_time(self) -> Sequence[object]:
        """The tables that were kept; none of a report that was read from a file."""
        return cast("Sequence[object]", self.__dict__.get("_time", ()))

    @property
    def time(self) -> pd.DataFrame:
        """Every nanosecond of every device: a row for each stretch of time in which nothing about it changes.

        `device`, `start_ns`, `end_ns`, `ns`; `phase` and `step` (indices into `phases` and the iterations of the
        device, `pd.NA` outside), `phase_name`; `judged`: the diagnosis is about it; `state` (`compute`, `exposed_comm`,
        `exposed_copy`, `idle`, or `outside`: before the first work of the device). `bottleneck` is what the time is
        charged to; that of communication with late devices, and of idle time that a wait loses by replay, is an
        equal part of each row in question. Of idle time: `cause` is what the launching thread did, `root_cause` what
        caused that and `call` the same in words. `thread` is its id, `place` its NVTX ranges, `operation` what ended
        the gap, `waits_for` another device.

        Sums of it are the numbers of the report: `report.time.query("judged").groupby("bottleneck").ns.sum()`. Raises
        UsageError for a report that was read from a file.
        """
        return made_of(self, "formats.frames", "time_frame", self.kept_time)

    def __post_init__(self) -> None:
        """Lets devices and findings be named: `report.devices["gpu0"]`, `report.findings["f-sync"]`."""
        for name in ("devices", "findings"):
            if not isinstance(held := getattr(self, name), ByName):
                msgspec.structs.force_setattr(self, name, ByName(held))

    def frames(self) -> dict[str, pd.DataFrame]:
        """Its tables as data frames, see `nsysdiag.frames`."""
        return cast("dict[str, pd.DataFrame]", made_of(self, "formats.frames", "frames"))

    def all_gaps(self) -> pd.DataFrame:
        """Every gap of every device, see `nsysdiag.all_gaps`."""
        return cast("pd.DataFrame", made_of(self, "formats.frames", "all_gaps"))

    def compare(self, after: Any, *, across_gpus: bool = False) -> Comparison:
        """What changed from this report to another one, or to a trace, see `nsysdiag.compare`."""
        return cast("Comparison", made_of(self, "pipeline.changes", "compare", after, across_gpus=across_gpus))

    def check(self, *budgets: str) -> list[BudgetResult]:
        """What becomes of budgets such as `idle_share > 20%`, see `nsysdiag.check_report`."""
        return cast("list[BudgetResult]", made_of(self, "functions", "check_report", *budgets))

    def whatif(self, *changes: str) -> WhatIf:
        """How long a step would be with changes as on the command line: `report.whatif("without sync")`; without any,
        what each finding would save. The trace is read again, with the settings of this report.

        Raises UsageError for a change that is none, and for a report that was read from a file.
        """
        return cast("WhatIf", made_of(self, "pipeline.changes", "whatif_of", changes))

    def sql(self, query: str) -> pd.DataFrame:
        """The answer to one SELECT over the tables of `nsysdiag.frames(report)` and `time`, as `nsysdiag sql` gives it.

        `steps` are the `iterations`. Raises UsageError for SQL that is wrong, or would do anything but read; and for
        `time` of a report that was read from a file.
        """
        return made_of(None, "queries.asking", "answer_frame", query, lambda: self)
