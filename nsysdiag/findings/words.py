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


def fact(field: str, label: str) -> FindingFact:
    """A field of Finding that is shown everywhere, said as its unit is; None and an empty text are not."""
    (column,) = columns(Finding, field)
    unit = leaves_at(Finding, field)[0].unit

    def plainly(finding: Finding) -> str:
        value = column.cell(finding)
        return "" if value in (None, "") else SAID.get(unit, str)(value)

    return FindingFact(column, label, plainly, EVERYWHERE)


def sure(finding: Finding) -> str:
    """`likely (70.0%)`: how far a finding may be trusted."""
    return f"{words.confidence_word(finding.confidence)} ({format_share(finding.confidence, 1)})"


def takes(finding: Finding) -> tuple[str, str]:
    """The share that a finding takes, and of which time."""
    if finding.bottleneck:
        return format_share(finding.share, 1), "judged time"
    return format_share(finding.lost_share, 1), "window"


def _taken(finding: Finding) -> str:
    return " of the ".join(takes(finding)) if finding.saves else ""


def _lost(finding: Finding) -> str:
    where = words.where_sentence(finding)
    said = f"{format_ns(finding.lost_ns)} of the window{f' in {where}' if where else ''}"
    return said if finding.lost_ns else ""


def _fields(
    names: str, label: str = "", said: Callable[[Finding], str] = lambda _: "", **shown: Any
) -> list[FindingFact]:
    return [FindingFact(column, label, said, **shown) for column in columns(Finding, names)]


def _text(name: str, cell: Callable[[Finding], str | None], label: str = "", **shown: Any) -> FindingFact:
    """Said as it is in its cell."""
    return FindingFact(RecordColumn(name, "text", cell), label, lambda finding: cell(finding) or "", **shown)


FACTS: tuple[FindingFact, ...] = (
    *_fields("device id severity cause title"),
    *_fields("lost_ns", "Lost", _lost, places=("card",), order=4),
    *_fields("lost_share ceiling_ns"),
    *_fields("confidence", "Confidence", sure, places=("card", "line", "event"), order=3),
    _text("nvtx", lambda finding: words.path_label(finding.nvtx), "NVTX", places=("card",), order=5, is_name=True),
    _text("evidence", lambda finding: "; ".join(finding.evidence)),
    _text("advice", lambda finding: "; ".join(finding.advice)),
    *_fields("signature call gaps"),
    _text("chain", lambda finding: words.chain_label(finding.chain)),
    _text("rows", lambda finding: "; ".join(words.row_query(row) for row in finding.rows)),
    _text("scope", lambda _: JUDGED),
    *_fields("bottleneck"),
    *_fields("share", "Takes", _taken, places=("card",), order=1),
    *_fields("part_of"),
    _text("note", lambda finding: finding.note, "Note", places=("card",), order=2),
    _text("devices", lambda finding: "; ".join(finding.devices or [finding.device])),
    _text("saves", lambda finding: finding.saves.figure if finding.saves else None),
    *_fields("saves_low_ns=saves.low_ns saves_high_ns=saves.high_ns saves_of_ns=saves.of_ns"),
    *_fields("saves_per=saves.per saves_method=saves.method"),
)
"""All facts of a finding, in the order of the columns."""


def told(finding: Finding, place: Place) -> list[tuple[FindingFact, str]]:
    """The facts that a place shows of a finding, and how each is said."""
    shown = sorted((each for each in FACTS if place in each.places), key=lambda each: each.order)
    return [(each, said) for each in shown if (said := each.said(finding))]
