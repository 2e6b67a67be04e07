"""What if: a step as it is, above the step that is predicted without the problem of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import REPLAY
from nsysdiag.document.bars import LegendEntry, by_bottleneck, legend_entry
from nsysdiag.document.blocks import NOT_PAGE, PAGE, Block, Chart, Command, Details, Name, Paragraph, Scope, Section
from nsysdiag.document.command import whatif_command
from nsysdiag.document.figures import StackedBar, Stacks, stack
from nsysdiag.document.names import clip
from nsysdiag.document.view import WORK, share_of
from nsysdiag.document.words import counted
from nsysdiag.findings.show import where
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.show.words import CAVEAT, TITLE
from nsysdiag.units import format_ns, format_two_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsysdiag.diagnosis.facts import Saves
    from nsysdiag.document.context import Context
    from nsysdiag.document.view import Causes
    from nsysdiag.report import Finding, Outlook, Report


# Time now above time as predicted: two strips on one scale, by what the GPU does and why it is idle.

NOW, PREDICTED = "Now", "Predicted"
DIVIDED = "by what the GPU does and why it is idle"
LEAST_LEGEND = 0.005
"""Of the longer strip: what takes less is too narrow to be seen."""
Strip = list[tuple[LegendEntry, int]]
"""What a strip is made of, and the ns of each."""


def strip(times: Mapping[str, int], causes: Causes, rest: int, rest_is: str = "Idle") -> Strip:
    """Ns by kind of work and by cause of idle time, in order, and idle time besides; less than nothing is nothing."""
    named = [(legend_entry(share_of(id, ns, causes)), max(ns, 0)) for id, ns in times.items()]
    return [*named, (LegendEntry(rest_is, "idle", ""), max(rest, 0))]


def length(strip: Strip) -> int:
    """All of it, in ns."""
    return sum(ns for _entry, ns in strip)


def strips(of: str, now: Strip, predicted: Strip, written: Callable[[int], str] | None = None, id: str = "") -> Chart:
    """Both strips of one thing ("A step"), with their lengths where they are `written`, and one legend; on the page.
    `id` tells them from others in the section."""
    longest = max(length(now), length(predicted), 1)
    legend = dict.fromkeys(entry for strip in (now, predicted) for entry, ns in strip if ns > LEAST_LEGEND * longest)
    rows = []
    for title, held in ((NOW, now), (PREDICTED, predicted)):
        segments = stack(((entry.label, ns, entry.color or None, entry.part) for entry, ns in held), longest)
        drawn = StackedBar(f"{of} {title.lower()}, {DIVIDED}", segments, longest)
        rows.append((f"{title}: {written(length(held))}" if written else title, drawn))
    return Chart(Stacks(rows), f"{of} now and as predicted, {DIVIDED}", legend=by_bottleneck(legend), limit=PAGE, id=id)


MOST_FINDINGS = 12
MOST_CAUSES = 12
"""Causes of idle time in a strip: those with most time; the others are one."""
MOST_TITLE, MOST_KEY = 200, 40
OTHER_IDLE = "Other idle time"
MEAN = "Lengths are the mean of the steps that were replayed. "


def section(context: Context) -> Section | None:
    """The finding that saves most by replay, and folded below it the others; None where nothing was predicted. First
    the finding that leads the report, where the trace cannot tell what it saves."""
    found = _predicted(context.report)
    if not found:
        return None
    (finding, saves, outlook), others = found[0], found[1 : 1 + MOST_FINDINGS]
    said = _said(context.report, finding, saves)
    now, predicted = map(length, _two(outlook, context.causes))
    left = len(found) - 1 - len(others)
    blocks = [
        *_unsure(context.report, finding),
        Paragraph(said, "strong", PAGE),
        Paragraph(f"{said}: {format_two_ns(now, predicted, ' → ')}.", limit=NOT_PAGE),
        *_drawn(context, finding, outlook),
        *(Details(_said(context.report, each, saves), _drawn(context, each, of)) for each, saves, of in others),
        *([Paragraph(f"{counted(left, 'more finding')} with a prediction.", "quiet", PAGE)] if left else []),
        Paragraph(f"{MEAN if outlook.per == 'step' else ''}{CAVEAT}", "quiet", PAGE),
        Paragraph([f"{CAVEAT} More: ", Name(_command(context.report, finding))], limit=NOT_PAGE),
    ]
    return Section("what-if", TITLE, blocks, scope=_scope(outlook, now))


def _scope(outlook: Outlook, now: int) -> Scope:
    """A step, or the window where none was found."""
    mean = "Mean of the steps that were replayed: " if outlook.per == "step" else ""
    return Scope("step" if outlook.per == "step" else "window", f"{mean}{format_ns(now)} on {outlook.device}")


def _unsure(report: Report, shown: Finding) -> list[Block]:
    """A sentence on the first finding with a replay, where that comes before the one `shown` but cannot tell."""
    replayed = (each for each in report.findings if each.saves is not None and each.saves.method == REPLAY)
    lead = next(replayed, shown)
    if lead.saves is None or lead.id == shown.id or not lead.saves.cannot_tell:
        return []
    return [Paragraph(f"{_said(report, lead, lead.saves)}: the trace cannot tell how much.")]


def _predicted(report: Report) -> list[tuple[Finding, Saves, Outlook]]:
    """The findings with a predicted saving, in the report's order, each id once; the report may be an untrusted
    file."""
    first = {each.id: each for each in reversed(report.findings)}
    outlooks = {each.finding: each for each in reversed(report.outlooks) if any(ns > 0 for ns in each.now.values())}
    return [
        (each, each.saves, outlooks[each.id])
        for each in report.findings
        if each is first[each.id] and each.id in outlooks and each.saves is not None and each.saves.method == REPLAY
    ]


def _said(report: Report, finding: Finding, saves: Saves) -> str:
    """What fixing a finding saves."""
    title = ", ".join(filter(None, (finding.title, where(finding, len(report.devices)))))
    return f"{clip(title, MOST_TITLE)} · saves {saves.figure} of {saves.whole} (replay)"


def _drawn(context: Context, finding: Finding, outlook: Outlook) -> list[Block]:
    """Both strips, and the command that tells more."""
    now, predicted = _two(outlook, context.causes)
    key = f" of {clip(outlook.device, MOST_KEY)}" if len(context.report.devices) > 1 else ""
    of = ("A step" if outlook.per == "step" else "The window") + key
    command = Command(_command(context.report, finding), PAGE, place="what-if")
    return [strips(of, now, predicted, format_ns, finding.id), command]


def _two(outlook: Outlook, causes: Causes) -> tuple[Strip, Strip]:
    """Now and as predicted, with the same causes in the same order."""
    now, predicted = outlook.now, outlook.predicted
    idle = sorted({*now, *predicted} - WORK.keys(), key=lambda id: (-max(now.get(id, 0), predicted.get(id, 0)), id))
    shown = sorted(idle[:MOST_CAUSES], key=lambda id: (causes.rank(id), id))
    one, two = (
        strip({id: side.get(id, 0) for id in (*WORK, *shown)}, causes, _sum(side, idle[MOST_CAUSES:]), OTHER_IDLE)
        for side in (now, predicted)
    )
    return one, two


def _sum(side: dict[str, int], causes: list[str]) -> int:
    return sum(max(side.get(each, 0), 0) for each in causes)


def _command(report: Report, finding: Finding) -> str:
    return whatif_command(report.trace.file, [Transform(option="finding", of=finding.id)], report.settings)
