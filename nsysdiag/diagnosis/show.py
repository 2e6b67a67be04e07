"""What limits a device: all kinds of bottleneck in the order of their repair, with the evidence for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.words import TITLE, holds_word, triage_sentences, workload_sentence
from nsysdiag.document.blocks import TERMINAL, TICKET, Cell, Column, Lines, Paragraph, Section, Table
from nsysdiag.document.kinds import SHARE, TEXT

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.report import DeviceReport

LENGTH = 900
COLUMNS = (
    Column("Kind", TEXT, head=True),
    Column("Holds", TEXT),
    Column("Share", SHARE),
    Column("Evidence", TEXT, length=LENGTH),
    Column("What to do", TEXT, length=LENGTH),
)


def section(device: DeviceReport, _context: Context) -> Section | None:
    """None where nothing ran."""
    found = device.triage
    if found is None:
        return None
    rows = [
        (
            kind.title,
            Cell(holds_word(kind), strong=bool(kind.holds)),
            kind.share,
            " ".join(kind.evidence) or None,
            " ".join(kind.advice) or None,
        )
        for kind in found.kinds
    ]
    return Section(
        "triage",
        TITLE,
        [
            Lines(triage_sentences(found), TERMINAL),
            Paragraph(found.sentence, tone="strong", limit=TICKET),
            Paragraph(workload_sentence(found), tone="quiet", limit=TICKET),
            Table(
                "Bottlenecks in the order in which they are worth repairing",
                COLUMNS,
                rows,
                note="Shares are of the judged time, and say what a repair could touch at most.",
                sortable=False,
            ),
        ],
    )
