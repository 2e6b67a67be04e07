"""The facts of a finding, each declared once: its column, what it is called, how it is said, and where it is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from nsysdiag.document import words
from nsysdiag.document.columns import RecordColumn, columns
from nsysdiag.fields import NumberUnit, leaves_at
from nsysdiag.findings.facts import Finding
from nsysdiag.units import format_bytes, format_count, format_ns, format_share

Place = Literal["card", "line", "ticket", "event"]
"""The card of a finding on the page, its line in Markdown and on the terminal, tickets, and trace events."""
EVERYWHERE: tuple[Place, ...] = ("card", "line", "ticket", "event")
JUDGED = "judged"
SAID: dict[NumberUnit | None, Callable[[Any], str]] = {
    NumberUnit.NS: format_ns,
    NumberUnit.SHARE: lambda share: format_share(share, 1),
    NumberUnit.COUNT: format_count,
    NumberUnit.BYTES: format_bytes,
}
"""How numbers of a unit are said."""


class FindingFact(Struct, frozen=True):
    """One fact of a finding. Its `column` is in CSV files and data frames. The `places` show it under its `label`, as
    `said`, unless that is empty; on cards by `order`. `is_name`: it is a name of the program."""

    column: RecordColumn[Finding]
    label: str = ""
    said: Callable[[Finding], str] = lambda _: ""
    places: tuple[Place, ...] = ()
    order: int = 9
    is_name: bool = False


def fact(field: str, label: str, said: Callable[[Finding], str] | None = None, order: int = 9) -> FindingFact:
    """A field of Finding that is shown everywhere, said as its unit is unless `said` is given. Nothing is said of None,
    and of an empty text."""
    (column,) = columns(Finding, field)
    unit = leaves_at(Finding, field)[0].unit

    def plainly(finding: Finding) -> str:
        value = column.cell(finding)
        return "" if value in (None, "") else SAID.get(unit, str)(value)

    return FindingFact(column, label, said or plainly, EVERYWHERE, order)


def sure(finding: Finding) -> str:
    """`likely (70.0%)`: how far a finding may be trusted."""
    return f"{words.confidence_word(finding.confidence)} ({format_share(finding.confidence, 1)})"


def takes(finding: Finding) -> tuple[str, str]:
    """The share that a finding takes, and of which time."""
    if finding.bottleneck:
        return format_share(finding.share, 1), "judged time"
    return format_share(finding.lost_share, 1), "window"


def _lost(finding: Finding) -> str:
    where = words.where_sentence(finding)
    said = f"{format_ns(finding.lost_ns)} of the window{f' in {where}' if where else ''}"
    return said if finding.lost_ns else ""


def _tabled(names: str) -> list[FindingFact]:
    return [FindingFact(column) for column in columns(Finding, names)]


def _text(name: str, cell: Callable[[Finding], str | None]) -> RecordColumn[Finding]:
    return RecordColumn(name, "text", cell)


def _column(name: str) -> RecordColumn[Finding]:
    return columns(Finding, name)[0]


FACTS: tuple[FindingFact, ...] = (
    *_tabled("device id severity cause title"),
    FindingFact(_column("lost_ns"), "Lost", _lost, ("card",), order=4),
    *_tabled("lost_share ceiling_ns"),
    FindingFact(_column("confidence"), "Confidence", sure, ("card", "line", "event"), order=3),
    FindingFact(
        _text("nvtx", lambda finding: words.path_label(finding.nvtx)),
        "NVTX",
        lambda finding: words.path_label(finding.nvtx),
        ("card",),
        order=5,
        is_name=True,
    ),
    FindingFact(_text("evidence", lambda finding: "; ".join(finding.evidence))),
    FindingFact(_text("advice", lambda finding: "; ".join(finding.advice))),
    *_tabled("signature call gaps"),
    FindingFact(_text("chain", lambda finding: words.chain_label(finding.chain))),
    FindingFact(_text("rows", lambda finding: "; ".join(words.row_query(row) for row in finding.rows))),
    FindingFact(_text("scope", lambda _: JUDGED)),
    *_tabled("bottleneck"),
    FindingFact(
        _column("share"),
        "Takes",
        lambda finding: " of the ".join(takes(finding)) if finding.saves else "",
        ("card",),
        order=1,
    ),
    *_tabled("part_of"),
    FindingFact(_column("note"), "Note", lambda finding: finding.note, ("card",), order=2),
    FindingFact(_text("devices", lambda finding: "; ".join(finding.devices or [finding.device]))),
    FindingFact(_text("saves", lambda finding: finding.saves.figure if finding.saves else None)),
    *_tabled("saves_low_ns=saves.low_ns saves_high_ns=saves.high_ns saves_of_ns=saves.of_ns"),
    *_tabled("saves_per=saves.per saves_method=saves.method"),
)
"""All facts of a finding, in the order of the columns."""


def told(finding: Finding, place: Place) -> list[tuple[FindingFact, str]]:
    """The facts that a place shows of a finding, and how each is said."""
    shown = sorted((each for each in FACTS if place in each.places), key=lambda each: each.order)
    return [(each, said) for each in shown if (said := each.said(finding))]
