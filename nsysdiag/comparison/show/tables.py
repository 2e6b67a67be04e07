"""The tables of both sides: the parts of the time, gap groups, kernels, copies, figures and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nsysdiag.comparison import facts
from nsysdiag.comparison.show import job, views, words
from nsysdiag.document import blocks as b
from nsysdiag.document.columns import BYTES, FIGURE, KEY, KEYS, MARK, NAME, SIDE, SIGNED, TEXT, CellKind
from nsysdiag.document.names import brief
from nsysdiag.document.view import Causes, severity_rank
from nsysdiag.document.words import SEVERITY_ICONS, path_label
from nsysdiag.units import format_signed_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.document.drawings import LegendEntry

# What changed: the parts of the time and the idle time by cause, before and after.

TOP_CAUSES, BRIEF_CAUSES = 10, 4
INTERVAL = "95% interval"
RULE = (
    "Less time is better. A change counts if its 95% interval excludes 0 and it exceeds “counts above”, the effect of "
    "chance or drift alone."
)
TOGETHER = " Devices are judged together: if only one changed, its interval must exclude 0 by more."
BOUNDS = "Bounds are predicted for the whole length only, not for parts and causes."
ROOTS = (
    "By root cause: each wait is charged to what the thread that ended it did. The same idle time, divided differently"
)
PARTS = (b.Column("Part", KEY, head=True), *job.TIMES, b.Column("Of before", FIGURE))
PER_UNIT = (
    b.Column("Part", KEY, head=True),
    *job.TIMES,
    b.Column("Of before", FIGURE, spare=True),
    b.Column(INTERVAL, FIGURE, spare=True),
    b.Column("Verdict", MARK),
)


def changes(device: facts.DeviceComparison, causes: Causes, *, several: bool) -> b.Section | None:
    """The parts of the time, and the idle time by cause: each level adds up to the one above."""
    parts = _shown_parts(device)
    if not parts and not device.ledger:
        return None
    predicted = device.unit.kind in facts.PREDICTED
    columns = _titled(PER_UNIT, device)
    blocks = [
        b.Table("Time for a unit of work", columns, _overview(device, causes), limit=b.NOT_PAGE),
        _parts("The parts of the time; they add up to the length", "Part", parts, device, causes),
        *_folded("The idle time by cause; the causes add up to it", device.ledger, device, causes),
        *(_folded(ROOTS, device.root_ledger, device, causes) if views.has_roots(device) else []),
        b.Paragraph(BOUNDS if predicted else RULE + (TOGETHER if several else ""), "quiet", b.PAGE),
    ]
    return b.Section("changes", "What changed", blocks)


def _shown_parts(device: facts.DeviceComparison) -> list[facts.PartChange]:
    return [row for row in device.parts if row.change.before_ns or row.change.after_ns]


def in_brief(comparison: facts.Comparison) -> list[b.Block]:
    """With a prediction, the parts and the largest causes of the slowest device, whose length is above."""
    of_all, causes = comparison.job, Causes(comparison.causes)
    slowest = (of_all.device_before, of_all.device_after) if of_all is not None else ()
    found = [each for each in comparison.devices if each.unit.kind in facts.PREDICTED and each.key in slowest]
    if not found:
        return []
    device = found[-1]
    rows = _titles(device, causes, views.split(device.ledger, device)[0][:BRIEF_CAUSES])
    cells = [(label, *_ns(change), job.share_of_before(change)) for label, change in rows]
    return [b.Table("", PARTS, cells, sortable=False, limit=b.EVERYWHERE)]


def _titles(
    device: facts.DeviceComparison, causes: Causes, shown: Sequence[facts.PartChange]
) -> list[tuple[str, facts.Change]]:
    """The parts, and these causes of the idle time, by their titles."""
    parts = [(views.title(row.id, causes), row.change) for row in _shown_parts(device)]
    return [*parts, *((f"… {views.title(row.id, causes)}", row.change) for row in shown)]


def _overview(device: facts.DeviceComparison, causes: Causes) -> list[tuple[object, ...]]:
    """Length, parts, and under the idle time its causes, of which small ones share a row."""
    shown, tiny = views.split(device.ledger, device)
    rows = [("Length", device.length), *_titles(device, causes, shown[:TOP_CAUSES])]
    found: list[tuple[object, ...]] = [
        (label, *_ns(change), job.share_of_before(change), words.interval_ns(change), job.judged(change))
        for label, change in rows
    ]
    if rest := [row.change for row in (*shown[TOP_CAUSES:], *tiny)]:
        sums = (sum(each) for each in zip(*map(_ns, rest), strict=True))
        found.append((f"… {len(rest):,} more", *sums, None, None, None))
    return found


def _ns(change: facts.Change) -> tuple[int, int, int]:
    """The cells of TIMES."""
    return change.before_ns, change.after_ns, change.change_ns


def _titled(columns: Sequence[b.Column], device: facts.DeviceComparison) -> list[b.Column]:
    """The columns, with that of the interval called what it is."""
    title = words.interval_title(device.unit)
    return [replace(column, title=title) if column.title == INTERVAL else column for column in columns]


def _parts(
    caption: str,
    head: str,
    rows: Sequence[facts.PartChange],
    device: facts.DeviceComparison,
    causes: Causes,
    **more: bool,
) -> b.Table:
    columns = (
        b.Column(head, KEY, lambda row: views.entry(row.id, causes), head=True),
        *job.times("change."),
        b.Column(INTERVAL, FIGURE, lambda row: b.Cell(words.interval_ns(row.change), order=row.change.low_ns or 0)),
        b.Column("Counts above", SIDE, "change.least_ns"),
        b.Column("Verdict", MARK, lambda row: job.judged(row.change)),
    )
    return b.Table.of(caption, _titled(columns, device), rows, limit=b.PAGE, **more)


def _folded(
    caption: str, rows: Sequence[facts.PartChange], device: facts.DeviceComparison, causes: Causes
) -> list[b.Block]:
    shown, tiny = views.split(rows, device)
    if not shown or len(tiny) < 2:
        shown, tiny = list(rows), []
    note = "Causes with less than half a percent of the length on both sides, and without a change that counts"
    table = _parts(note, "Cause", tiny, device, causes, sortable=False)
    return [
        _parts(caption, "Cause", shown, device, causes),
        b.Details(f"{len(tiny):,} more with next to no time on either side", [table]),
    ]


# Rows of both sides.

RUNS = CellKind("runs", words.count_label)
FIRST = 15
NO_CHANGE = (facts.NOT_COMPARED, *facts.UNSEEN)
UNKNOWN = "It is unknown whether a change is chance if a report lacks the gap group, or its time per iteration."
UNRECORDED = "Kernels in CUDA graphs were recorded as wholes: what a side lacks by name may run in its graphs."


def _of_change(read: Callable[[facts.Change], object]) -> Callable[[Any], object]:
    """What is read of the change of a row; None of one that a side has not recorded."""
    return lambda row: None if row.status in facts.UNSEEN else read(row.change)


HAS = b.Column("Side", TEXT, lambda row: words.status_word(row.status), pick=True)
TIMED = (*job.times("change.")[:2], b.Column("Change", SIGNED, _of_change(job.changed)))
JUDGED = b.Column("Verdict", MARK, _of_change(job.judged))
KERNELS = (
    b.Column(
        "Kernel",
        NAME,
        lambda row: b.Cell(b.Name(row.short_name, row.name), tag="communication" if row.communication else ""),
        head=True,
    ),
    HAS,
    b.Column("Runs before", RUNS, "count_before", limit=b.TICKET),
    b.Column("Runs after", RUNS, "count_after", limit=b.TICKET),
    b.Column("Mean before", SIDE, "mean_before_ns", limit=b.TICKET),
    b.Column("Mean after", SIDE, "mean_after_ns", limit=b.TICKET),
    *TIMED,
    b.Column("Of before", FIGURE, _of_change(job.share_of_before), limit=b.TICKET),
    JUDGED,
)
COUNTS = (b.Column("Count before", RUNS, "count_before"), b.Column("Count after", RUNS, "count_after"))
OF_BOTH = (
    b.Column("Before", SIDE, "before_ns"),
    b.Column("After", SIDE, "after_ns"),
    b.Column("Change", SIGNED, lambda row: row.after_ns - row.before_ns),
)
COPIES = (
    b.Column("Operation", NAME, "operation", head=True, length=60),
    b.Column("Memory", TEXT, lambda row: f"{f'{row.src} → ' if row.src else ''}{row.dst or '–'}", length=120),
    *COUNTS,
    b.Column("Size before", BYTES, lambda row: row.bytes_before or None),
    b.Column("Size after", BYTES, lambda row: row.bytes_after or None),
    *OF_BOTH,
)
COLLECTIVES = (
    b.Column("Kind", NAME, "kind", head=True, length=60),
    *COUNTS,
    *OF_BOTH,
    b.Column("Exposed before", SIDE, "exposed_before_ns"),
    b.Column("Exposed after", SIDE, "exposed_after_ns"),
    b.Column("Change of exposed", SIGNED, lambda row: row.exposed_after_ns - row.exposed_before_ns),
)
METRICS = (
    b.Column("Number", TEXT, "title", head=True),
    b.Column("Before", FIGURE, lambda row: words.metric_label(row, row.before)),
    b.Column("After", FIGURE, lambda row: words.metric_label(row, row.after)),
    b.Column("Difference", FIGURE, words.metric_change),
)


def gap_groups(device: facts.DeviceComparison, causes: Causes, *, several: bool) -> b.Section | None:
    """The gap groups of both sides; the terminal has a few lines for each that changed."""
    if not device.signatures:
        return None
    changed = views.changed_gap_groups(device)
    limit = job.short(several=several)
    terminal = b.Limit(page=0, ticket=0, summary=None, brief=0)
    caption = "Gaps between the same operations, in the same NVTX range, for a unit of work"
    blocks: list[b.Block] = [
        _gap_groups(caption, device.signatures, causes, job.ALL),
        _gap_groups("Those that changed", changed, causes, b.Limit(page=0, ticket=limit.ticket, summary=0, brief=0)),
        *(_gap_group(row, causes, terminal) for row in changed[: job.TERMINAL_ROWS]),
    ]
    if len(changed) > job.TERMINAL_ROWS:
        blocks.append(b.Paragraph(f"{len(changed) - job.TERMINAL_ROWS:,} more in the other formats", "quiet", terminal))
    if any(row.change.verdict == "unknown" for row in device.signatures):
        blocks.append(b.Paragraph(UNKNOWN, "quiet", b.PAGE))
    return b.Section("signatures", "Gap groups", blocks)


def _gap_groups(caption: str, found: Sequence[facts.SignatureChange], causes: Causes, limit: b.Limit) -> b.Table:
    columns = (
        HAS,
        *TIMED,
        JUDGED,
        b.Column("Gaps before", RUNS, "count_before"),
        b.Column("Gaps after", RUNS, "count_after"),
        b.Column("Cause", KEYS, lambda row: _causes(row, causes) or None),
        b.Column("Previous operation", NAME, lambda row: brief(row.previous_op)),
        b.Column("Next operation", NAME, lambda row: brief(row.next_op)),
        b.Column("NVTX", NAME, lambda row: path_label(row.nvtx)),
    )
    note = "# in an operation's name and N in a range's name stand for a counter; … stands for text that varies."
    return b.Table.of(caption, columns, found, note=note, noun="kinds", first=FIRST, limit=limit)


def _causes(row: facts.SignatureChange, causes: Causes) -> list[LegendEntry]:
    ids = dict.fromkeys(each for each in (row.cause_before, row.cause_after) if each)
    return [views.entry(each, causes) for each in ids]


def _gap_group(row: facts.SignatureChange, causes: Causes, limit: b.Limit) -> b.Entry:
    mark = words.change_mark(row.change.verdict)
    names = " → ".join(each.label for each in _causes(row, causes))
    between = b.Paragraph([b.Name(brief(row.previous_op)), " → ", b.Name(brief(row.next_op))], line=True)
    return b.Entry(
        f"{words.status_word(row.status)}, {mark.icon} {mark.word}",
        [between, *([b.Paragraph([b.Name(names)], "quiet", line=True)] if names else [])],
        mark=format_signed_ns(row.change.change_ns),
        tone=words.tone(mark),
        limit=limit,
    )


def kernels(device: facts.DeviceComparison, *, several: bool) -> b.Section | None:
    """Kernels by name; formats other than the page have those that changed."""
    if not device.kernels:
        return None
    changed = views.changed_kernels(device)
    hidden = any(row.status in facts.UNSEEN for row in device.kernels)
    caption = "Kernels by name, for a unit of work"
    blocks: list[b.Block] = [
        *([b.Paragraph(UNRECORDED, "quiet")] if hidden else []),
        b.Table.of(caption, KERNELS, device.kernels, noun="kernels", first=FIRST, limit=job.ALL),
        b.Table.of(
            "Those that changed", KERNELS, changed, noun="kernels", first=FIRST, limit=job.short(several=several)
        ),
    ]
    return b.Section("kernels", "Kernels", blocks)


def copies(device: facts.DeviceComparison) -> b.Section | None:
    """Copies and collectives of both sides."""
    if not (device.copies or device.communication):
        return None
    copied, exposed = "Copies and memory sets", "Collectives by kind for a unit of work: total and exposed time"
    blocks = [
        b.Table.of(f"{copied} for a unit of work", COPIES, device.copies, noun="kinds", first=FIRST, limit=job.ALL),
        b.Table.of(exposed, COLLECTIVES, device.communication, noun="kinds", first=FIRST, limit=job.ALL),
    ]
    return b.Section("copies", "Copies and communication", blocks)


def metrics(device: facts.DeviceComparison) -> b.Section | None:
    """How work was launched, and how the GPU was used."""
    tables = [
        b.Table.of(caption, METRICS, rows, sortable=False, limit=b.PAGE)
        for caption, rows in (
            ("How the work was launched", device.launch),
            ("How the GPU was used, as shares of the window", device.utilization),
        )
        if rows
    ]
    return b.Section("metrics", "Launches and utilization", tables) if tables else None


def findings(device: facts.DeviceComparison, causes: Causes, *, several: bool) -> b.Section | None:
    """Findings of both sides; formats other than the page have those of one side alone."""
    if not device.findings:
        return None
    hidden = any(row.status == facts.NOT_COMPARED for row in device.findings)
    note = "Findings of a cause are not compared if some captures lack its evidence." if hidden else ""
    caption = "Findings of both sides by their cost for a unit of work"
    limit = job.short(several=several)
    columns = (  # titles in the colour of their cause
        b.Column("Finding", KEY, lambda row: replace(views.entry(row.cause, causes), label=row.title), head=True),
        HAS,
        b.Column("Severity", TEXT, _severity, limit=b.PAGE),
        *OF_BOTH[:2],
        b.Column("Change", SIGNED, lambda row: None if row.status in NO_CHANGE else row.after_ns - row.before_ns),
    )
    blocks = [
        b.Table.of(caption, columns, device.findings, note=note, noun="findings", first=FIRST, limit=job.ALL),
        b.Table.of("Those of one side only", columns, views.lone_findings(device), noun="findings", limit=limit),
    ]
    return b.Section("findings", "Findings", blocks)


def _severity(row: facts.FindingChange) -> b.Cell:
    """Both with their signs, one if they are the same; in the order of the worse one."""
    found = dict.fromkeys(each for each in (row.severity_before, row.severity_after) if each)
    shown = " → ".join(f"{SEVERITY_ICONS.get(each, '')} {each}".strip() for each in found)
    return b.Cell(shown or None, order=min(map(severity_rank, found), default=9))
