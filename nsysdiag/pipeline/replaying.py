"""The model of the judged time, which a replay runs again with something changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import IntArray, Intervals, sorted_times, union
from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import MPI
from nsysdiag.events.collectives import KINDS, MEETINGS, SEND_RECEIVE, read_messages
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.iterations.loop import NVTX
from nsysdiag.ledger.classify import layer_evidence
from nsysdiag.ledger.untraced_graphs import untraced_on
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline.reading import HostReading, Reading
from nsysdiag.programs.names import ids_of
from nsysdiag.ranks.clocks import MatchedCollectives, RankTimeline, bring_together
from nsysdiag.ranks.matching import candidates, confirmed
from nsysdiag.replay.build import ReplayInputs, model_of
from nsysdiag.replay.meetings import Met, MpiCalls, Transfers, all_of, exchanges, mpi_calls, peers, waits_for_messages
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import Predictions
from nsysdiag.replay.work import MOST_OPERATIONS, TIMES_APART, Repeating, are_apart, stretch_of

NO_WORK = "no GPU work was recorded"
NOT_ASKED = "no replay was asked for"
MEET_BY_MPI = "the ranks of this trace wait for each other in MPI calls that cannot be matched"
PART, FEWEST = 0.05, 6_000
"""The share of all operations that is replayed inside an analysis. A replay takes a few µs per operation, so a dozen
findings take about a seventh of the analysis. Fewer operations than this limit cost nothing."""
MOST_IN_ANALYSIS = 30_000
"""So many operations are replayed inside an analysis if less would tell nothing: three steps, or a window without
steps. They take about a quarter of a second."""
Builder = Callable[[int, int], Model | str]


Meetings = tuple[Met, MpiCalls]
"""Where the ranks of a trace meet: the communication kernels that are parts of one collective, or calls of MPI."""


class MetDevices(Struct, frozen=True):
    """What a replay needs of all devices: `ranks` are the devices with their communication kernels, or with their calls
    of MPI if they meet `by_mpi`; `all_call` is whether each has such calls. Also the phases of the job, and the judged
    ones."""

    ranks: list[RankTimeline]
    by_mpi: bool
    all_call: bool
    job_phases: JobPhases
    focus: Focus


def _meetings(devices: MetDevices, host: HostReading) -> Meetings:
    """In calls of MPI the ranks of this trace meet if they do not in communication kernels."""
    met, calls, ranks = [Met.empty()], [MpiCalls.empty()], devices.ranks
    numbers = np.array([each.number for each in host.reading.devices])
    groups = _groups(devices)
    if devices.by_mpi:
        calls += [_calls(group, ranks, host.host) for group in groups]
    else:
        met += [_kernels(group, numbers) for group in groups]
        sent = [_transfers(number, rank) for number, rank in zip(numbers, ranks, strict=True)]
        met += [peers(Transfers.concatenate(sent).without(all_of(met)))]
    return all_of(met), all_of([*calls, waits_for_messages(read_messages(host.reading.trace))])


def _calls(group: MatchedCollectives, ranks: list[RankTimeline], host: HostActivity) -> MpiCalls:
    """The calls of a group of collectives."""
    thread = []
    for row, member in enumerate(group.members):
        own = ranks[member].collectives
        thread.append(host.axis.threads[own.stream[np.searchsorted(own.start, group.start[row])]])
    number = np.tile(np.arange(len(group)), len(group.members))
    return mpi_calls(np.concatenate(thread), group.start.reshape(-1), group.end.reshape(-1), number)


def _kernels(group: MatchedCollectives, numbers: IntArray) -> Met:
    """The kernels of a group of collectives, or of sends and receives on several devices."""
    device = numbers[group.members]
    if KINDS[group.kind] == SEND_RECEIVE:
        return exchanges(device, group.start, group.end)
    meeting = np.tile(np.arange(len(group)), len(group.members))
    return Met.collectives(meeting, np.repeat(device, len(group)), group.start.reshape(-1))


def _transfers(number: int, rank: RankTimeline) -> Transfers:
    """The sends and receives of the device with this number."""
    found = rank.collectives.take(rank.collectives.kind == KINDS.index(SEND_RECEIVE))
    return Transfers(np.full(len(found), number), found.stream, found.start, found.end)


def _groups(devices: MetDevices) -> Iterator[MatchedCollectives]:
    """The collectives that no rank leaves before all have come, a group of like ones each; and sends and receives on
    more than two devices, which may be groups."""
    ranks = devices.ranks
    if len(ranks) < 2:
        return
    proposed, _ = candidates(ranks)
    if not devices.by_mpi:
        yield from (each for each in proposed if KINDS[each.kind] == SEND_RECEIVE and len(each.members) > 2)
    for group in confirmed(ranks, proposed, bring_together(ranks, proposed))[0]:
        if KINDS[group.kind] in MEETINGS:
            yield group


def _repeating_time(devices: MetDevices, meetings: Callable[[], Meetings], parts: Intervals) -> Repeating | str:
    """The judged time with the borders of its steps, or why nothing in it can be predicted. `parts` is the time under
    analysis. A start that is judged begins with the first CUDA call."""
    if not devices.ranks:
        return NO_WORK
    if len(devices.ranks) > 1 and devices.all_call and not any(map(len, meetings())):
        return MEET_BY_MPI
    focus, found = devices.focus, devices.job_phases
    if are_apart(parts):
        return TIMES_APART
    if focus.phase is None:
        begin = min((each.start for each in found.phases), default=found.start)
        return Repeating(Intervals.of([(begin, found.end)] if found.phases else []), None)
    loop = found.phases[focus.phase].loop
    steps = None if loop is None or loop.kernels else loop.borders
    group = 1 if loop is None or loop.outer is None else loop.outer.per_iteration
    return Repeating(focus.parts, steps, loop is not None and loop.source == NVTX, max(group, 1))


def _hidden(device: DeviceTimeline, host: HostReading) -> Intervals:
    """The time in which graphs may run on a device of which the trace has no kernels, or not all."""
    partial = host.partial_graphs.spans.get(device.number)
    return union(untraced_on(device, host.reading.activity, host.untraced), *([] if partial is None else [partial]))


def _unseen_ranks(host: HostReading) -> bool:
    """Whether the program uses MPI, and none of its calls were traced: what it waits for may be other ranks."""
    return MPI in ids_of(host.frameworks) and not len(host.tables.mpi.start)


def builder_of(met: MetDevices, host: HostReading) -> Builder:
    """Builds the model of so many operations of that time, and of so many at most if it needs more; or says why
    there is none."""
    reading, devices = host.reading, host.reading.devices
    windows = [reading.windows[each.key] for each in devices]
    meetings = cache(lambda: _meetings(met, host))
    repeating_time = cache(lambda: _repeating_time(met, meetings, union(*(each.parts for each in windows))))
    # Few replays need one. It holds much, and that of the devices may still be there.
    finder = host.finder()

    def build(wanted: int, most: int) -> Model | str:
        repeating = repeating_time()
        if isinstance(repeating, str):
            return repeating
        # Migrations are replayed with what they are for: alone they are not work.
        starts = [each.operations.start[~each.operations.migration] for each in devices]
        stretch = stretch_of(repeating.parts, repeating.steps, sorted_times(np.concatenate(starts)), wanted, most)
        if isinstance(stretch, str):
            return stretch
        stretch = replace(stretch, named=repeating.named, group=repeating.group)
        threads, traced, evidence = host.launching, host.traced, host.layered
        if stretch.begin < traced.low:  # a start that is judged begins before the first work of a device
            traced = replace(traced, low=stretch.begin)
            threads = traced.waiting(host.launching.host.axis.threads)
            evidence = layer_evidence(HostEvidence.of(threads.host, threads.facts))
        return model_of(
            ReplayInputs(
                stretch=stretch,
                activity=reading.activity,
                devices=[each.number for each in devices],
                layered=evidence,
                launching=threads,
                host_trace=traced,
                finder=finder,
                strings=reading.strings,
                met=meetings()[0],
                met_by_mpi=meetings()[1],
                hidden={each.number: _hidden(each, host) for each in devices},
                unseen_ranks=_unseen_ranks(host),
                floor=reading.settings.thresholds.root_floor,
            )
        )

    return build


def predictions_of(builder: Builder, reading: Reading, background: Background) -> Predictions | str:
    """The predicted savings of findings, by the replay of a stretch short enough to cost little compared with the
    analysis; or why nothing is predicted."""
    if not reading.settings.replay:
        return NOT_ASKED
    wanted = min(max(round(PART * len(reading.activity.operations)), FEWEST), MOST_OPERATIONS)
    model = builder(wanted, MOST_IN_ANALYSIS)
    return model if isinstance(model, str) else Predictions.of(model, background)
