"""The drawings of a diagnosis: the phases over time, and the judged time by bottleneck."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.arrays.groups import summed
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.diagnosis.words import COLORS, WORK, label
from nsysdiag.document.axis import edge_ticks, moment_labels
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.blocks import PAGE, Block, Chart, Lines, Part
from nsysdiag.document.figures import CHARACTER_PERCENT, Stack, stack
from nsysdiag.document.view import UNKNOWN_COLOR
from nsysdiag.document.words import counted
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.phases.facts import Phase, PhaseDevice

PHASES_OVER_TIME = "The phases of the job over time, in the colour of what takes most of each"
JUDGED_TIME = "Judged time by bottleneck"
MOST_PHASES = 4
LEAST_KERNELS = 0.05
"""Share of the whole from which kernels on a mostly empty GPU are shown as a separate part."""
LEAST_LEGEND = 0.005
"""Share of the whole below which a part is too narrow to draw."""


def accounts(devices: Sequence[PhaseDevice]) -> dict[str, int]:
    """The time of some devices and phases by bottleneck, the largest first. Kernels are one, as in the headline, where
    few of them leave most of the GPU empty, or few do not."""
    return _ordered(summed(device.account for device in devices))


def longest_part(devices: Sequence[PhaseDevice], *, host_unseen: bool = False) -> tuple[str, int]:
    """The largest part of a device's time in some phases, and its length. Waiting for another GPU is a separate
    part."""
    own, waits = Counter(summed(device.account for device in devices)), Counter[str]()
    for each in (each for device in devices for each in device.waited):
        own[each.bottleneck] -= each.ns
        waits[f"Waits for {each.device}"] += each.ns
    parts = {label(name, host_unseen=host_unseen): ns for name, ns in _ordered(own).items()} | waits
    return max(parts.items(), key=lambda part: part[1], default=(label("unknown"), 0))


def _ordered(total: dict[str, int]) -> dict[str, int]:
    small, large = sorted(KERNELS, key=lambda name: total.get(name, 0))
    if 0 < total.get(small, 0) < LEAST_KERNELS * sum(total.values()):
        total[large] += total.pop(small)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def account_stack(account: dict[str, int], said: str, *, host_unseen: bool = False) -> Stack:
    """A stacked bar of time by bottleneck."""
    parts = [(label(name, host_unseen=host_unseen), ns, *_fill(name)) for name, ns in account.items()]
    return Stack(said, stack(parts), sum(account.values()))


def account_chart(account: dict[str, int], title: str = JUDGED_TIME, *, host_unseen: bool = False) -> Chart:
    """The judged time of all devices by bottleneck, with what the colours mean."""
    total = sum(account.values())
    legend = [
        replace(_entry(name), label=f"{label(name, host_unseen=host_unseen)} {format_share(ns, total)}")
        for name, ns in account.items()
        if ns > LEAST_LEGEND * total
    ]
    return Chart(account_stack(account, title, host_unseen=host_unseen), title, legend=legend, id="judged-time")


def phase_strip(phases: Sequence[Phase], basis: str = "steady", about: int | None = None) -> list[Block]:
    """The phases over time, those that are not judged paler, and a sentence about each of a few; the headline is
    `about` one."""
    names = phase_names(phases, basis)
    tell = any(phase.judged for phase in phases) and not all(phase.judged for phase in phases)
    whole = phases[-1].end_ns - phases[0].start_ns
    parts = [
        (_on_bar(name, phase, whole, tell=tell), phase.end_ns - phase.start_ns, *_fill(phase.bottleneck))
        for name, phase in zip(names, phases, strict=True)
    ]
    there = [phase for phase in phases if phase.end_ns > phase.start_ns]
    segments = [
        replace(each, faded=tell and not phase.judged, has_label=_fits(each.label, each.ns, whole))
        for each, phase in zip(stack(parts), there, strict=True)
    ]
    borders = [phases[0].start_ns, *(phase.end_ns for phase in phases)]
    drawing = Stack(
        PHASES_OVER_TIME,
        segments,
        whole,
        over_time=True,
        ticks=edge_ticks(borders) if whole > 0 else (),
        start_ns=borders[0],
    )
    times = moment_labels(borders)
    words = [judged_word(phases, at, about) if tell else "" for at in range(len(phases))]
    captions: list[list[Part]] = [
        [
            _entry(phase.bottleneck, f"{times[at]} to {times[at + 1]}{words[at] and f', {words[at]}'}: "),
            sentence,
        ]
        for at, (phase, sentence) in enumerate(zip(phases, sentences(phases, names), strict=True))
    ]
    rest = len(captions) - MOST_PHASES
    more: list[list[Part]] = [[f"And {counted(rest, 'more phase')}."]] if rest > 0 else []
    strip = Chart(drawing, PHASES_OVER_TIME, id="phases")
    return [strip, Lines([*(captions[at] for at in shown_phases(phases)), *more], PAGE)]


def judged_word(phases: Sequence[Phase], place: int, about: int | None, word: str = "judged") -> str:
    """`word` for a phase that is judged; of several that are, the one that the headline is about says so."""
    several = sum(phase.judged for phase in phases) > 1
    return "" if not phases[place].judged else f"{word}, see headline" if several and place == about else word


def shown_phases(phases: Sequence[Phase]) -> list[int]:
    """The places of the few phases that are shown, in time: judged ones before others, the first before later ones."""
    places = sorted(range(len(phases)), key=lambda at: (not phases[at].judged, at))
    return sorted(places[:MOST_PHASES])


def _on_bar(name: str, phase: Phase, whole: int, *, tell: bool) -> str:
    long = f"{name}, judged"
    return long if tell and phase.judged and _fits(long, phase.end_ns - phase.start_ns, whole) else name


def _fits(text: str, ns: int, whole: int) -> bool:
    return 100 * ns >= CHARACTER_PERCENT * (len(text) + 1) * whole


def phase_names(phases: Sequence[Phase], basis: str = "steady") -> list[str]:
    """The names of phases, with a number where several have the same. One that is judged because it is all there is, is
    the window, whether it is steady or not; few repeats are no steady state."""
    if basis == "window" and len(phases) == 1:
        return ["window"]
    steady = "repeats" if basis == "phase" else "steady"
    plain = [steady if phase.name == "steady" else phase.name for phase in phases]
    seen: Counter[str] = Counter()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name} {seen[name]}" if plain.count(name) > 1 else name)
    return names


def sentences(phases: Sequence[Phase], names: Sequence[str]) -> list[str]:
    """What each phase says of itself, under its name of `names`."""
    return [
        name.capitalize() + phase.sentence[len(phase.name) :]
        if phase.sentence.lower().startswith(phase.name)
        else phase.sentence
        for name, phase in zip(names, phases, strict=True)
    ]


def _fill(bottleneck: str) -> tuple[str | None, str]:
    """Colour and kind of a segment: one of the two."""
    part = WORK.get(bottleneck, "")
    return (None, part) if part else (COLORS.get(bottleneck, UNKNOWN_COLOR), "")


def _entry(bottleneck: str, text: str = "") -> LegendEntry:
    color, part = _fill(bottleneck)
    return LegendEntry(text or label(bottleneck), part, color or "")
