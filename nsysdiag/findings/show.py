"""Shows findings. The HTML page uses a separate template for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.bottlenecks import noun_of
from nsysdiag.diagnosis.facts import COUNTED_BEFORE, between
from nsysdiag.document import blocks as b
from nsysdiag.document import words
from nsysdiag.document.columns import FIGURE, SHARE, TEXT, RecordColumn, columns
from nsysdiag.document.markup import markdown_blocks
from nsysdiag.document.view import by_rank, device_label, namesake
from nsysdiag.fields import NumberUnit, leaves_at
from nsysdiag.findings.facts import BRIEF, Finding, brief_of, of_bottleneck
from nsysdiag.trace.show import source
from nsysdiag.units import capitalized, format_bytes, format_count, format_ns, format_share, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.diagnosis.facts import Diagnosis
    from nsysdiag.report import Report


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


TOP = 6
"""So many findings the terminal shows."""
TICKET_REST, TICKET_EVIDENCE = 4, 4
"""Lines of a ticket: of further findings, and sentences of evidence of each in full."""
TICKET_LEVEL = 2
NOTABLE_LEFT, LEAST_NAMED, MOST_NAMED = 0.05, 0.01, 2
"""Share of the judged time: if the findings not shown hold this much of the bottleneck, a sentence names them."""
SHOWN_SHARE = 0.0005
"""The least share that is not shown as 0.0%."""
TONES: dict[str, b.Tone] = {"high": "bad", "medium": "note", "low": "good", "info": "quiet"}


def anchors(findings: Sequence[Finding]) -> list[str]:
    """The ids of findings as distinct fragments; ids come from the report, which may be an untrusted file."""
    found: list[str] = []
    for finding in findings:
        plain = "f-" + re.sub(r"[^A-Za-z0-9_-]+", "-", finding.id.removeprefix("f-"))[:80]
        numbered = (f"{plain}-{number}" for number in count(2))
        found.append(next(anchor for anchor in chain([plain], numbered) if anchor not in found))
    return found


def in_order(report: Report) -> list[Finding]:
    """The findings in the order of what they save, as the report has them; of an older report by severity."""
    return by_rank(report.findings) if report.diagnosis is None else report.findings


def where(finding: Finding, all_of: int, noun: str = "GPUs") -> str:
    """The devices of a finding, of `all_of`: `on gpu0`, `on 7 of 8 GPUs`; empty if there is but one."""
    keys = finding.devices or [finding.device]
    if all_of < 2:
        return ""
    if len(keys) == 1:
        return f"on {keys[0]}"
    if len(keys) == all_of == 2:
        return f"on both {noun}"
    return f"on all {all_of} {noun}" if len(keys) == all_of else f"on {len(keys)} of {all_of} {noun}"


def brief(report: Report) -> b.Section | None:
    """The findings that matter most, a row each; None if there are none."""
    top = brief_of(report.diagnosis, report.findings)
    if not top:
        return None
    more = len(report.findings) > len(top)
    title = f"Findings ({len(top)} of {len(report.findings)}; all: --details, or the page)" if more else "Findings"
    title += ": savings overlap" if sum(each.saves is not None for each in top) > 1 else ""
    left = left_out(report.diagnosis, report.findings)
    rest: list[b.Block] = [b.Paragraph(left)] if left else []
    return b.Section("findings", title, [rows_of(top, len(report.devices)), *rest])


def left_out(found: Diagnosis | None, findings: Sequence[Finding]) -> str:
    """The part of the bottleneck that no shown row holds, as a sentence; empty if small."""
    if found is None:
        return ""
    rows = [id(each) for each in brief_of(found, findings)]
    all_of = of_bottleneck(found, findings)
    left = found.share - sum(each.share for each in all_of if id(each) in rows)
    if left < NOTABLE_LEFT:
        return ""
    others = [each for each in sorted(all_of, key=lambda each: -each.share) if id(each) not in rows]
    named = [
        f"“{each.title}” ({format_share(each.share, 1)})" for each in others[:MOST_NAMED] if each.share >= LEAST_NAMED
    ]
    noun = noun_of(found.bottleneck)
    said = f"Of the {format_share(found.share, 1)} {noun}, {format_share(left, 1)} is in findings not shown here"
    if not any(id(each) in rows for each in all_of):
        said = f"None of these rows is about {noun} ({format_share(found.share, 1)})"
    large = 2 * sum(each.share for each in others[: len(named)]) > left
    return f"{said}: {'mostly' if large else 'among them'} {listed(named)}." if named else f"{said}."


BEYOND_SHARE = 1.25
"""A bound without a lower one that is so many times the share is unsure: what waits for the time may shrink, or not."""


def rows_of(findings: Sequence[Finding], all_of: int, noun: str = "GPUs") -> b.Table:
    """Findings, a row each. Of several devices only those without a saving say their share: a saving is per step there,
    and no row compares shares of different times."""
    alone = all_of < 2

    def about(each: Finding) -> str:
        return _in_a_row(each, where(each, all_of, noun), share=not alone and each.saves is None)

    columns = (
        b.Column("Severity", TEXT, severity),
        b.Column("Saves", FIGURE, _saved),
        *([b.Column("Share", SHARE, lambda each: None if _is_counted_before(each) else each.share)] if alone else []),
        b.Column("Finding", TEXT, about, length=400),
    )
    return b.Table.of("", columns, findings, limit=b.NOT_PAGE)


def severity(finding: Finding) -> str:
    """`▲ high`: how bad it is, as a sign and a word."""
    return f"{words.SEVERITY_ICONS.get(finding.severity, '○')} {finding.severity}"


def _is_counted_before(finding: Finding) -> bool:
    """Whether all of its time is charged to a wait."""
    return finding.counted_before and finding.share < SHOWN_SHARE


def _saved(finding: Finding) -> str | None:
    """What it saves; for kernels, that a kernel profile is needed."""
    if finding.saves is not None:
        saves = finding.saves
        if saves.is_unknown:
            return saves.figure
        if saves.cannot_tell:
            apart = between(saves.low_ns, saves.high_ns, saves.of_ns)
            return f"unsure, {apart if saves.has_bounds else saves.figure}"
        if not saves.has_bounds and saves.most > BEYOND_SHARE * finding.share > 0:
            return f"unsure, {saves.figure}"
        return f"{saves.figure} ({format_ns(saves.shown_ns)})"
    return f"see {finding.shown_by}" if finding.shown_by else None


def _in_a_row(finding: Finding, on: str, *, share: bool) -> str:
    """What a finding is about, without the reason why it saves more than its share."""
    more = finding.saves is not None and finding.saves.most > finding.share
    takes = f"{format_share(finding.share, 1)} of the time" if share else ""
    about = ", ".join(filter(None, (finding.title, on, takes)))
    sure = finding.saves is not None and finding.saves.low_ns > finding.share * finding.saves.of_ns
    if finding.counted_before:
        return f"{about}; time counted {COUNTED_BEFORE}"
    if sure:
        return f"{about}; other work waits for it"
    return f"{about}; {finding.note}" if finding.note and not more else about


def ticket(report: Report) -> b.Section | None:
    """The findings for a ticket: the first in full, a line for each of the next."""
    top, rest = report.findings[:BRIEF], report.findings[BRIEF:]
    if not top:
        return None
    left = len(rest) - TICKET_REST
    more = f"{words.counted(left, 'more finding')}: --details, or the page."
    items = items_of(report.findings[: BRIEF + TICKET_REST], len(report.devices))
    return b.Section("findings", "Findings", [items, *([b.Paragraph(more)] if left > 0 else [])])


def items_of(findings: Sequence[Finding], all_of: int, noun: str = "GPUs") -> b.Items:
    """Findings as a list: the first in full, a line for each of the next."""
    titles = [_title(each, where(each, all_of, noun)) for each in findings]
    items: list[tuple[b.Words, Sequence[b.Words]]] = [
        (title, _lines(each)) if place < BRIEF else (f"{title}: {costs(each)}", [])
        for place, (title, each) in enumerate(zip(titles, findings, strict=True))
    ]
    return b.Items(items)


def _title(finding: Finding, on: str) -> str:
    return f"{severity(finding)}: {finding.title}{f' ({on})' if on else ''}"


def _lines(finding: Finding) -> list[str]:
    """What it costs, how it comes about, what shows it, and what to do."""
    found = [f"{capitalized(costs(finding))}; {sure(finding)}."]
    found += [" → ".join(finding.chain)] if finding.chain else []
    found += [f"Evidence: {'; '.join(finding.evidence[:TICKET_EVIDENCE])}"] if finding.evidence else []
    found += [f"{fact.label}: {said}" for fact, said in told(finding, "ticket")]
    return [*found, *(f"Fix: {each}" for each in finding.advice[:1])]


def costs(finding: Finding) -> str:
    """What a finding saves, its share of the judged time, and why one is more than the other."""
    facts = [f"saves {finding.saves.words}"] if finding.saves else []
    said = ", ".join([*facts, f"{format_share(finding.share, 1)} of the judged time"])
    return f"{said} ({finding.note})" if finding.note else said


def blocks(report: Report) -> list[b.Block]:
    """All findings, the worst first; the terminal has only the worst, and no chain twice."""
    findings = in_order(report)
    top, rest = findings[:TOP], findings[TOP:]
    more = f"{words.counted(len(rest), 'more finding')} in the other formats."
    note = words.overlap_note(report.findings)
    return [
        *(_entry(report, finding, namesake(finding, top)) for finding in top),
        *(replace(_entry(report, finding, None), limit=b.TICKET) for finding in rest),
        *([b.Paragraph(more, "quiet", b.TERMINAL)] if rest else []),
        *([b.Paragraph(note, "quiet")] if note else []),
    ]


def finding_markdown(report: Report, finding: Finding) -> str:
    """One finding as Markdown, to be pasted into a ticket."""
    alone: list[b.Block] = [_entry(report, finding, None), b.Paragraph(source(report))]
    return "\n\n".join(markdown_blocks(alone, TICKET_LEVEL))


def _entry(report: Report, finding: Finding, earlier: Finding | None) -> b.Entry:
    """What a finding costs, how sure it is, its chain, evidence and advice; `earlier` is the one on another device that
    has the same chain."""
    advice = finding.advice[:1] if earlier is None or earlier.advice[:1] != finding.advice[:1] else []
    device = device_label(report, finding.device)
    path = b.named(f"On {device}, in ", words.path_label(finding.nvtx))
    return b.Entry(
        finding.title,
        [
            b.Paragraph(_facts(finding)),
            b.Paragraph([*path, "."] if path else f"On {device}.", limit=b.TICKET),
            b.Chain(finding.chain, b.TICKET),
            b.Chain(finding.chain[:-1], b.TERMINAL)
            if earlier is None
            else b.Paragraph(f"as on {earlier.device}, above", "quiet", b.TERMINAL),
            *(b.Paragraph(f"Fix: {each}", "good", b.TERMINAL) for each in advice),
            b.Lines(
                [
                    *finding.evidence,
                    *([b.Name(words.row_query(row))] for row in finding.rows),
                    *(f"→ {each}" for each in finding.advice),
                ],
                b.TICKET,
            ),
        ],
        mark=severity(finding),
        note=where(finding, len(report.devices)),
        tone=TONES.get(finding.severity, "plain"),
    )


def _facts(finding: Finding) -> str:
    facts = [capitalized(costs(finding)) if finding.bottleneck else f"Lost: {words.lost_sentence(finding)}"]
    facts += [f"{fact.label.lower()}: {said}" for fact, said in told(finding, "line")]
    return " · ".join([*facts, *([words.where_sentence(finding)] if finding.gaps else [])])
