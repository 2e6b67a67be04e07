"""Ranks as text for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nsysdiag.document.names import clip, visible
from nsysdiag.document.terminal import grid, heading, indented, printed
from nsysdiag.document.view import Causes
from nsysdiag.document.words import confidence_word
from nsysdiag.ranks.show import words
from nsysdiag.units import format_bytes, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.ranks.facts import RankComparison, Straggler
    from nsysdiag.ranks.report import RanksReport

MIN_WIDTH, MAX_WIDTH = 60, 160
TOP_RANKS, TOP_STRAGGLERS, TOP_WAITS, TOP_GROUPS, TOP_UNMATCHED = 64, 5, 8, 8, 8
NAME_ROOM = 28


def render(report: RanksReport, options: RenderOptions) -> bytes:
    """The comparison as plain text of `options.width` columns, with colours only where asked for."""
    width = max(MIN_WIDTH, min(options.width, MAX_WIDTH))
    blocks = Group(
        _head(report), *rank_blocks(report.comparison, Causes(report.causes), words.TITLE), *_warnings(report)
    )
    origin = [Text(f"\n{visible(options.command)}", "dim")] if options.command else []
    return printed(blocks, origin, width, color=options.color)


def _head(report: RanksReport) -> Text:
    files = [f"{trace.file} ({format_bytes(trace.size_bytes)})" for trace in report.traces]
    count = f" and {len(files) - 3:,} more files" if len(files) > 3 else ""
    return Text(visible(f"{report.tool.name} {report.tool.version} · ranks of {', '.join(files[:3])}{count}"))


def _warnings(report: RanksReport) -> list[RenderableType]:
    lines = [f"warning: {trace.file}: {warning}" for trace in report.traces for warning in trace.warnings]
    return [heading("Trace health"), *(indented(Text(visible(line))) for line in lines)] if lines else []


def rank_blocks(found: RankComparison, causes: Causes, title: str, *, brief: bool = False) -> list[RenderableType]:
    """The comparison as blocks under a title of its own; the brief form says who is late most, and why."""
    lines = [words.basis_sentence(found)]
    lines += _meanwhile(found, causes) if brief else [words.imbalance_sentence(found), words.clock_sentence(found)]
    blocks: list[RenderableType] = [
        heading(title),
        indented(Text(visible(found.sentence), "bold cyan")),
        *(indented(Text(visible(line))) for line in lines),
        Text(),
        indented(_table(found)),
    ]
    return blocks if brief else [*blocks, *_lists(found, causes)]


def _meanwhile(found: RankComparison, causes: Causes) -> list[str]:
    """What the rank that is late most did while others waited, and how sure its reason is."""
    late = next((each for each in found.stragglers[:1] if each.meanwhile), None)
    if late is None:
        return []
    sure = f"Why it is late is {confidence_word(late.confidence)}."
    return [f"While the others waited, {late.rank} had: {words.reasons(late.meanwhile, causes)}. {sure}"]


def _lists(found: RankComparison, causes: Causes) -> list[RenderableType]:
    late = [line for each in found.stragglers[:TOP_STRAGGLERS] for line in _straggler(each, causes)]
    blocks = _list("Who is late, and why", late, more=len(found.stragglers) - TOP_STRAGGLERS)
    waits = [words.wait_sentence(wait, causes) for wait in found.waits[:TOP_WAITS] if wait.late_rank is not None]
    groups = [words.group_sentence(group) for group in found.groups[:TOP_GROUPS]]
    groups += [f"not matched: {line}" for line in found.unmatched[:TOP_UNMATCHED]]
    blocks += _list("Who waits for whom", [Text(visible(line)) for line in waits])
    blocks += _list("Collectives", [Text(visible(line)) for line in groups], more=len(found.groups) - TOP_GROUPS)
    return blocks


def _list(title: str, lines: Sequence[RenderableType], more: int = 0) -> list[RenderableType]:
    if not lines:
        return []
    rest = [indented(Text(f"{more:,} more in the other formats", "dim"))] if more > 0 else []
    return [heading(title), *(indented(line) for line in lines), *rest]


def _straggler(late: Straggler, causes: Causes) -> Iterator[RenderableType]:
    yield Text(visible(words.straggler_sentence(late)))
    for line in (words.more_sentence(late, causes), words.meanwhile_sentence(late, causes)):
        if line:
            yield indented(Text(visible(line), "dim"))


def _table(found: RankComparison) -> Table:
    table = grid("l", *"rrrrrrr")
    titles = ("", "compute", "communication", "copies", "idle", "waited", "late", "by")
    table.add_row(*(Text(title, "dim") for title in titles))
    for row in found.ranks[:TOP_RANKS]:
        times = (row.compute_ns, row.exposed_comm_ns, row.exposed_copy_ns, row.idle_ns)
        shares = [format_share(ns, row.span_ns) for ns in times]
        late = (f"{row.late:,}", format_ns(row.late_ns)) if row.late else ("–", "–")
        table.add_row(Text(clip(row.rank, NAME_ROOM)), *shares, format_ns(row.wait_ns), *late)
    if found.ranks[TOP_RANKS:]:
        table.add_row(Text(f"{len(found.ranks) - TOP_RANKS:,} more", "dim"))
    return table
