"""The table of a batch for the terminal: a row a trace and GPU, the worst first."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from nsysdiag.document.blocks import Cell, Column, Limit, Name, Paragraph, Section, Table, Tone
from nsysdiag.document.kinds import CODE, FIGURE, MARK, NAME, SHARE, part
from nsysdiag.document.text import text_document
from nsysdiag.formats.batch.rows import headline, rows, shown_name

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary
    from nsysdiag.formats.batch.rows import BatchRow
    from nsysdiag.formats.format import RenderOptions

MOST_ROWS = 200
FOR_BUSY, FOR_BOTTLENECK = 100, 76
"""From which width on the table has these columns: a narrower one has room for names instead."""
COLUMNS = {
    Column("Trace", NAME, head=True): 0,
    Column("GPU", CODE, length=16): 0,
    Column("State", MARK): 0,
    Column("Bound by", CODE, length=24): FOR_BOTTLENECK,
    Column("Busy", SHARE): FOR_BUSY,
    Column("Idle", SHARE): 0,
    Column("Kept", FIGURE): 0,
}
"""With the least width that each needs. The last one has budgets: how many the GPU keeps of those that are about it."""
TONES: dict[str, Tone] = {"worse": "bad", "mixed": "note", "better": "good"}
"""How the state of a row stands out, by the tone of its mark."""


def render(summary: BatchSummary, options: RenderOptions) -> bytes:
    """The table in `options.width` columns, and what became of all in one line. The first MOST_ROWS rows are shown;
    the files of the batch hold all."""
    folder = _shared_folder(summary)
    cells = [_cells(row, folder) for row in rows(summary)]
    columns = [column for column, least in COLUMNS.items() if options.width >= least]
    places = [at for at, least in enumerate(COLUMNS.values()) if options.width >= least]
    shown = [[row[at] for at in places] for row in cells]
    table = Table("", columns, shown, limit=Limit(summary=MOST_ROWS), order="that come first here")
    section = Section("traces", "", [table, Paragraph(headline(summary), "strong")])
    head = f"nsysdiag {summary.tool.version}" + (f" · {folder}" if folder else "")
    return text_document(head, [section], options.width, None, color=options.color)


def _shared_folder(summary: BatchSummary) -> str:
    """The folders that all names begin with, which stand in the first line instead; with `/` behind them."""
    folders = [entry.name.split("/")[:-1] for entry in summary.entries]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False)) if len(folders) > 1 else ()
    return "".join(f"{names[0]}/" for names in shared)


def _cells(row: BatchRow, folder: str) -> list[object]:
    device = row.device
    worked = device if device and device.window_ns else None
    return [
        Name(shown_name(row.entry.name.removeprefix(folder))),
        device.key if device else f"{row.unused:,} more" if row.unused else None,
        Cell(row.mark, tone=TONES.get(row.mark.tone, "plain")),
        device.verdict.removesuffix("-bound") if device else None,
        part(worked.busy_ns, worked.window_ns) if worked else None,
        part(worked.idle_ns, worked.window_ns) if worked else None,
        _kept(row),
    ]


def _kept(row: BatchRow) -> str | None:
    """`1/2`: the budgets that this GPU keeps, of all that are about it; None where none is."""
    key = row.device.key if row.device else ""
    judged = [each for each in row.entry.budgets if row.device and each.judges(key)]
    total = len(judged) + len(row.unjudged)
    return f"{sum(not each.broken_on(key) for each in judged)}/{total}" if total else None
