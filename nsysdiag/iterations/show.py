"""The iterations side by side: how long each is, what it is made of, and what the slow ones have more of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import blocks as b
from nsysdiag.document import words
from nsysdiag.document.columns import COUNT, INDEX, MOMENT, PARTS, SHARE, TEXT, TIME, TIMES
from nsysdiag.document.drawings import Bar, BarChart, LegendEntry, bottleneck_entry, legend_entry
from nsysdiag.document.view import Causes, by_time, iteration_shares, more_shares
from nsysdiag.units import format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.document.view import Context
    from nsysdiag.iterations.facts import Iteration, IterationReport, ServingPhase
    from nsysdiag.report import DeviceReport

MAX_BARS, TOP_SLOW = 200, 10
TOLD_PARTS = 4
LASTS = "Each iteration lasts from its first operation on the device to that of the next one."


def section(device: DeviceReport, context: Context) -> b.Section | None:
    """None if no step of the program was found."""
    found, causes = device.iterations, context.causes
    if found is None:
        return None
    left_out = words.left_out_sentence(found)
    said = words.kinds_sentence(found), words.slow_sum(found), words.inner_sentence(found), words.doubt_sentence(found)
    more = [text for text in said if text]
    about = f"{words.iterations_found(found)}. {LASTS}" + (f" {left_out}." if left_out else "")
    slow = [words.slow_sentence(each, causes) for each in found.slow]
    return b.Section(
        "iterations",
        words.ITERATION_TITLES[found.kind],
        [
            b.Paragraph(words.iterations_sentence(found), limit=b.NOT_PAGE),
            *([b.Lines(more, b.Limit(ticket=0, brief=0))] if more else []),
            b.Lines(slow, b.Limit(page=0, ticket=0, summary=3, brief=1)),
            b.FigureRow(
                [
                    b.Fact(words.ITERATION_TITLES[found.kind], found.count, COUNT),
                    b.Fact("p50", found.p50_ns, TIME),
                    b.Fact("p95", found.p95_ns, TIME),
                    b.Fact("Worst", found.worst_ns, TIME),
                    b.Fact("Left out of these", len(found.left_out), COUNT),
                ],
                b.PAGE,
            ),
            b.Paragraph(about, tone="quiet", limit=b.PAGE),
            *_serving(found),
            *_lengths(found, context),
            _slow(found, causes) if slow else b.Paragraph("None is much longer than the median.", limit=b.PAGE),
        ],
        f"{format_count(found.count)}, median {format_ns(found.p50_ns)}, p95 {format_ns(found.p95_ns)}, "
        f"worst {format_ns(found.worst_ns)}; {format_count(found.slow_count)} slow",
    )


def _serving(found: IterationReport) -> list[b.Block]:
    """The steps of a server by phase, and by size; none if no phase shows."""
    if not found.serving:
        return []
    columns = (
        b.Column("Phase", TEXT, "phase", head=True),
        b.Column("Steps", COUNT, "count"),
        b.Column("Share", SHARE, "share", strong=True),
        b.Column("Median", TIME, "median_ns", strong=True),
        b.Column("Tokens a step", COUNT, "tokens"),
        b.Column("Idle", SHARE, lambda each: sum(each.idle.values()) / max(each.total_ns, 1)),
        b.Column("Idle by bottleneck", TIMES, _idle_parts),
        b.Column("Shown by", TEXT, lambda each: words.SHOWN_BY.get(each.shown_by, each.shown_by) or None),
    )
    note = "Share of the time of steady steps; idle time is of all steps of the phase."
    phases = b.Table.of("Steps of the server", columns, found.serving, note=note, limit=b.Limit(brief=0))
    sizes = [(each.phase, batch) for each in found.serving for batch in each.batches]
    by_size = (
        b.Column("Phase", TEXT, lambda row: row[0], head=True),
        b.Column("Requests", COUNT, lambda row: row[1].requests),
        b.Column("Graph", INDEX, lambda row: row[1].graph),
        b.Column("Steps", COUNT, lambda row: row[1].count),
        b.Column("Median", TIME, lambda row: row[1].median_ns, strong=True),
    )
    limit = b.Limit(summary=0, brief=0)
    return [phases, *([b.Table.of("Steps by size", by_size, sizes, limit=limit)] if sizes else [])]


def _idle_parts(each: ServingPhase) -> list[tuple[LegendEntry, int]] | None:
    return [(bottleneck_entry(name), ns) for name, ns in by_time(each.idle)[:TOLD_PARTS]] or None


def _slow(found: IterationReport, causes: Causes) -> b.Table:
    starts = {row.index: row.start_ns for row in found.rows}
    columns = (
        b.Column("Iteration", INDEX, "index", head=True),
        b.Column("Start", MOMENT, lambda slow: starts.get(slow.index), limit=b.PAGE),
        b.Column("Length", TIME, lambda slow: found.p50_ns + slow.extra_ns, strong=True),
        b.Column("More", TIME, "extra_ns", strong=True),
        b.Column(
            "What takes longer",
            PARTS,
            lambda slow: [(legend_entry(each), each.ns) for each in more_shares(slow, causes)] or None,
        ),
    )
    note = f"What takes longer than in the median iteration, #{found.median_index}."
    limit = b.Limit(ticket=TOP_SLOW, summary=0, brief=0)
    return b.Table.of("Slow iterations", columns, found.slow, note=note, noun="slow iterations", limit=limit)


def _lengths(found: IterationReport, context: Context) -> list[b.Block]:
    """The iterations as bars, as many as the page has room for."""
    longest = sorted(found.rows, key=lambda row: (row.start_ns - row.end_ns, row.index))[: context.rows(MAX_BARS)]
    rows = sorted(longest, key=lambda row: row.index)
    if not rows:
        return []
    drawing = _bars(found, rows, context.causes)
    some = f"The {format_count(len(rows))} longest of {format_count(found.count)} iterations, in order."
    return [
        b.Chart(
            drawing,
            f"Length of {format_count(len(rows))} iterations by what the device did and waited for: p50 "
            f"{format_ns(found.p50_ns)}, p95 {format_ns(found.p95_ns)}, worst {format_ns(found.worst_ns)}",
            captions=[some] if len(rows) < found.count else [],
            legend=drawing.legend,
        )
    ]


def _bars(found: IterationReport, rows: list[Iteration], causes: Causes) -> BarChart:
    slow = {slow.index for slow in found.slow}
    bars = [
        Bar(
            name=f"#{row.index}",
            parts=iteration_shares(row, causes),
            tooltip=_tooltip(row, found, slow, causes),
            slow=row.index in slow,
            faded=not row.steady,
        )
        for row in rows
    ]
    levels = {f"{name} {format_ns(ns)}": ns for name, ns in (("p50", found.p50_ns), ("p95", found.p95_ns))}
    # A warm-up of many times the length would press all others flat: it is cut off instead.
    top = found.worst_ns or max(row.end_ns - row.start_ns for row in rows)
    return BarChart(bars, max(top, 1), levels, words.ITERATION_TITLES[found.kind].removesuffix("s"))


def _tooltip(row: Iteration, found: IterationReport, slow: set[int], causes: Causes) -> str:
    shares = sorted(iteration_shares(row, causes), key=lambda share: -share.ns)[:TOLD_PARTS]
    parts = ", ".join(f"{share.label} {format_ns(share.ns)}" for share in shares)
    left_out = "" if row.steady else f", left out ({words.left_out_reason(found, row.index)})"
    flag = left_out or (", slow" if row.index in slow else "")
    return f"#{row.index}: {format_ns(row.end_ns - row.start_ns)}{flag}: {parts}"
