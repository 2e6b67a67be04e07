"""The steps that build the model of the judged time, which a replay runs again with something changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.causes.evidence import HostEvidence
from nsysdiag.config.settings import Settings
from nsysdiag.events.collectives import KINDS, MEETINGS
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.pipeline import trace as trace_steps
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.pipeline.stages import Steps
from nsysdiag.ranks.clocks import bring_together
from nsysdiag.ranks.matching import candidates, confirmed
from nsysdiag.ranks.timeline import rank_timeline
from nsysdiag.replay.meetings import Met
from nsysdiag.replay.model import Model, model_of
from nsysdiag.replay.stretch import Stretch, stretch_of
from nsysdiag.report import Report
from nsysdiag.trace.strings import Strings
from nsysdiag.trace.trace import Trace
from nsysdiag.wakeups.host_trace import Finder, HostTrace, WaitingThreads

COLD = "nothing repeats in this trace, so there is no steady time to predict"
NO_WORK = "no GPU work was recorded"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A report, and the model of its judged time, or a sentence why there is none."""

    report: Report
    model: Model | str


steps = Steps(trace_steps.steps)


@steps.step()
def met(trace: Trace, results: list[DeviceResult], devices: list[DeviceTimeline]) -> Met:
    """The communication kernels of the devices that are parts of one collective."""
    ranks = [rank_timeline(each.report.key, trace.file, 0, None, each, by_mpi=False) for each in results]
    if len(ranks) < 2:
        return Met.empty()
    proposed, _ = candidates(ranks)
    groups, _ = confirmed(ranks, proposed, bring_together(ranks, proposed))
    parts, count = [Met.empty()], 0
    for group in groups:
        if KINDS[group.kind] in MEETINGS:
            number = count + np.arange(len(group))
            for row, member in enumerate(group.members):
                parts.append(Met(number, np.full(len(group), devices[member].number), group.start[row]))
            count += len(group)
    return Met.concatenate(parts)


@steps.step()
def stretch(results: list[DeviceResult], activity: DeviceActivity) -> Stretch | str:
    """The time that is replayed, or why there is none."""
    if not results:
        return NO_WORK
    focus, found = results[0].focus, results[0].job_phases
    if found.basis == "cold" or focus.phase is None:
        return COLD
    loop = found.phases[focus.phase].loop
    return stretch_of(focus.parts, None if loop is None else loop.starts, np.sort(activity.operations.start))


@steps.step()
def model(
    stretch: Stretch | str,
    activity: DeviceActivity,
    evidence: HostEvidence,
    layered: LayeredEvidence,
    launching: WaitingThreads,
    host_trace: HostTrace,
    finder: Finder,
    strings: Strings,
    met: Met,
    settings: Settings,
) -> Model | str:
    """The model of that time, or why there is none."""
    if isinstance(stretch, str):
        return stretch
    floor = settings.thresholds.root_floor
    return model_of(stretch, activity, evidence, layered, launching, host_trace, finder, strings, met, floor)


@steps.step()
def replayed(report: Report, model: Model | str) -> Replayed:
    """Both."""
    return Replayed(report, model)
