"""Each GPU of the judged time in a row: what it did, what took most of its time, and where the two are counted
differently."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import FEW_KERNELS, UNKNOWN, title_of
from nsysdiag.diagnosis.facts import KERNELS, noun_of
from nsysdiag.document.axis import edge_ticks, moment_labels
from nsysdiag.document.blocks import PAGE, Block, Chart, Column, Limit, Lines, Paragraph, Part, Table
from nsysdiag.document.columns import NAME, SHARE, STACK, TEXT, part
from nsysdiag.document.drawings import StackedBar, bottleneck_entry, stack
from nsysdiag.document.svg import fits
from nsysdiag.document.view import by_time
from nsysdiag.document.words import counted
from nsysdiag.phases.facts import PASS, done, numbered, repeating, shown_as, unsteady_name
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsysdiag.findings.facts import Finding
    from nsysdiag.phases.facts import Phase, PhaseDevice

    """By device what it did in the judged phases."""
    Judged = Mapping[str, Sequence[PhaseDevice]]


# The drawings of a diagnosis: the phases over time, and the judged time by bottleneck.

# Bottlenecks in words: inside a sentence, and as a label.

UNSEEN_LABEL = "Host outside CUDA calls, not captured"
"""Unknown time in a trace without OS calls, scheduling events and CPU samples."""
OUTPUT = "output"
FIX_FIRST, LOOK_FIRST, IF_STARTS_MATTER = "Fix first", "Look at first", "If starts matter"


def label(bottleneck: str, *, host_unseen: bool = False) -> str:
    """A bottleneck as a label; one of a later version stands for itself."""
    if host_unseen and bottleneck == UNKNOWN:
        return UNSEEN_LABEL
    return title_of(bottleneck)


def phase_label(phase: Phase, name: str, *, judged: bool = False, judged_ns: int = 0, host_unseen: bool = False) -> str:
    """`steady (425 ms, 30 steps, median 12.0 ms, judged)`; `judged`: judged phases are marked. One that is not judged
    says what it did: `start-up (863 ms: cudaHostAlloc 308 ms)`, and the reason if it repeats. One that is longer than
    the judged time `judged_ns`, and whose work has no name, has its bottleneck."""
    facts = [format_ns(phase.counted_ns), *([phase.steps.words] if phase.steps else [])]
    facts += ["judged"] if judged and phase.judged else []
    facts += ["too short to judge"] if phase.name == "steady" and not phase.judged else []
    did = "" if phase.judged else done(phase.devices)
    if not did and judged_ns and not phase.judged and phase.end_ns - phase.start_ns > judged_ns:
        did = f"{noun_of(phase.shown, host_unseen=host_unseen)} {format_share(phase.share, 1)}"
    return f"{name} ({', '.join(facts)}{did and f': {did}'})"


def phase_verdict(phase: Phase, name: str, *, host_unseen: bool = False) -> str:
    """`steady 1 (3.50 s, 1,000 steps, median 3.50 ms): kernels 98.6%`."""
    noun = noun_of(phase.shown, host_unseen=host_unseen)
    return f"{phase_label(phase, name)}: {noun} {format_share(phase.share, 1)}"


FEW_SAMPLES = 10
"""Fewer say nothing of symbols that a program lacks."""


def naming(host_code: Finding, *, sampled: bool) -> str:
    """What would name host code: CPU samples if there are none, else NVTX ranges."""
    what = f"host code ({format_share(host_code.share, 1)} of the time)"
    if not sampled:
        return f"The trace has no CPU samples that name {what}."
    count = next((each.count or 0 for each in host_code.measured if each.kind == "samples"), FEW_SAMPLES)
    if count < FEW_SAMPLES:
        there = f"Only {counted(count, 'CPU sample')}" if count else "No CPU sample"
        return f"{there} {'is' if count < 2 else 'are'} in {what}, too few to name it: add NVTX ranges."
    if not host_code.call:
        return f"CPU samples do not name {what}: build it with symbols (-g)."
    return f"Most CPU samples in {what} name only {host_code.call}: add NVTX ranges."


PHASES_OVER_TIME = "The phases of the job over time, in the colour of what takes most of each"
JUDGED_TIME = "Judged time by bottleneck"
MOST_PHASES = 4
"""Phases that the first screen describes, judged ones first; of the others it says how many they are. A round number:
nothing depends on it closely."""
LEAST_LEGEND = 0.005
"""Share of the whole below which a part is too narrow to draw."""


def accounts(devices: Sequence[PhaseDevice]) -> dict[str, int]:
    """The time of some devices and phases by bottleneck, the largest first. Kernels are one, as in the headline, if
    few of them leave most of the GPU empty, or few do not; or graphs, if most of it is that."""
    return _ordered(summed(device.account for device in devices), devices)


def longest_part(devices: Sequence[PhaseDevice], *, host_unseen: bool = False) -> tuple[str, int]:
    """The largest part of a device's time in some phases, and its length. Waiting for another GPU is a separate
    part."""
    own, waits = Counter(summed(device.account for device in devices)), Counter[str]()
    for each in (each for device in devices for each in device.waited):
        own[each.bottleneck] -= each.ns
        waits[f"Waits for {each.device}"] += each.ns
    parts = {label(name, host_unseen=host_unseen): ns for name, ns in _ordered(own, devices).items()} | waits
    return max(parts.items(), key=lambda part: part[1], default=(label("unknown"), 0))


def _ordered(total: dict[str, int], devices: Sequence[PhaseDevice]) -> dict[str, int]:
    small, large = sorted(KERNELS, key=lambda name: total.get(name, 0))
    if 0 < total.get(small, 0) < FEW_KERNELS * sum(total.values()):
        total[large] += total.pop(small)
    return {shown_as(name, devices): ns for name, ns in by_time(total)}


def account_stack(account: dict[str, int], said: str, *, host_unseen: bool = False) -> StackedBar:
    """A stacked bar of time by bottleneck."""
    parts = ((bottleneck_entry(name, label(name, host_unseen=host_unseen)), ns) for name, ns in account.items())
    return StackedBar(said, stack(parts), sum(account.values()))


def account_chart(account: dict[str, int], title: str = JUDGED_TIME, *, host_unseen: bool = False) -> Chart:
    """The judged time of all devices by bottleneck, with what the colours mean."""
    total = sum(account.values())
    legend = [
        replace(bottleneck_entry(name), label=f"{label(name, host_unseen=host_unseen)} {format_share(ns, total)}")
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
        (bottleneck_entry(phase.bottleneck, _on_bar(name, phase, whole, tell=tell)), phase.end_ns - phase.start_ns)
        for name, phase in zip(names, phases, strict=True)
    ]
    there = [phase for phase in phases if phase.end_ns > phase.start_ns]
    segments = [replace(each, faded=tell and not phase.judged) for each, phase in zip(stack(parts), there, strict=True)]
    borders = [phases[0].start_ns, *(phase.end_ns for phase in phases)]
    drawing = StackedBar(
        PHASES_OVER_TIME,
        segments,
        whole,
        over_time=True,
        ticks=edge_ticks(borders) if whole > 0 else [],
        start_ns=borders[0],
    )
    times = moment_labels(borders)
    words = [judged_word(phases, at, about) if tell else "" for at in range(len(phases))]
    captions: list[list[Part]] = [
        [
            bottleneck_entry(phase.bottleneck, f"{times[at]} to {times[at + 1]}{words[at] and f', {words[at]}'}: "),
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
    return long if tell and phase.judged and fits(long, phase.end_ns - phase.start_ns, whole) else name


_ENDS = {"head": "head of the slice", "tail": "tail of the slice", "outside": "outside of the named steps"}


def phase_names(phases: Sequence[Phase], basis: str = "steady") -> list[str]:
    """The names of phases, with a number if several have the same. One that is judged because it is all there is, is
    the window, whether it is steady or not; few repeats are not a steady state. What is between or behind steps, and
    mostly writes, is output: a checkpoint, or results. A pause in which devices work is other work."""
    if basis == "window" and len(phases) == 1 and not _is_pass(phases[0]):
        return ["window"]
    plain = [repeating(phase.steps, basis) if phase.name == "steady" else _rest_name(phase) for phase in phases]
    plain = [PASS if _is_pass(phase) else _ENDS.get(name, name) for phase, name in zip(phases, plain, strict=True)]
    return numbered(plain)


def _rest_name(phase: Phase) -> str:
    return OUTPUT if _writes(phase) else unsteady_name(phase.name, phase.devices)


def _is_pass(phase: Phase) -> bool:
    return phase.steps is not None and phase.steps.kind == PASS


def _writes(phase: Phase) -> bool:
    """Whether a pause, or what follows the last step, writes for more than half of its time."""
    if phase.name not in ("pause", "teardown"):
        return False
    did = (each for device in phase.devices for each in device.did)
    return any(each.writes and 2 * each.ns > phase.counted_ns for each in did)


def sentences(phases: Sequence[Phase], names: Sequence[str]) -> list[str]:
    """What each phase says of itself, under its name of `names`."""
    return [
        phase.sentence
        if phase.steps is not None and phase.steps.kind == PASS  # which it begins with
        else name.capitalize() + phase.sentence[len(phase.name) :]
        for name, phase in zip(names, phases, strict=True)
    ]


SPLIT = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
NAMED = Column("GPU", NAME, head=True, length=24)
LATE = Column("For late peers", SHARE)
PAGING = Column("Paging in kernels", SHARE)
BY_BOTTLENECK = Column("By bottleneck", STACK, limit=PAGE)
GPU, JOINED_LENGTH = "gpu", 40
_GPU = re.compile(r"gpu\d+")
WRITTEN_OUT = 2
"""So many numbers in a row are not shortened."""
SEEN = 0.001
"""Of a GPU's time: less is not worth a sentence."""
FOR_PEERS = "For late peers: Comm. kernels that wait for late GPUs; charged to what made those late, if known."
WAITS_COUNT = "By bottleneck, a wait for another GPU is charged to what that GPU did meanwhile."
INSIDE_MPI = "Idle time inside MPI calls is charged to communication."


def account_table(
    judged: Judged, title: str, limit: Limit, named: Column = NAMED, noun: str = "", *, host_unseen: bool = False
) -> list[Block]:
    """A row for each device, and what counts elsewhere than its column says. A single one has no bar, as the one of the
    job is above."""
    waits, pages = _reaches(judged, _late), _reaches(judged, _paged)
    columns = [
        named,
        Column("Compute", SHARE),
        *([PAGING] if pages else []),
        Column("Comm. kernels", SHARE),
        *([LATE] if waits else []),
        Column("Copies", SHARE),
        Column("Idle", SHARE),
        Column("Most time", TEXT),
        Column("Share", SHARE),
        *([BY_BOTTLENECK] if len(judged) > 1 else []),
    ]
    table = Table(title, tuple(columns), _rows(judged, waits=waits, pages=pages, host_unseen=host_unseen), limit=limit)
    notes = [FOR_PEERS] if waits else []
    notes += [WAITS_COUNT] if any(each.waited for phases in judged.values() for each in phases) else []
    notes += [INSIDE_MPI] if _reaches(judged, _in_mpi) else []
    said = [Paragraph(" ".join(notes), "quiet", limit)] if notes else []
    return [replace(table, noun=noun) if noun else table, *said]


def joined(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of `account_table` with one row for all GPUs that show the same figures, in the place of the first:
    `gpu0–4, 6, 7`. For text: the page keeps a row, and a bar, for each."""
    return [_joined(each) if isinstance(each, Table) else each for each in blocks]


def _joined(table: Table) -> Table:
    shown = [at for at, column in enumerate(table.columns) if at and column is not BY_BOTTLENECK]
    same: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for row in table.rows:
        apart = "" if _GPU.fullmatch(str(row[0])) else str(row[0])
        same.setdefault((apart, *(table.columns[at].kind.text(row[at]) for at in shown)), []).append(row)
    rows = [(_numbered([str(row[0]) for row in group]), *group[0][1:]) for group in same.values()]
    return replace(table, columns=[replace(table.columns[0], length=JOINED_LENGTH), *table.columns[1:]], rows=rows)


def _numbered(keys: Sequence[str]) -> str:
    """`gpu0–4, 6, 7` for several GPUs; a single key as it is."""
    if len(keys) == 1:
        return keys[0]
    runs: list[list[int]] = []
    for number in sorted(int(each.removeprefix(GPU)) for each in keys):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [f"{run[0]}–{run[-1]}" if len(run) > WRITTEN_OUT else ", ".join(map(str, run)) for run in runs]
    return GPU + ", ".join(said)


def _paged(device: PhaseDevice) -> int:
    """The time of kernels that is charged to memory: unified memory is paged inside them."""
    kernels = sum(device.account.get(name, 0) for name in KERNELS)
    return min(max(device.compute_ns - kernels, 0), device.account.get("memory", 0))


def _rows(judged: Judged, *, waits: bool, pages: bool, host_unseen: bool) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    order = accounts([each for phases in judged.values() for each in phases])  # the same in all rows
    for key, phases in judged.items():
        parts, paged = [_sum(phases, name) for name in SPLIT], sum(map(_paged, phases))
        account, whole = accounts(phases), sum(parts)
        total = sum(account.values())
        what, longest_ns = longest_part(phases, host_unseen=host_unseen)
        bar = account_stack(
            {name: account.get(name, 0) for name in dict.fromkeys((*order, *account))},
            f"How the judged time of {key} divides by bottleneck",
            host_unseen=host_unseen,
        )
        shown = [parts[0] - paged, *([paged] if pages else []), parts[1]]
        shown += [*([sum(map(_late, phases))] if waits else []), *parts[2:]]
        rows.append((key, *(part(each, whole) for each in shown), what, part(longest_ns, total), bar))
    return rows


def _sum(phases: Sequence[PhaseDevice], name: str) -> int:
    return sum(getattr(each, name) for each in phases)


def _reaches(judged: Judged, time: Callable[[PhaseDevice], int]) -> bool:
    """Whether it is a visible part of the time of some device."""
    return any(sum(map(time, phases)) > SEEN * sum(_sum(phases, name) for name in SPLIT) for phases in judged.values())


def _late(device: PhaseDevice) -> int:
    """What it waited for late ones, whatever that is charged to."""
    return device.late_ns + device.late_kept_ns


def _in_mpi(device: PhaseDevice) -> int:
    """Communication beyond what its kernels took, and beyond that of GPUs that it waited for."""
    elsewhere = sum(each.ns for each in device.waited if each.bottleneck == "communication")
    return device.account.get("communication", 0) + device.late_ns - device.exposed_comm_ns - elsewhere
