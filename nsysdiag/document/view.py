"""What every format draws: rows picked out of the report, in the order in which a person reads them.

Also what a subject's presentation may use besides its own records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import Struct

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.fields import TextKind
from nsysdiag.phases.facts import is_mostly_graphs
from nsysdiag.phrases import Phrases
from nsysdiag.record import Record, rewritten
from nsysdiag.report import CauseInfo, DeviceReport, Gap, Report, SignatureRow, Slice
from nsysdiag.units import format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.findings.facts import Finding
    from nsysdiag.iterations.facts import Iteration, SlowIteration


UNKNOWN_COLOR = "#8a8f98"
# Tables that an export has whatever was captured.
BOOKKEEPING = ("ENUM_", "META_", "EXPORT_", "TARGET_", "ANALYSIS_", "StringIds", "PROCESSES", "ThreadNames")
# The kinds of work as iterations name them: the part of the window, and its label.
WORK = {
    "compute": ("compute", "Compute"),
    "exposed_comm": ("communication", "Exposed communication"),
    "exposed_copy": ("copies", "Exposed copies"),
}
HOST_EVIDENCE = ("os-runtime", "scheduling", "cpu-samples")
PARTS = {**WORK, "idle": ("idle", "Idle")}
"""The same and the idle time, which fill a window."""
COMPUTE_OR_GRAPHS = "Compute or whole CUDA graphs"
NOTABLE_ACTIVITY = 0.2
"""The share of active SMs from which on a gap was hardly one."""
SEVERITIES = ("high", "medium", "low", "info")


class WindowPart(Struct, frozen=True):
    """One of the four parts of a window, which add up to it."""

    id: str
    label: str
    ns: int


class Share(Struct, frozen=True):
    """A part of an iteration's time: the id of a part of the window, or of the cause of idle time (the other is empty).
    It has a colour, and a bottleneck, empty if unknown."""

    id: str
    label: str
    ns: int
    part: str
    color: str
    bottleneck: str = ""


class LedgerRow(Struct, frozen=True):
    """The idle time of one cause, with its sub-labels; `root_ns` is the cause's time after wake-ups were followed."""

    cause: CauseInfo
    ns: int
    root_ns: int
    labels: tuple[tuple[str, int], ...]


class RootRow(Struct, frozen=True):
    """A cause after wake-ups were followed: its time then, what it was before, and the kinds within it."""

    cause: CauseInfo
    ns: int
    before_ns: int
    labels: tuple[tuple[str, int], ...]


class Causes:
    """The causes that the report was made with, by id; an id that it does not list stands for itself."""

    def __init__(self, causes: Iterable[CauseInfo]) -> None:
        self._causes = {cause.id: cause for cause in causes}
        self._rank = {cause: rank for rank, cause in enumerate(self._causes)}

    def __getitem__(self, cause: str) -> CauseInfo:
        known = self._causes.get(cause)
        return known or CauseInfo(id=cause, title=cause.replace("_", " "), meaning="", color=UNKNOWN_COLOR)

    def knows(self, cause: str) -> bool:
        """Is this one of the causes of the report? A loss that is not idle time, such as an exposed copy, is none."""
        return cause in self._causes

    def rank(self, cause: str) -> int:
        """The place of the cause in the report's order; what it does not list comes last."""
        return self._rank.get(cause, len(self._rank))

    def title(self, cause: str) -> str:
        """The title of the cause with this id."""
        return self[cause].title


def graphs_ns(device: DeviceReport) -> int:
    """The time of graphs of the window that were recorded as a whole."""
    graphs = device.launch.graphs
    return sum(row.work_ns for row in graphs.rows if row.nodes is None) if graphs else 0


def mostly_graphs(device: DeviceReport) -> bool:
    """Whether most of the compute time of the window is theirs."""
    return is_mostly_graphs(graphs_ns(device), device.compute_ns)


def window_parts(device: DeviceReport) -> tuple[WindowPart, ...]:
    """Compute, exposed communication, exposed copies and idle of a device: the sum is its window."""
    return (
        WindowPart("compute", COMPUTE_OR_GRAPHS if mostly_graphs(device) else PARTS["compute"][1], device.compute_ns),
        WindowPart(*PARTS["exposed_comm"], device.exposed_comm_ns),
        WindowPart(*PARTS["exposed_copy"], device.exposed_copy_ns),
        WindowPart(*PARTS["idle"], device.idle_ns),
    )


def iteration_shares(row: Iteration, causes: Causes) -> list[Share]:
    """What ran in an iteration, then its idle time by cause, in the report's order; the sum is its length."""
    work = {"compute": row.compute_ns, "exposed_comm": row.exposed_comm_ns, "exposed_copy": row.exposed_copy_ns}
    ledger = sorted(row.ledger.items(), key=lambda item: (causes.rank(item[0]), item[0]))
    return [share_of(each, ns, causes) for each, ns in (*work.items(), *ledger) if ns]


def more_shares(slow: SlowIteration, causes: Causes) -> list[Share]:
    """What a slow iteration has more of than the median one, most first: a saved report keeps no order."""
    return [share_of(each, ns, causes) for each, ns in by_time(slow.more)]


def share_of(id: str, ns: int, causes: Causes) -> Share:
    """Time by the id of a kind of work or of a cause."""
    if id in WORK:
        part, label = WORK[id]
        return Share(id, label, ns, part, "", OF_WORK[id])
    return Share(id, causes.title(id), ns, "", causes[id].color, causes[id].bottleneck)


def ledger_rows(device: DeviceReport, causes: Causes) -> list[LedgerRow]:
    """The causes of a device's idle time, longest first; causes known only after following wake-ups come last."""
    ids = [cause for cause in {**device.ledger, **device.root_ledger} if _ns(device, cause) != (0, 0)]
    ids.sort(key=lambda cause: (*(-ns for ns in _ns(device, cause)), cause))
    return [LedgerRow(causes[cause], *_ns(device, cause), by_time(device.labels.get(cause, {}))) for cause in ids]


def _ns(device: DeviceReport, cause: str) -> tuple[int, int]:
    return device.ledger.get(cause, 0), device.root_ledger.get(cause, 0)


def by_time(times: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Names and times, most time first; equal ones by name."""
    return tuple(sorted(times.items(), key=lambda item: (-item[1], item[0])))


def follows_wakes(device: DeviceReport) -> bool:
    """Did following wake-ups move any idle time to another cause?"""
    return bool(device.root_ledger) and any(
        device.root_ledger.get(cause, 0) != device.ledger.get(cause, 0)
        for cause in {**device.ledger, **device.root_ledger}
    )


def moved(device: DeviceReport, causes: Causes) -> list[RootRow]:
    """The causes that following wake-ups gave time to or took it from, by what they have then."""
    if not follows_wakes(device):
        return []
    rows = []
    for row in ledger_rows(device, causes):
        if row.ns != row.root_ns:
            # The kinds within data loading are the workers' own causes.
            labels = by_time(device.root_labels.get(row.cause.id, {}))
            titles = tuple((causes.title(label) if causes.knows(label) else label, ns) for label, ns in labels)
            rows.append(RootRow(row.cause, row.root_ns, row.ns, titles))
    return sorted(rows, key=lambda row: (-row.ns, row.cause.id))


def by_length(gaps: list[Gap]) -> list[Gap]:
    """Gaps, longest first; of equal ones the earlier first."""
    return sorted(gaps, key=lambda gap: (gap.start_ns - gap.end_ns, gap.start_ns))


def by_total(rows: list[SignatureRow]) -> list[SignatureRow]:
    """Signatures, most time first; equal ones by id."""
    return sorted(rows, key=lambda row: (-row.total_ns, row.id))


def slices_by_time(gap: Gap) -> list[Slice]:
    """The slices of a gap, longest first, without the empty ones; equal ones keep the report's order."""
    return sorted((part for part in gap.slices if part.ns > 0), key=lambda part: -part.ns)


def evidence(part: Slice, causes: Causes) -> str:
    """The evidence of a slice, empty if it says no more than the cause's title."""
    return "" if part.evidence.casefold() == causes.title(part.cause).casefold() else part.evidence


def flags(gap: Gap) -> list[str]:
    """What else is known about a gap, in words."""
    drained = f"queue emptied by {gap.drained_by}" if gap.drained_by else "queue emptied by a sync"
    active = f"{format_share(gap.sm_active or 0, 1)} of the SMs active by the GPU's own counters"
    seen = gap.sm_active is not None and gap.sm_active >= NOTABLE_ACTIVITY
    return [*([drained] if gap.sync_drained else []), *([active] if seen else [])]


def by_rank(findings: list[Finding]) -> list[Finding]:
    """Findings by severity, then in the report's order, which is by lost time."""
    return sorted(findings, key=lambda finding: severity_rank(finding.severity))


def namesake(finding: Finding, findings: list[Finding]) -> Finding | None:
    """The first of these findings with this title, if that is on another device."""
    first = next((each for each in findings if each.title == finding.title), finding)
    return first if first.device != finding.device else None


def severity_rank(severity: str) -> int:
    """0 for high up to 3 for info; what is unknown comes last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def missing(report: Report) -> list[str]:
    """The ids of the kinds of evidence that the trace does not hold."""
    return [capability.id for capability in report.trace.capabilities if not capability.available]


def missing_in_words(report: Report) -> list[str]:
    """The same for readers: calls of MPI may be ranges, and migrations are there without their page faults."""
    in_ranges = any(device.communication.mpi for device in report.devices)
    said = {"unified-memory": "page faults of unified memory", "mpi": "" if in_ranges else "mpi"}
    return [name for each in missing(report) if (name := said.get(each, each))]


def host_unseen(report: Report) -> bool:
    """Whether the trace shows nothing of the host but its CUDA calls and ranges."""
    return set(HOST_EVIDENCE) <= set(missing(report))


def device_label(report: Report, key: str) -> str:
    """The name and key of a device by its key."""
    names = [device.name for device in report.devices if device.key == key]
    return f"{names[0]} ({key})" if names else key


def held(report: Report) -> list[str]:
    """What was captured into a trace without GPU work: each table of events that has rows, with their number."""
    return [
        f"{table} ({rows if isinstance(rows, str) else format_count(rows)} rows)"
        for table, rows in sorted(report.trace.tables.items())
        if rows not in (0, "~0") and not table.startswith(BOOKKEEPING)
    ]


# Ranges whose names had counters removed, as readers see them.
#
# ```
# saved, and matched by     step #          layers.#
# read                      step N          layers.N
# ```

_RANGES = TextKind.RANGE.name.lower()
_UNCHANGED = (TextKind.PACKED, TextKind.SETTINGS, TextKind.PHRASES, TextKind.TABLE)
_DIGIT = re.compile(r"\d")
# Not that of `C#`.
_COUNTER = re.compile(r"(?<!\b[A-Z])#+")
R = TypeVar("R", bound=Record)


def read_name(name: str) -> str:
    """A range as readers see it. One with a digit is the name that the program gave it."""
    return name if "#" not in name or _DIGIT.search(name) else _COUNTER.sub("N", name)


def as_read(report: R) -> R:
    """The report with ranges as readers see them, in fields with ranges and in sentences."""
    sentences = _sentences(getattr(report, "phrases", None))

    def visit(text: TextKind, record: Record, value: Any) -> Any:
        is_range = text is TextKind.RANGE or (text is TextKind.ITERATION and getattr(record, "source", "") == "nvtx")
        if text in _UNCHANGED or isinstance(value, dict):
            return value
        changed = read_name if is_range else lambda each: sentences.get(each, each)
        return [changed(each) for each in value] if isinstance(value, list) else changed(value)

    return rewritten(report, visit)


def _sentences(phrases: Phrases | None) -> dict[str, str]:
    """For each sentence with such a range the text that readers see; empty for a report without the names in its
    sentences."""
    ranges = phrases.names.get(_RANGES, []) if phrases is not None else []
    shown = [read_name(name) for name in ranges]
    if phrases is None or shown == ranges:
        return {}
    try:
        read = Phrases(names={**phrases.names, _RANGES: shown}, sentences=phrases.sentences)
        return dict(zip(phrases.finished(), read.finished(), strict=True))
    except ValueError:
        return {}


DEVICES_IN_FULL, FEWEST_ROWS, FEWEST_LARGE_ROWS = 1.5, 20, 10


class Context(Struct, frozen=True):
    """The whole report, as readers see it, and its causes by id."""

    report: Report
    causes: Causes

    @classmethod
    def of(cls, report: Report) -> Self:
        """That of a report."""
        return cls(as_read(report), Causes(report.causes))

    def rows(self, most: int) -> int:
        """How many rows a table of a device may have on the page: fewer where many devices share it."""
        devices = max(DEVICES_IN_FULL, len(self.report.devices))
        return max(FEWEST_ROWS, int(most * DEVICES_IN_FULL / devices))

    def shared_rows(self, most: int) -> int:
        """How many rows a table of a device may have whose rows are large: the devices share them."""
        return max(FEWEST_LARGE_ROWS, most // max(len(self.report.devices), 1))
