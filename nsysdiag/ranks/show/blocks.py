"""Ranks, or the devices of one trace, compared: how even their work is, who is late to collectives, and why."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nsysdiag.diagnosis.entries import JUDGED_TIME, NAMED, account_chart, account_table, accounts
from nsysdiag.diagnosis.show import action
from nsysdiag.document import blocks as b
from nsysdiag.document.columns import (
    BAR,
    BYTES,
    CODE,
    COUNT,
    NAME,
    SHARE,
    STACK,
    TEXT,
    TIME,
    TIMES,
    RecordColumn,
    RecordTable,
    columns,
    part_of,
    share_of,
)
from nsysdiag.document.drawings import LegendEntry, StackedBar, legend_entry, window_stack
from nsysdiag.document.view import PARTS, Causes, Context, as_read, by_time
from nsysdiag.document.view import share_of as some
from nsysdiag.document.words import confidence_word, counted, instant
from nsysdiag.findings.facts import brief_of
from nsysdiag.findings.show import anchors, items_of, left_out, rows_of
from nsysdiag.ranks.facts import CollectiveGroup, RankComparison, RankRow, RankWait, Straggler
from nsysdiag.units import format_bytes, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ranks.report import RanksReport


# What holds a job of several ranks up: the headline, what to fix first, each rank at a glance, the findings.

MOST_RANKS = 64
ON_TERMINAL = 8
NOUN = "ranks"
RANK = replace(NAMED, title="Rank", length=60)


def job(report: RanksReport) -> list[b.Section]:
    """The diagnosis and the findings of the job; nothing for a report without one."""
    found = report.diagnosis
    if found is None:
        return []
    all_of = len(report.judged)
    judged_time = {each.key: [each] for each in report.judged}
    unseen = bool(report.traces) and all(trace.host_unseen for trace in report.traces)
    limit = b.Limit(page=MOST_RANKS, ticket=0, summary=ON_TERMINAL, brief=ON_TERMINAL)
    judged = b.Section(
        "diagnosis",
        "Diagnosis",
        [
            b.Paragraph(found.headline, "verdict"),
            *action(found, report.findings),
            b.Paragraph(JUDGED_TIME, "quiet", b.PAGE),
            replace(account_chart(accounts(report.judged), host_unseen=unseen), limit=b.EVERYWHERE),
            *account_table(judged_time, "Ranks in the judged time", limit, RANK, NOUN, host_unseen=unseen),
            *account_table(judged_time, "", replace(b.MARKDOWN, ticket=MOST_RANKS), RANK, NOUN, host_unseen=unseen),
        ],
    )
    if not report.findings:
        return [judged]
    items = items_of(report.findings, all_of, NOUN)
    findings: list[b.Block] = [
        replace(rows_of(brief_of(found, report.findings), all_of, NOUN), limit=b.TERMINAL),
        *([b.Paragraph(left, limit=b.TERMINAL)] if (left := left_out(found, report.findings)) else []),
        replace(items, ids=anchors(report.findings), limit=b.Limit(summary=0, brief=0)),
    ]
    return [judged, b.Section("findings", "Findings", findings)]


TOP_RANKS, TOP_STRAGGLERS, TOP_LINES, TOP_ROWS, MOST_ROWS, MOST_REASONS = 64, 5, 8, 20, 50, 5
NOT_TICKET = b.Limit(ticket=0)
RANKS = {
    "compute_ns": ("Compute", "Compute"),
    "exposed_comm_ns": ("Communication", "Exposed communication"),
    "exposed_copy_ns": ("Copies", "Exposed copies"),
    "idle_ns": ("Idle", "Idle"),
}
"""The parts of a rank's time, with their titles as shares and in Markdown."""
TRACES = (
    b.Column("File", NAME, lambda trace: b.Cell(trace.file, note="; ".join(trace.warnings)), head=True, length=120),
    b.Column("Size", BYTES, "size_bytes"),
    b.Column("Captured with", TEXT, lambda trace: trace.nsys_version or "unknown version", length=40),
    b.Column("Fingerprint", CODE, "fingerprint", length=80),
)
GROUPS = (
    b.Column("Kind (communicator)", TEXT, lambda group: b.Cell(group.kind, tag=group.communicator or ""), head=True),
    b.Column("Ranks", TEXT, lambda group: _first_ranks(group.ranks), length=160),
    b.Column("Count", COUNT, "count"),
    b.Column("Transfer", TIME, "transfer_ns"),
    b.Column("Waits", TIME, "wait_ns"),
    b.Column("Ends within", TIME, "spread_ns"),
    b.Column("Late", COUNT, "late"),
)


def devices(context: Context) -> b.Section | None:
    """The devices of one trace; None if there is one, or nothing that they have in common."""
    found = context.report.ranks
    if found is None:
        return None
    longest = max((rank.span_ns for rank in found.ranks), default=0)
    span = f"{BASES.get(found.basis, found.basis)} At most {format_ns(longest)}."
    scope = b.SectionScope(found.basis if found.basis in BASES else "window", span)
    gist = f"{counted(len(found.ranks), 'GPU')} compared, {counted(len(found.stragglers), 'straggler')}"
    return b.Section("ranks", DEVICES_TITLE, rank_blocks(found, context.causes, brief=True), gist, scope)


def sections(report: RanksReport) -> list[b.Section]:
    """The document of a comparison of ranks: the ranks, and the traces that they come from."""
    report = as_read(report)
    warnings = [f"{trace.file}: {warning}" for trace in report.traces for warning in trace.warnings]
    note = "The files in the order given; the clock is that of the first."
    return [
        *job(report),
        b.Section("ranks", "Ranks", rank_blocks(report.comparison, Causes(report.causes))),
        b.Section(
            "traces",
            "Trace health",
            [
                b.Lines(warnings, b.NOT_PAGE, "note"),
                b.Table.of("Traces", TRACES, report.traces, note=note, limit=b.PAGE),
            ],
        ),
    ]


def files(report: RanksReport) -> list[b.Part]:
    """What made the comparison, and of which files."""
    named = ((" · ", b.Name(trace.file), f" ({format_bytes(trace.size_bytes)})") for trace in report.traces)
    return [f"{report.tool.name} {report.tool.version}", *(part for parts in named for part in parts)]


def rank_blocks(found: RankComparison, causes: Causes, *, brief: bool = False) -> list[b.Block]:
    """In the `brief` form, the terminal shows the ranks that are late most and why, without the pairs of ranks."""
    limit = b.Limit(page=MOST_ROWS, ticket=TOP_ROWS, summary=0 if brief else TOP_LINES, brief=0)
    basis = BASES.get(found.basis, found.basis)
    facts = [imbalance_sentence(found), clock_sentence(found)]
    facts += [f"Not matched: {line}" for line in found.unmatched]
    return [
        b.Paragraph(found.sentence, "verdict"),
        b.Lines([basis, *facts], b.TICKET if brief else b.Limit(summary=TOP_LINES)),
        *([b.Lines([basis, *_how_sure(found)], b.TERMINAL)] if brief else []),
        _ranks(found),
        _stragglers(found, causes),
        *([] if brief else [_late(found, causes)]),
        _waits(found, causes, limit),
        _groups(found, limit),
    ]


def _how_sure(found: RankComparison) -> list[str]:
    """How sure the reason is of the rank that is late most. The sentence says what it had more of than others. What it
    did while others waited is in the full form only: two such lists side by side look like a contradiction."""
    return [
        f"Why {late.rank} is late is {confidence_word(late.confidence)}."
        for late in found.stragglers[:1]
        if late.meanwhile
    ]


def _ranks(found: RankComparison) -> b.Table:
    longest = max((row.wait_ns for row in found.ranks), default=0)
    return b.Table.of(
        "Each rank in the time that is compared",
        (
            b.Column("Rank", NAME, "rank", head=True, length=60),
            b.Column("Time", STACK, _divided, limit=b.PAGE),
            *(b.Column(title, TIME, partial(_as_share, name), limit=NOT_TICKET) for name, (title, _) in RANKS.items()),
            *(
                b.Column(title, TIME, partial(_with_share, name), limit=b.MARKDOWN)
                for name, (_, title) in RANKS.items()
            ),
            b.Column("Waited", TIME, "wait_ns", strong=True),
            b.Column("Bar", BAR, part_of("wait_ns", longest), limit=b.PAGE),
            b.Column("Late", COUNT, lambda row: row.late or None),
            b.Column("By", TIME, lambda row: row.late_ns if row.late else None),
        ),
        found.ranks,
        note="Waited: inside matched collectives, beyond the time of the last rank.",
        noun="ranks",
        legend=[LegendEntry(label, part, "") for part, label in PARTS.values()],
        limit=b.Limit(summary=TOP_RANKS, brief=TOP_RANKS),
    )


def _divided(row: RankRow) -> StackedBar:
    times = (getattr(row, name) for name in RANKS)
    return StackedBar("How the time of this rank divides", window_stack(times), row.span_ns)


def _as_share(name: str, row: RankRow) -> b.Cell:
    return b.Cell(getattr(row, name), share_of(row.span_ns))


def _with_share(name: str, row: RankRow) -> b.Cell:
    ns = getattr(row, name)
    return b.Cell(ns, tag=format_share(ns, row.span_ns))


def _stragglers(found: RankComparison, causes: Causes) -> b.Table:
    return b.Table.of(
        "Late ranks, and why",
        (
            b.Column("Rank", NAME, "rank", head=True, length=60),
            b.Column("Late", COUNT, lambda late: b.Cell(late.late, tag=f"of {late.of:,}")),
            b.Column("In all", TIME, "late_ns", strong=True),
            b.Column("Worst", TIME, lambda late: b.Cell(late.worst_ns, tag=f"at {instant(late.worst_start_ns)}")),
            b.Column("Others waited", TIME, "caused_ns"),
            b.Column("Confidence", SHARE, lambda late: b.Cell(late.confidence, tag=confidence_word(late.confidence))),
            b.Column("More than others", TIMES, lambda late: _reasons(late.more, causes)),
            b.Column("While they waited", TIMES, lambda late: _reasons(late.meanwhile, causes)),
        ),
        found.stragglers,
        note="More than others: compared with the median rank since both were in step. While they waited: more than "
        "half of the others.",
        limit=b.TICKET,
    )


def _late(found: RankComparison, causes: Causes) -> b.Lines:
    lines = [
        line
        for late in found.stragglers
        for line in (
            straggler_sentence(late),
            *([f"more than others: {reasons(late.more, causes)}"] if late.more else []),
            *([f"while they waited: {reasons(late.meanwhile, causes)}"] if late.meanwhile else []),
        )
    ]
    return b.Lines(lines, b.Limit(page=0, ticket=0, summary=3 * TOP_STRAGGLERS))


def _waits(found: RankComparison, causes: Causes, limit: b.Limit) -> b.Table:
    several = b.Cell("no single rank", TEXT)
    return b.Table.of(
        "Which rank waits for which",
        (
            b.Column("Rank", NAME, "rank", head=True, length=60),
            b.Column("Waited for", NAME, lambda wait: wait.late_rank or several, length=60),
            b.Column("Time", TIME, "wait_ns", strong=True),
            b.Column("Because of", TIMES, lambda wait: _reasons(wait.causes, causes)),
        ),
        found.waits,
        note="Waits inside collectives, and why the other rank was late.",
        noun="waits",
        order="that are longest",
        limit=limit,
    )


def _groups(found: RankComparison, limit: b.Limit) -> b.Table:
    note = "Transfer: the sum of the shortest run of each collective. Late: collectives with a late rank."
    return b.Table.of("Collectives that were matched", GROUPS, found.groups, note=note, noun="kinds", limit=limit)


def _reasons(times: dict[str, int], causes: Causes) -> list[tuple[LegendEntry, int]] | None:
    """Times by work or cause, most first; those after the first few together."""
    rows = [(legend_entry(some(name, ns, causes)), ns) for name, ns in by_time(times)]
    rest = sum(ns for _entry, ns in rows[MOST_REASONS:])
    return [*rows[:MOST_REASONS], *([(LegendEntry("Others", "idle", ""), rest)] if rest else [])] or None


def _first_ranks(ranks: Sequence[str]) -> str:
    """Ranks by name; of many the first ones and a number."""
    more = f" and {len(ranks) - MOST_NAMED:,} more" if len(ranks) > MOST_NAMED else ""
    return ", ".join(ranks[:MOST_NAMED]) + more


# In sentences.

MOST_SAID, LEAST_SAID, MOST_NAMED = 3, 0.01, 6
TITLE = "Rank comparison"
DEVICES_TITLE = "GPU comparison"
COMPARED = {
    "compute_ns": "compute",
    "exposed_comm_ns": "exposed communication",
    "exposed_copy_ns": "exposed copies",
    "idle_ns": "idle",
}
BASES = {
    "collectives": "From the end of the first to the end of the last collective common to all ranks.",
    "iterations": "From the first to the last iteration.",
    "window": "Each rank's whole window: no collective common to all ranks was found.",
}


def imbalance_sentence(found: RankComparison) -> str:
    """How far the ranks are from even, and who has most and least to do."""
    compared = {label: found.imbalance[name] for name, label in COMPARED.items() if name in found.imbalance}
    shares = [f"{label} {format_share(share, 1)}" for label, share in compared.items()]
    ends = f"; {found.slowest} has most time of its own, {found.fastest} least" if found.slowest else ""
    return f"Imbalance, (largest - smallest) / mean: {', '.join(shares)}{ends}."


def straggler_sentence(late: Straggler) -> str:
    """How often and how long a rank was late."""
    return (
        f"{late.rank}: late for {late.late:,} of {counted(late.of, 'collective')}, by {format_ns(late.late_ns)} in all "
        f"and {format_ns(late.worst_ns)} at worst, at {instant(late.worst_start_ns)}; the others waited "
        f"{format_ns(late.caused_ns)} for it ({confidence_word(late.confidence)})."
    )


def reasons(times: dict[str, int], causes: Causes) -> str:
    """Times by work or cause, most first, with their shares: `Host code 1.20 s (80.0%), Compute 300 ms (20.0%)`."""
    whole = sum(times.values())
    rows = [(some(name, ns, causes).label, ns) for name, ns in by_time(times)]
    shown = [row for at, row in enumerate(rows[:MOST_SAID]) if not at or row[1] >= LEAST_SAID * whole]
    told = [f"{label} {format_ns(ns)} ({format_share(ns, whole)})" for label, ns in shown]
    rest = sum(ns for _, ns in rows[len(shown) :])
    return ", ".join([*told, *([f"{format_ns(rest)} of others"] if rest else [])]) or "nothing known"


def clock_sentence(found: RankComparison) -> str:
    """How the clocks were brought together, with the error of it."""
    if found.clock_error_ns is None:
        return f"Clocks: {found.clock}; their offset is unknown, so late ranks are not reported across them."
    several = len({row.file for row in found.ranks}) > 1
    error = f", give or take {format_ns(found.clock_error_ns)}" if found.clock_error_ns or several else ""
    return f"Clocks: {found.clock}{error}."


# The tables of a comparison of ranks.


def _listed(times: dict[str, int]) -> str:
    return ";".join(f"{name}:{ns}" for name, ns in by_time(times))


RANK_COLUMNS = columns(
    RankRow,
    """
    device rank file offset_ns offset_error_ns span_start_ns span_ns compute_ns exposed_comm_ns exposed_copy_ns idle_ns
    collectives matched transfer_ns wait_ns late late_ns caused_ns drift_ppm
    """,
)
_TABLES: tuple[RecordTable[RankComparison, Any], ...] = (
    RecordTable("ranks", RANK_COLUMNS, lambda found: found.ranks),
    RecordTable(
        "collectives",
        (
            *columns(CollectiveGroup, "kind communicator"),
            RecordColumn[CollectiveGroup]("ranks", "text", lambda group: ";".join(group.ranks)),
            *columns(CollectiveGroup, "count transfer_ns wait_ns spread_ns late"),
        ),
        lambda found: found.groups,
    ),
    RecordTable(
        "stragglers",
        (
            *columns(Straggler, "rank late of late_ns caused_ns worst_start_ns worst_ns confidence"),
            RecordColumn[Straggler]("more_ns", "text", lambda late: _listed(late.more)),
            RecordColumn[Straggler]("meanwhile_ns", "text", lambda late: _listed(late.meanwhile)),
        ),
        lambda found: found.stragglers,
    ),
    RecordTable(
        "waits",
        (
            *columns(RankWait, "rank late_rank wait_ns"),
            RecordColumn[RankWait]("causes_ns", "text", lambda wait: _listed(wait.causes)),
        ),
        lambda found: found.waits,
    ),
)
BY_NAME = {table.name: table for table in _TABLES}
