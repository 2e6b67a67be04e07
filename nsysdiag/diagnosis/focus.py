"""The phase that the headline and the findings are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct, field

from nsysdiag import typed
from nsysdiag.arrays.groups import summed
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.bottlenecks import UNKNOWN
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.fields import Sentence
from nsysdiag.phases.facts import (
    LEAST_WORK,
    Basis,
    PhaseDevice,
    PhaseSteps,
    added,
    done_by,
    numbered,
    repeating,
    unsteady_name,
)
from nsysdiag.phases.phases import CHOSEN, INSIDE_STEP, JobPhases
from nsysdiag.phases.steps import FoundPhase
from nsysdiag.typed import say
from nsysdiag.units import format_ns

SECOND_NS = 1_000_000_000
"""One second."""
SEEN_LATER = SECOND_NS
"""Work after start-up, so that a capture which begins there holds some."""


WORTH = 0.02
"""Of the time of all judged phases: a phase with less outside of kernels has little to gain there."""


class Focus(Struct, frozen=True):
    """The set of time `parts` and the places of its phases; `phase` is the place of the one, None if it is all."""

    parts: Intervals
    places: list[int]
    phase: int | None


class Scope(Struct, frozen=True):
    """What is judged: the basis, and the phase, None for more than one. `place` is the index of the phase in the
    report, `which` its name among several that repeat (`steady 2`, `repeats 1`). `later` is a whole second after all
    start-up causes that is followed by work for at least SEEN_LATER, or None. `others` is the time in ns of all other
    phases by name. `phases` is where the first phase begins and the last one ends, None for several traces. `started`
    says that the first one begins with the first CUDA call. `chosen`: the user chose the time.
    `inside_step`: it is a part of one step. `steady_ns` is the length of steady phases in a cold start,
    `few_ns` that of phases with few steps. `paged_ns`:
    after the last phase, pages of unified memory move for so long. `around` is what the host did before the first phase
    and after the last one. `paused` is what was done for most of the time of pauses. `held`: the first work waited for
    work that is not in the trace."""

    basis: Basis
    phase: FoundPhase | None = None
    place: int | None = None
    which: str = ""
    later: int | None = None
    others: Mapping[str, int] = field(default_factory=dict)
    phases: tuple[int, int] | None = None
    started: bool = False
    chosen: bool = False
    inside_step: bool = False
    steady_ns: int = 0
    few_ns: int = 0
    paged_ns: int = 0
    around: tuple[Sentence, Sentence] = ("", "")
    paused: Sentence = ""
    held: bool = False

    @classmethod
    def of(
        cls,
        found: JobPhases,
        focus: Focus,
        paging: Intervals | None = None,
        around: tuple[Sentence, Sentence] = ("", ""),
        devices: Sequence[Sequence[PhaseDevice]] = (),
    ) -> Scope:
        """That of a job of which one phase, or all, are in focus; `paging` is the set of time in which pages move.
        `devices` holds a record for each device and phase."""
        others: dict[str, int] = summed(_others(found, focus, devices))
        rest = partial(
            cls,
            others=others,
            phases=(found.phases[0].start, found.phases[-1].end) if found.phases else (0, 0),
            paged_ns=_after_all(found, paging),
            around=around,
            paused=_paused(found, devices),
            started=bool(found.phases) and found.phases[0].name == "start-up",
            chosen=found.reason == CHOSEN,
            inside_step=found.reason == INSIDE_STEP,
            held=found.held,
        )
        steady = [at for at, phase in enumerate(found.phases) if phase.name == "steady"]
        if focus.phase is None:
            every = [found.phases[at] for at in steady]
            whole = sum(phase.end - phase.start for phase in every)
            few = sum(phase.end - phase.start for phase in every if phase.steps and phase.steps.few)
            return rest(found.basis, later=_later(found), steady_ns=whole - few, few_ns=few)
        several = focus.phase in steady and len(steady) > 1
        basis = found.basis_of(focus.phase)
        names = numbered([repeating(found.phases[at].steps, basis) for at in steady])
        which = names[steady.index(focus.phase)] if several else ""
        return rest(basis, found.phases[focus.phase], focus.phase, which)

    @property
    def phases_ns(self) -> int | None:
        """The time of all phases."""
        return None if self.phases is None else self.phases[1] - self.phases[0]

    @property
    def steps(self) -> PhaseSteps | None:
        """The steps of which savings are a part."""
        if self.phase is None or self.phase.steps is None or self.basis not in ("steady", "phase"):
            return None
        return self.phase.steps if self.phase.steps.of_the_program else None


def _others(found: JobPhases, focus: Focus, devices: Sequence[Sequence[PhaseDevice]]) -> Iterator[dict[str, int]]:
    """The length of each phase that is not in focus, by its name."""
    for at, phase in enumerate(found.phases):
        if at not in focus.places:
            yield {unsteady_name(phase.name, [each[at] for each in devices]): phase.end - phase.start}


def _paused(found: JobPhases, devices: Sequence[Sequence[PhaseDevice]]) -> Sentence:
    """What a device or its host did for more than half of the time of all pauses, in words; empty if nothing known."""
    phases = ((phase, [each[at] for each in devices]) for at, phase in enumerate(found.phases))
    pauses = [(phase.end - phase.start, here) for phase, here in phases if unsteady_name(phase.name, here) == "pause"]
    account = summed(each.account for _, here in pauses for each in here)
    did = [each for _, here in pauses for each in done_by(here)]
    ns = summed({typed.plain(each.text): each.ns} for each in did)
    half = sum(length for length, _ in pauses) / 2
    most = next((each.text for each in did if ns[typed.plain(each.text)] > half), None)
    if most is None or 2 * account.get(UNKNOWN, 0) > sum(account.values()):
        return ""
    return say("{} {}", most, format_ns(ns[typed.plain(most)]))


def _after_all(found: JobPhases, paging: Intervals | None) -> int:
    """How much of `paging` is after the last phase."""
    if paging is None or not found.phases or not len(paging):
        return 0
    return int(np.maximum(paging.end - np.maximum(paging.start, found.phases[-1].end), 0).sum())


def _later(found: JobPhases) -> int | None:
    """The trace's clock begins with the program only if the trace holds its start. A program may end with the trace, so
    time after the last work is not worth capturing."""
    if found.basis != "cold" or found.started is None or found.started < 0:
        return None
    second = -(-found.started // SECOND_NS)
    return second if second * SECOND_NS + SEEN_LATER <= found.end else None


def focus_of(phases: JobPhases, devices: list[list[PhaseDevice]]) -> Focus:
    """The judged phase with most time outside kernels, or the longest one if that is little; all phases of a cold
    start. `devices` holds a record for each device and phase."""
    if not phases.phases:
        return Focus(Intervals.empty(), [], None)
    if phases.basis in ("cold", "none") or not phases.judged:
        places = list(range(len(phases.phases)))
        return Focus(Intervals.of([(phases.start, phases.end)]), places, None)
    at = _most(phases.judged, devices)
    phase = phases.phases[at]
    return Focus(Intervals.of([(phase.start, phase.end)]), [at], at)


def _most(judged: list[int], devices: list[list[PhaseDevice]]) -> int:
    """Of the judged phases the one in which there is most to gain."""
    of_phase = {at: [each[at] for each in devices] for at in judged}
    outside = {at: _outside_kernels(its) for at, its in of_phase.items()}
    time = {at: sum(job_account(its).values()) for at, its in of_phase.items()}
    least = WORTH * sum(time.values())
    return max(judged, key=lambda at: (outside[at] if outside[at] >= least else 0, time[at], -at))


def judged_parts(devices: list[list[PhaseDevice]], focus: Focus) -> list[PhaseDevice]:
    """What each device did in the phases in focus."""
    return [added([phases[at] for at in focus.places]) for phases in devices] if focus.places else []


def working(devices: list[PhaseDevice]) -> list[PhaseDevice]:
    """The devices that are not merely touched."""
    work = [each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in devices]
    most = max(work, default=0)
    return [each for each, ns in zip(devices, work, strict=True) if ns >= LEAST_WORK * most]


def window_ns(device: PhaseDevice) -> int:
    """The time of the phase inside the device's window."""
    return device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns + device.idle_ns


def job_account(devices: list[PhaseDevice]) -> dict[str, int]:
    """The time of all devices that work, by bottleneck."""
    return summed(device.account for device in working(devices))


def _outside_kernels(devices: list[PhaseDevice]) -> int:
    """A device that waits for another one's kernels is outside of kernels itself."""
    waited = sum(each.ns for device in working(devices) for each in device.waited if each.bottleneck in KERNELS)
    return waited + sum(ns for name, ns in job_account(devices).items() if name not in KERNELS)
