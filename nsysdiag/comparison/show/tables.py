"""The tables of both sides: gap groups, kernels, copies, figures and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.job import ALL, TERMINAL_ROWS, TIMES, judged, share_of_before, short, timed
from nsysdiag.comparison.show.views import changed_gap_groups, changed_kernels, entry, lone_findings
from nsysdiag.document.blocks import PAGE, TICKET, Block, Cell, Column, Entry, Limit, Name, Paragraph, Section, Table
from nsysdiag.document.columns import BYTES, FIGURE, KEY, KEYS, MARK, NAME, SIDE, SIGNED, TEXT, CellKind
from nsysdiag.document.names import brief
from nsysdiag.document.view import Causes, severity_rank
from nsysdiag.document.words import SEVERITY_ICONS, path_label
from nsysdiag.units import format_signed_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import DeviceComparison, FindingChange, KernelChange, SignatureChange
    from nsysdiag.document.drawings import LegendEntry

RUNS = CellKind("runs", words.count_label)
FIRST = 15
UNKNOWN = "It is unknown whether a change is chance if a report lacks the gap group, or its time per iteration."
UNRECORDED = "Kernels in CUDA graphs were recorded as wholes: what a side lacks by name may run in its graphs."
SIGNATURES = (
    Column("Side", TEXT, pick=True),
    *TIMES,
    Column("Verdict", MARK),
    *(Column(each, RUNS) for each in ("Gaps before", "Gaps after")),
    Column("Cause", KEYS),
    *(Column(each, NAME) for each in ("Previous operation", "Next operation", "NVTX")),
)
KERNELS = (
    Column("Kernel", NAME, head=True),
    Column("Side", TEXT, pick=True),
    *(Column(each, RUNS, limit=TICKET) for each in ("Runs before", "Runs after")),
    *(Column(each, SIDE, limit=TICKET) for each in ("Mean before", "Mean after")),
    *TIMES,
    Column("Of before", FIGURE, limit=TICKET),
    Column("Verdict", MARK),
)
COUNTS = (Column("Count before", RUNS, "count_before"), Column("Count after", RUNS, "count_after"))
OF_BOTH = (
    Column("Before", SIDE, "before_ns"),
    Column("After", SIDE, "after_ns"),
    Column("Change", SIGNED, lambda row: row.after_ns - row.before_ns),
)
COPIES = (
    Column("Operation", NAME, "operation", head=True, length=60),
    Column("Memory", TEXT, lambda row: f"{f'{row.src} → ' if row.src else ''}{row.dst or '–'}", length=120),
    *COUNTS,
    Column("Size before", BYTES, lambda row: row.bytes_before or None),
    Column("Size after", BYTES, lambda row: row.bytes_after or None),
    *OF_BOTH,
)
COLLECTIVES = (
    Column("Kind", NAME, "kind", head=True, length=60),
    *COUNTS,
    *OF_BOTH,
    Column("Exposed before", SIDE, "exposed_before_ns"),
    Column("Exposed after", SIDE, "exposed_after_ns"),
    Column("Change of exposed", SIGNED, lambda row: row.exposed_after_ns - row.exposed_before_ns),
)
METRICS = (
    Column("Number", TEXT, "title", head=True),
    Column("Before", FIGURE, lambda row: words.metric_label(row, row.before)),
    Column("After", FIGURE, lambda row: words.metric_label(row, row.after)),
    Column("Difference", FIGURE, words.metric_change),
)
FINDINGS = (
    Column("Finding", KEY, head=True),
    Column("Side", TEXT, pick=True),
    Column("Severity", TEXT, limit=PAGE),
    *TIMES,
)


def gap_groups(device: DeviceComparison, causes: Causes, *, several: bool) -> Section | None:
    """The gap groups of both sides; the terminal has a few lines for each that changed."""
    if not device.signatures:
        return None
    changed = changed_gap_groups(device)
    limit = short(several=several)
    terminal = Limit(page=0, ticket=0, summary=None, brief=0)
    caption = "Gaps between the same operations, in the same NVTX range, for a unit of work"
    blocks: list[Block] = [
        _gap_groups(caption, device.signatures, causes, ALL),
        _gap_groups("Those that changed", changed, causes, Limit(page=0, ticket=limit.ticket, summary=0, brief=0)),
        *(_gap_group(row, causes, terminal) for row in changed[:TERMINAL_ROWS]),
    ]
    if len(changed) > TERMINAL_ROWS:
        blocks.append(Paragraph(f"{len(changed) - TERMINAL_ROWS:,} more in the other formats", "quiet", terminal))
    if any(row.change.verdict == "unknown" for row in device.signatures):
        blocks.append(Paragraph(UNKNOWN, "quiet", PAGE))
    return Section("signatures", "Gap groups", blocks)


def _gap_groups(caption: str, found: Sequence[SignatureChange], causes: Causes, limit: Limit) -> Table:
    rows = [
        (
            words.status_word(row.status),
            *_times(row),
            row.count_before,
            row.count_after,
            _causes(row, causes) or None,
            brief(row.previous_op),
            brief(row.next_op),
            path_label(row.nvtx) or None,
        )
        for row in found
    ]
    note = "# in an operation's name and N in a range's name stand for a counter; … stands for text that varies."
    return Table(caption, SIGNATURES, rows, note=note, noun="kinds", first=FIRST, limit=limit)


def _times(row: SignatureChange | KernelChange, *share: object) -> tuple[object, ...]:
    """Both times, the change, its `share` and the verdict; of what a side has not recorded its time alone."""
    cells = (*timed(row.change), *share, judged(row.change))
    return (*cells[:2], *(None for _each in cells[2:])) if row.status in words.UNRECORDED else cells


def _causes(row: SignatureChange, causes: Causes) -> list[LegendEntry]:
    ids = dict.fromkeys(each for each in (row.cause_before, row.cause_after) if each)
    return [entry(each, causes) for each in ids]


def _gap_group(row: SignatureChange, causes: Causes, limit: Limit) -> Entry:
    mark = words.change_mark(row.change.verdict)
    names = " → ".join(each.label for each in _causes(row, causes))
    between = Paragraph([Name(brief(row.previous_op)), " → ", Name(brief(row.next_op))], line=True)
    return Entry(
        f"{words.status_word(row.status)}, {mark.icon} {mark.word}",
        [between, *([Paragraph([Name(names)], "quiet", line=True)] if names else [])],
        mark=format_signed_ns(row.change.change_ns),
        tone=words.tone(mark),
        limit=limit,
    )


def kernels(device: DeviceComparison, *, several: bool) -> Section | None:
    """Kernels by name; formats other than the page have those that changed."""
    if not device.kernels:
        return None
    changed = changed_kernels(device)
    hidden = any(row.status in words.UNRECORDED for row in device.kernels)
    blocks: list[Block] = [
        *([Paragraph(UNRECORDED, "quiet")] if hidden else []),
        _kernels("Kernels by name, for a unit of work", device.kernels, ALL),
        _kernels("Those that changed", changed, short(several=several)),
    ]
    return Section("kernels", "Kernels", blocks)


def _kernels(caption: str, found: Sequence[KernelChange], limit: Limit) -> Table:
    rows = [
        (
            Cell(Name(row.short_name, row.name), tag="communication" if row.communication else ""),
            words.status_word(row.status),
            row.count_before,
            row.count_after,
            row.mean_before_ns,
            row.mean_after_ns,
            *_times(row, share_of_before(row.change)),
        )
        for row in found
    ]
    return Table(caption, KERNELS, rows, noun="kernels", first=FIRST, limit=limit)


def copies(device: DeviceComparison) -> Section | None:
    """Copies and collectives of both sides."""
    if not (device.copies or device.communication):
        return None
    copied, exposed = "Copies and memory sets", "Collectives by kind for a unit of work: total and exposed time"
    blocks = [
        Table.of(f"{copied} for a unit of work", COPIES, device.copies, noun="kinds", first=FIRST, limit=ALL),
        Table.of(exposed, COLLECTIVES, device.communication, noun="kinds", first=FIRST, limit=ALL),
    ]
    return Section("copies", "Copies and communication", blocks)


def metrics(device: DeviceComparison) -> Section | None:
    """How work was launched, and how the GPU was used."""
    tables = [
        Table.of(caption, METRICS, rows, sortable=False, limit=PAGE)
        for caption, rows in (
            ("How the work was launched", device.launch),
            ("How the GPU was used, as shares of the window", device.utilization),
        )
        if rows
    ]
    return Section("metrics", "Launches and utilization", tables) if tables else None


def findings(device: DeviceComparison, causes: Causes, *, several: bool) -> Section | None:
    """Findings of both sides; formats other than the page have those of one side alone."""
    if not device.findings:
        return None
    hidden = any(row.status == "not_compared" for row in device.findings)
    note = "Findings of a cause are not compared if some captures lack its evidence." if hidden else ""
    caption = "Findings of both sides by their cost for a unit of work"
    blocks = [
        Table(caption, FINDINGS, _findings(device.findings, causes), note, "findings", first=FIRST, limit=ALL),
        Table(
            "Those of one side only",
            FINDINGS,
            _findings(lone_findings(device), causes),
            noun="findings",
            limit=short(several=several),
        ),
    ]
    return Section("findings", "Findings", blocks)


def _findings(found: Sequence[FindingChange], causes: Causes) -> list[tuple[object, ...]]:
    """Titles in the colour of their cause. Both severities with their signs, one where they are the same; in the order
    of the worse one."""
    rows: list[tuple[object, ...]] = []
    for row in found:
        severities = dict.fromkeys(each for each in (row.severity_before, row.severity_after) if each)
        shown = " → ".join(f"{SEVERITY_ICONS.get(each, '')} {each}".strip() for each in severities)
        rows.append(
            (
                replace(entry(row.cause, causes), label=row.title),
                words.status_word(row.status),
                Cell(shown or None, order=min(map(severity_rank, severities), default=9)),
                row.before_ns,
                row.after_ns,
                None if row.status in ("not_compared", *words.UNRECORDED) else row.after_ns - row.before_ns,
            )
        )
    return rows
