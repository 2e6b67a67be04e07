"""What if: a step as it is, above the step that is predicted without the problem of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import CANNOT_TELL, PACED, REPLAY, between
from nsysdiag.document.blocks import (
    NOT_PAGE,
    PAGE,
    Block,
    Chart,
    Command,
    Details,
    Name,
    Paragraph,
    Section,
    SectionScope,
)
from nsysdiag.document.drawings import LegendEntry, StackedBar, Stacks, by_bottleneck, legend_entry, stack
from nsysdiag.document.names import clip
from nsysdiag.document.one_line import whatif_command
from nsysdiag.document.view import WORK, share_of
from nsysdiag.document.words import counted
from nsysdiag.findings.show import where
from nsysdiag.replay.facts import CAVEAT, Transform, text_of
from nsysdiag.units import capitalized, format_ns, format_share, format_speedup, format_two_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsysdiag.diagnosis.facts import Saves
    from nsysdiag.document.view import Causes, Context
    from nsysdiag.findings.facts import Finding
    from nsysdiag.replay.facts import Saving, WhatIf
    from nsysdiag.report import Outlook, Report


# The sentences about a prediction: its headline to paste, and how far the model can be trusted.

TITLE = "What if"


def headline(found: WhatIf) -> str:
    """One line: how long it takes now and would take, and with which changes."""
    now = f"{length_name(found)} {format_ns(found.now_ns)}"
    if found.refused is not None:
        options = f" for {text_of(found.transforms)}" if found.transforms else ""
        said = f"no prediction{options}: {found.refused}"
        return f"{now}; {said}" if found.now_ns else capitalized(said)
    if not found.transforms:
        return f"{now}; {_best(found)}"
    if found.cannot_tell:
        bounds = format_two_ns(found.low_ns, found.high_ns, " and ")
        return f"{now}; anywhere between {bounds} with {text_of(found.transforms)}: {CANNOT_TELL}"
    between = f"between {format_two_ns(found.low_ns, found.high_ns, ' and ')}"
    change = f"({format_speedup(found.now_ns, found.predicted_ns)}, {between})"
    both = format_two_ns(found.now_ns, found.predicted_ns, " → ")
    return f"{length_name(found)} {both} predicted {change}: {text_of(found.transforms)}"


def _best(found: WhatIf) -> str:
    """What the best fix of one finding brings, and all together."""
    best = min(single(found), key=lambda each: each.predicted_ns, default=None)
    floor = f", {format_ns(found.floor_ns)} with all (the floor)" if found.floor_ns is not None else ""
    if best is None:
        return f"no finding has a predicted saving{floor}"
    return f"predicted {format_ns(best.predicted_ns)} with the best single fix{floor}"


def single(found: WhatIf) -> list[Saving]:
    """The savings of one finding each that are predicted."""
    alone = [each for each in found.savings if each.finding is not None and each.refused is None]
    return [each for each in alone if not each.cannot_tell]


def length_name(found: WhatIf) -> str:
    """What is predicted."""
    return "Step time" if found.per == "step" else "Window"


def replayed(found: WhatIf) -> str:
    """What was replayed, what the changes save of it, and how well the model reproduces the trace."""
    if not found.steps and found.refused is not None:
        return "Nothing was replayed."
    what = counted(found.steps, "step") if found.per == "step" else "the window"
    paced = f"{PACED.format(format_ns(found.paced_ns))} " if found.paced_ns else ""
    return f"{paced}{_saved(found)}Replayed {what}; {_identity(found)}"


def _saved(found: WhatIf) -> str:
    if not found.transforms or found.refused is not None or found.now_ns <= 0:
        return ""
    of = "a step" if found.per == "step" else "the window"
    low, high = found.now_ns - found.high_ns, found.now_ns - found.low_ns
    if high <= 0:
        return ""
    low = max(low, 0)
    if found.cannot_tell:
        return f"Saves anywhere {between(low, high, found.now_ns)} of {of}: {CANNOT_TELL}. "
    return f"Saves {format_share(low, found.now_ns)} to {format_share(high, found.now_ns)} of {of}. "


def _identity(found: WhatIf) -> str:
    if found.identity is None:
        return "how well the model reproduces it is unknown."
    return f"the model is within {format_share(abs(found.identity.length_error), 1)} of the recorded {found.per}."


def broken_identity(found: WhatIf) -> str:
    """A warning if the replay of what was recorded is not what was recorded; else empty."""
    if found.identity is None or found.identity.exact:
        return ""
    return "With nothing changed, the replay does not reproduce every recorded start and end."


def floor(found: WhatIf) -> str:
    """What stays when all findings are fixed; empty if that is not known."""
    if found.floor_ns is None:
        return ""
    share = f" ({format_share(found.floor_ns, found.now_ns)})" if found.now_ns > 0 else ""
    return f"{format_ns(found.floor_ns)}{share} remain when all of them are fixed: the kernels and their order."


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
    """Both strips of one thing ("A step"), with their lengths if they are `written`, and one legend; on the page.
    `id` tells them from others in the section."""
    longest = max(length(now), length(predicted), 1)
    legend = dict.fromkeys(entry for strip in (now, predicted) for entry, ns in strip if ns > LEAST_LEGEND * longest)
    rows = []
    for title, held in ((NOW, now), (PREDICTED, predicted)):
        drawn = StackedBar(f"{of} {title.lower()}, {DIVIDED}", stack(held), longest, longest)
        rows.append((f"{title}: {written(length(held))}" if written else title, drawn))
    return Chart(Stacks(rows), f"{of} now and as predicted, {DIVIDED}", legend=by_bottleneck(legend), limit=PAGE, id=id)


MOST_FINDINGS = 12
MOST_CAUSES = 12
"""Causes of idle time in a strip: those with most time; the others are one."""
MOST_TITLE, MOST_KEY = 200, 40
OTHER_IDLE = "Other idle time"
MEAN = "Lengths are the mean of the steps that were replayed. "
LATE = "Waiting for late GPUs is exposed communication here, whatever made them late. "


def section(context: Context) -> Section | None:
    """The finding that saves most by replay, and folded below it the others; None if nothing was predicted. First
    the finding that leads the report, if the trace cannot tell what it saves."""
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
        Paragraph(f"{_read_as(context.report, outlook)}{CAVEAT}", "quiet", PAGE),
        Paragraph([f"{CAVEAT} More: ", Name(_command(context.report, finding))], limit=NOT_PAGE),
    ]
    return Section("what-if", TITLE, blocks, scope=_scope(outlook, now))


def _read_as(report: Report, outlook: Outlook) -> str:
    """How lengths and colours are to be read, if other sections charge time to other bottlenecks."""
    late = any(device.late_ns for phase in report.phases for device in phase.devices)
    return f"{MEAN if outlook.per == 'step' else ''}{LATE if late else ''}"


def _scope(outlook: Outlook, now: int) -> SectionScope:
    """A step, or the window if none was found."""
    mean = "Mean of the steps that were replayed: " if outlook.per == "step" else ""
    return SectionScope("step" if outlook.per == "step" else "window", f"{mean}{format_ns(now)} on {outlook.device}")


def _unsure(report: Report, shown: Finding) -> list[Block]:
    """A sentence on the first finding with a replay, if that comes before the one `shown` but cannot tell."""
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
    """What fixing a finding saves; if that has no lower bound, at most and likely."""
    title = ", ".join(filter(None, (finding.title, where(finding, len(report.devices)))))
    likely, most = (format_share(ns, saves.of_ns) if ns else "nothing" for ns in (saves.ns, saves.high_ns))
    said = "" if saves.has_bounds or saves.cannot_tell or likely == most else f", likely {likely}"
    return f"{clip(title, MOST_TITLE)} · saves {saves.figure} of {saves.whole}{said} (replay)"


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
