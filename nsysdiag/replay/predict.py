"""How long a step, or the window, is after changes, and between which bounds."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, intersect, union
from nsysdiag.errors import UsageError
from nsysdiag.events.rows import distinct_values
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.graph import NEVER_NS, Edges, Kind, replay
from nsysdiag.replay.model import Model
from nsysdiag.replay.mpi_peers import most_sooner, without_waits
from nsysdiag.replay.repairs import may_only_move, repair
from nsysdiag.replay.reshaped import with_edges
from nsysdiag.replay.sources import source_may_limit
from nsysdiag.replay.step_work import StepWork
from nsysdiag.replay.stretch import first_border
from nsysdiag.replay.transforms import MOST_NEAR, SHAPES, apply, edges_of
from nsysdiag.replay.work import Class
from nsysdiag.report import Finding

MOST_ERROR = 0.02
"""Of the length: a model that is further off predicts nothing."""
MOST_OUTLIVED = 0.2
"""Of the replayed time: a model with synchronizations that outlast what they are known to wait for by more predicts
nothing."""
LEAST_ERROR = 0.005
"""Share of the length: no prediction is better, however well the model reproduces the recorded length."""
MOST_APART = 0.25
"""Of the length: a prediction whose bounds are further apart says only that it cannot tell."""
LEAST_WORK = 0.05
"""Of the busiest device's work: the steps of one with less say nothing."""
SAMPLES, SEED, SPREAD = 200, 1, (2.5, 97.5)


class Run(Struct, frozen=True):
    """One replay: the `times` of all moments; the start and end of each operation; the `borders` of the counted steps,
    in ns, at the end of their work; or those of the window, from its begin to the last end. `longer` is by how much the
    whole judged time needs a step to be longer, in ns, as its kernels take more of it. Between two borders are `each`
    steps."""

    times: IntArray
    start: IntArray
    end: IntArray
    borders: IntArray
    longer: int = 0
    each: int = 1

    @property
    def steps(self) -> IntArray:
        """The lengths between the borders."""
        return np.diff(self.borders)

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.steps) * self.each

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last border."""
        return int(self.borders[0]), int(self.borders[-1])

    @property
    def ns(self) -> int:
        """The mean length of a step, or the length of the window."""
        return round(float(self.steps.mean()) / self.each) + self.longer


class Prediction(Struct, frozen=True):
    """The length of a step or of the window as it was, as predicted with `changes`, and the bounds of that, in ns.
    `entangled`: more may be saved than what is repaired takes. Where processes run at once on a GPU, more may run at
    once; where ranks wait for each other, one may hold up another."""

    changes: Changes
    now: Run
    run: Run
    low_ns: int
    high_ns: int
    entangled: bool = False

    @property
    def cannot_tell(self) -> bool:
        """Whether the bounds are too far apart for the predicted length to say anything."""
        return self.high_ns - self.low_ns > MOST_APART * self.now.ns

    def saving(self, most: float) -> Prediction:
        """The same, but no more than this share is saved; what is entangled may still save more."""
        least = math.ceil((1 - most) * self.now.ns)
        run = replace(self.run, longer=max(least - self.run.ns, 0))
        low_ns = min(self.low_ns, run.ns) if self.entangled else max(self.low_ns, least)
        return replace(self, run=run, low_ns=low_ns, high_ns=max(self.high_ns, least))


def run_of(
    changes: Changes, *, proven: bool = False, observed: bool = True, pinned: bool = False, brief: bool = False
) -> Run:
    """Replay a model with changes."""
    ns, residual = changes.edges(proven=proven, observed=observed, pinned=pinned, brief=brief)
    first, each = changes.counted.tolist()
    return _run(changes.model, replay(changes.model.graph, ns, residual), changes.length, first, each)


def _run(model: Model, times: IntArray, length: IntArray, first: int = -1, each: int = 1) -> Run:
    start, end = times[model.places.operation], times[model.places.end] + length
    return Run(times, start, end, _borders(model, start, end, first, each), each=each)


def _borders(
    model: Model, start: IntArray, end: IntArray, first: int, each: int, least: StepWork = StepWork.OWN
) -> IntArray:
    """When the work of each step and of all before it is done, on the device that takes longest; from the `first` on,
    after `each` so many. That is work which is at `least` so much of the steps."""
    work, stretch = model.work, model.stretch
    inside = work.start < stretch.end
    # From a time that no change moves: else a window is longer once its first operation is earlier.
    whole = np.array([stretch.begin, end[inside].max()])
    if not stretch.stepwise:
        return whole
    inside &= model.step_work >= least
    busy = np.bincount(work.device, work.length * inside)
    step = np.searchsorted(stretch.borders, work.start, side="right") - 1
    found: list[IntArray] = []
    for device in np.flatnonzero(busy >= LEAST_WORK * busy.max()).tolist():
        mine = np.flatnonzero(inside & (work.device == device))
        done = np.full(len(stretch.borders) - 1, start[mine].min(initial=whole[0]))
        np.maximum.at(done, step[mine], end[mine])
        borders = np.maximum.accumulate(done)
        found.append(borders[first_border(len(borders)) if first < 0 else first :: each])
    return max((each for each in found if len(each) > 1), key=_step, default=whole)


def _step(borders: IntArray) -> float:
    return float(borders[-1] - borders[0]) / (len(borders) - 1)


def identity_of(model: Model) -> Identity:
    """How well the model reproduces the recording."""
    graph = model.graph
    now = _run(model, graph.time, model.length)
    same = run_of(Changes.none(model))
    exact = np.array_equal(same.start, now.start) and np.array_equal(same.end, now.end)
    residual = graph.residual.copy()
    residual[model.places.operation[~model.explained]] = 0
    ns = np.where(np.isin(graph.edges.kind, (Kind.OBSERVED, Kind.HIDDEN)), NEVER_NS, graph.asked)
    eager = _run(model, replay(graph, ns, residual), model.length)
    return Identity(exact=exact, length_error=round(abs(eager.ns - now.ns) / max(now.ns, 1), 6))


def too_far(identity: Identity) -> str:
    """Why a model predicts nothing."""
    error, most = f"{100 * identity.length_error:.1f}%", f"{100 * MOST_ERROR:.0f}%"
    return f"the model is {error} off the recorded length with nothing changed; more than {most} is too much"


def reason_against(model: Model, identity: Identity) -> str:
    """Why a model predicts nothing; empty where it does."""
    if identity.length_error > MOST_ERROR:
        return too_far(identity)
    if model.outlived.share > MOST_OUTLIVED:
        longer = f"{100 * model.outlived.share:.0f}% of the time"
        return f"for {longer} synchronizations wait for something that is not in the trace"
    return ""


def predict(
    model: Model, transforms: Sequence[Transform], identity: Identity, findings: Mapping[str, Finding] | None = None
) -> Prediction:
    """With all these transforms together; `findings` are those of the report by id. Raises UsageError where one matches
    nothing."""
    known = findings or {}
    repaired = [known[each.of] for each in transforms if each.option == "finding" and each.of in known]
    unsure = any(each.option in SHAPES for each in transforms) or any(may_only_move(model, each) for each in repaired)
    views = [View.LIKELY, *([View.LEAST, View.MOST] if unsure else [])]
    rewired = with_edges(model, Edges.concatenate([Edges.empty(), *(edges_of(model, each) for each in transforms)]))
    likely, *others = [Changes.none(rewired, view) for view in views]
    for changes in (likely, *others):
        for transform in transforms:
            if transform.option != "finding":
                apply(changes, transform)
            else:
                _repair(changes, transform.of, known)
    return prediction_of(likely, identity, others)


def _repair(changes: Changes, finding: str, findings: Mapping[str, Finding]) -> None:
    if finding not in findings:
        near = difflib.get_close_matches(finding, findings, MOST_NEAR, 0) or list(findings)
        raise UsageError(f"there is no finding '{finding}'", hint="findings: " + ", ".join(near))
    if reason := repair(changes, findings[finding], findings.values()):
        raise UsageError(
            f"the repair of finding '{finding}' cannot be replayed: {reason}", hint="the report has a bound instead"
        )


def prediction_of(changes: Changes, identity: Identity, others: Sequence[Changes] = ()) -> Prediction:
    """The prediction of changes. In the longer bound, uncertain waits for threads are as long as recorded. Waits that
    may have a time of their own grow by what is saved there: up to twice their length where that is not sure. So do
    synchronizations that outlast what they are known to wait for, and in the shorter bound they do not. In the
    shorter bound, if it saves more, operations do not wait for work that they only followed, and threads not for
    unknown ones. A source outside of the program that is asked in each step may be no faster. The lengths of the same
    changes made in other ways (`others`) are bounds, too. Calls of MPI that wait for one rank end when they did, or as
    soon as the changes may make that rank. Where kernels of several processes run at once, they meet none of the
    others, or so many more that nothing is saved. The spread of the steps and the error of the model widen both. But no
    step is shorter than the kernels of the device that computes most."""
    model = changes.model
    now, run = _run(model, model.graph.time, model.length), run_of(changes)
    alone, prompt = _without_slices(changes), without_waits(changes)
    extremes = [run_of(each) for each in (*others, *([] if alone is None else [alone]))]
    bounds = [run.ns, *(each.ns for each in extremes), *([] if alone is None else [now.ns])]
    if not changes.certain:
        bounds.append(run_of(changes, proven=True).ns)
    timed = model.threads.timed
    absorbed = timed.absorbs(model.stretch, changes.doubtful_times)
    gone = bool((timed.sure > changes.paced).any()) or model.outlived.share > 0
    gone |= bool((model.graph.edges.kind == Kind.HIDDEN).any())
    if absorbed or gone:
        pinned = run_of(changes, proven=True, pinned=True).ns
        bounds.append(pinned if gone else min(pinned, max(bounds) + absorbed))
    if model.outlived.share > 0:
        bounds.append(min(run.ns, run_of(changes, brief=True).ns))
    if run.ns < (1 - LEAST_ERROR) * now.ns and source_may_limit(changes):
        bounds.append(now.ns)
    if prompt is not None:  # the peers are late for another reason, or as far as the same changes make them
        bounds += [now.ns, max(run_of(prompt).ns, math.ceil(max(run.ns - most_sooner(changes), 0)))]
    bounds += [*_of_others(changes, now, run), *_without_peers(changes, now), *_of_locks(changes, now, run)]
    if model.explained.any():
        bounds.append(min(run_of(replace(changes, prompt=changes.prompt | model.explained)).ns, run.ns))
    if not changes.complete:
        least_ns = min(run_of(each, observed=False).ns for each in (changes, *others))
        bounds.append(min(now.ns - run_of(Changes.none(model), observed=False).ns + least_ns, run.ns))
    least = LEAST_ERROR * now.ns
    slack = round(max(identity.length_error * now.ns, least) + _spread(now.steps, run.steps // run.each))
    computing = min(_computing(model, each) for each in (run, *extremes))
    low = max(min(bounds) - slack, round(min(computing, run.ns) - least), 0)
    return Prediction(changes, now, run, low, max(bounds) + slack, alone is not None or prompt is not None)


def _without_slices(changes: Changes) -> Changes | None:
    """The same with kernels that meet none of another process, None where none do. With less idle time they may also
    meet more of them, and nothing is saved."""
    model = changes.model
    left = 1 - model.beside_others / np.maximum(model.work.length, 1)
    return replace(changes, length=np.round(changes.length * left).astype(np.int64)) if (left < 1).any() else None


def _of_others(changes: Changes, now: Run, run: Run) -> list[int]:
    """The lengths of a step in ns if work next to the steps, which may belong to them, does; and if steps that no range
    names are not those that were found, but what another thread does in a loop of its own. In a window without steps
    each of several threads may be meant."""
    model, found = changes.model, []
    if (model.step_work == StepWork.MAYBE).any():
        first, each = changes.counted.tolist()
        whole = [_borders(model, one.start, one.end, first, each, StepWork.MAYBE) for one in (now, run)]
        found.append(now.ns - round((_step(whole[0]) - _step(whole[1])) / run.each))
    if not model.stretch.named:
        thread = model.launched_by
        several = (thread != thread[0]).any() and not model.stretch.stepwise
        beside = (model.step_work < StepWork.OWN) | several
        for other in distinct_values(thread[beside]).tolist():
            ends = [np.sort(one.end[thread == other]) for one in (now, run)]
            took = [int(end[-1] - end[0]) for end in ends]
            found.append(round(now.ns * took[1] / took[0]) if took[0] else now.ns)
    return found


def _of_locks(changes: Changes, now: Run, run: Run) -> list[int]:
    """The lengths of a step in ns if locks are free when they are needed, and if they are held as long as they were:
    who holds one goes on at its own pace, and takes it at other times once the steps are shorter. A holder whose own
    time is changed releases it sooner."""
    model, edges = changes.model, changes.model.graph.edges
    woken = model.threads.woken
    repaired = distinct_values(model.program.thread[model.pieces.owner[changes.time < 1]])
    locks = (woken.lock > 0) & changes.woken & ~np.isin(woken.waker, repaired)
    if not locks.any():
        return []
    wakes = np.flatnonzero(edges.kind == Kind.WAKE)
    dropped = changes.dropped.copy()
    dropped[wakes[locks[edges.row[wakes]]]] = True
    free = run_of(replace(changes, dropped=dropped)).ns
    return [free, now.ns] if free < (1 - LEAST_ERROR) * run.ns else []


def _without_peers(changes: Changes, now: Run) -> list[int]:
    """The lengths of a step in ns for kernels that send or receive, of which the peers are not known. They last as long
    as they did, as the peers are late for another reason; or none waits for its peer any more."""
    model = changes.model
    if not model.unpaired.any():
        return []
    alone, length = np.flatnonzero(model.unpaired), changes.length.copy()
    least = np.full(len(model.names.texts), np.iinfo(np.int64).max)
    np.minimum.at(least, model.names.short[alone], model.length[alone])
    length[alone] = np.minimum(length[alone], least[model.names.short[alone]])
    return [now.ns, run_of(replace(changes, length=length)).ns]


def _computing(model: Model, run: Run) -> float:
    """How long the device that computes most does so in a step, in ns."""
    own = model.step_work == StepWork.OWN
    return max(busy(model, run, each, [Class.COMPUTE], own).total() for each in model.devices) / run.count


def busy(model: Model, run: Run, device: int, kinds: Sequence[Class], among: BoolArray | bool = True) -> Intervals:
    """When a device is busy with operations of these kinds in the counted time of a replay, a set; `among` marks those
    that are looked at."""
    work = model.work
    mine = (work.device == device) & np.isin(work.kind, kinds) & (run.end > run.start) & among
    return intersect(union(Intervals(run.start[mine], run.end[mine])), Intervals.of([run.span]))


def _spread(now: IntArray, then: IntArray) -> float:
    """The uncertainty of the mean saving of a step: half of the middle 95% of its means in samples of the steps."""
    count = min(len(now), len(then))
    if count < 2:
        return 0.0
    saved: FloatArray = (now[:count] - then[:count]).astype(np.float64)
    picks = np.random.default_rng(SEED).integers(0, count, (SAMPLES, count))
    low, high = np.percentile(saved[picks].mean(axis=1), SPREAD)
    return float(high - low) / 2
