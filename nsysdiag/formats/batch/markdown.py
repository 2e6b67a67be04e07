"""A batch as Markdown for the summary of a CI job: the worst first, cut where GitHub would refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markup import MARKER, code, table, text
from nsysdiag.document.names import clip
from nsysdiag.formats.batch.rows import FAILED, headline, result, rows
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary
    from nsysdiag.formats.batch.rows import Row

MOST_BYTES = 1_000_000
"""GitHub takes 1 MiB from all steps of a job together: a little is left to others."""
SENTENCE, NAME = 400, 120


def render(summary: BatchSummary, most: int = MOST_BYTES) -> bytes:
    """At most `most` bytes; what does not fit is cut, and a last sentence says so."""
    mark, found = result(summary), rows(summary)
    blocks = [MARKER, "# nsysdiag: traces", f"{text(mark.icon)} **{mark.word}.** {text(headline(summary))}"]
    blocks += [*_failed(summary), *_broken(summary), *_unjudged(summary)]
    cells = [_cells(row) for row in found if row.entry.status != FAILED]
    header = ["", "Trace", "GPU", "Idle", "Compute", "Communication", "Copies", "Iteration", "Verdict", "Top finding"]
    blocks += ["## All traces, the worst first", table(header, "lllrrrrrll", cells)] if cells else []
    tool = text(f"{summary.tool.name} {summary.tool.version}")
    config = summary.settings.get("config")
    origin = f"{tool} · settings of {code(str(config))}" if config else tool
    return _fitted([*"\n\n".join([*blocks, "---", origin]).split("\n")], most)


def _failed(summary: BatchSummary) -> list[str]:
    cells = [
        [
            code(entry.input, in_table=True, limit=NAME),
            text(clip(entry.error, SENTENCE)),
            text(clip(entry.hint, SENTENCE)),
        ]
        for entry in summary.entries
        if entry.status == FAILED
    ]
    return ["## Not analysed", table(["Trace", "Why", "What to do"], "lll", cells)] if cells else []


def _broken(summary: BatchSummary) -> list[str]:
    """Broken budgets, those that fail first."""
    broken = [(entry, each) for entry in summary.entries for each in entry.budgets if each.broken]
    broken.sort(key=lambda pair: pair[1].level != "fail")
    cells = [
        [
            "▲ fails" if budget.level == "fail" else "◆ warns",
            code(entry.input, in_table=True, limit=NAME),
            code(budget.device, in_table=True),
            code(budget.budget, in_table=True, limit=NAME),
            text(f"{clip(budget.sentence, SENTENCE)} ({clip(budget.source, NAME)})"),
        ]
        for entry, budget in broken
    ]
    return ["## Broken budgets", table(["", "Trace", "GPU", "Budget", ""], "lllll", cells)] if cells else []


def _unjudged(summary: BatchSummary) -> list[str]:
    cells = [
        [
            code(entry.input, in_table=True, limit=NAME),
            code(budget.budget, in_table=True, limit=NAME),
            text(f"{clip(budget.why, SENTENCE)} ({clip(budget.source, NAME)})"),
        ]
        for entry in summary.entries
        for budget in entry.unjudged
    ]
    return ["## Budgets that cannot be judged", table(["Trace", "Budget", "Why"], "lll", cells)] if cells else []


def _cells(row: Row) -> list[str]:
    device = row.device
    start = [row.mark.icon, code(row.entry.input, in_table=True, limit=NAME)]
    if device is None:
        return [*start, *["–"] * 6, "No GPU work", "–"]
    times = (device.idle_ns, device.compute_ns, device.exposed_comm_ns, device.exposed_copy_ns)
    return [
        *start,
        code(device.key, in_table=True),
        *(format_share(ns, device.window_ns) for ns in times),
        format_ns(device.iteration_ns) if device.iteration_ns is not None else "–",
        text(clip(device.sentence, SENTENCE)),
        text(clip(f"{row.top.severity}: {row.top.title}", SENTENCE)) if row.top else "–",
    ]


def _fitted(lines: list[str], most: int) -> bytes:
    data = ("\n".join(lines) + "\n").encode()
    if len(data) <= most:
        return data
    note = "\n**Cut here: the whole of it would be longer than a summary may be.** All of it is in `index.html`.\n"
    kept, room = [], most - len(note.encode())
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return ("\n".join(kept) + "\n" + note).encode()
