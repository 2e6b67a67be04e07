"""How long a step, or the window, is after changes, and between which bounds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from nsysdiag.arrays.background import ALONE, Background
from nsysdiag.arrays.groups import summed
from nsysdiag.causes import PLACE, SYNCHRONIZATION
from nsysdiag.diagnosis.facts import LIKELY_BELOW, REPLAY, Predicted
from nsysdiag.fields import TextKind
from nsysdiag.findings.facts import Finding
from nsysdiag.messages import UsageError
from nsysdiag.phrases import finished
from nsysdiag.record import Record, rewritten
from nsysdiag.replay.bounds import Prediction, prediction_of
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.facts import (
    CAVEAT,
    KIND,
    WHATIF_SCHEMA_VERSION,
    CauseChange,
    Identity,
    Per,
    Saving,
    Transform,
    WhatIf,
    WhatIfDevice,
)
from nsysdiag.replay.fixes import apply_fix, may_differ, taken_out
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import NEVER_NS, OF_BOUNDS, EdgeKind, Edges, extended, replay
from nsysdiag.replay.reshaped import mostly_read
from nsysdiag.replay.run import Run, as_run, four_parts, run_of, step_idle, unchanged
from nsysdiag.replay.sources import of_unknown_sources
from nsysdiag.replay.transforms import MOST_NEAR, SHAPES, apply, edges_of, handed_over_ns
from nsysdiag.report import Outlook, Report

MOST_ERROR = 0.02
"""Of the length: a model that is further off predicts nothing."""
MOST_OUTLIVED = 0.2
"""Of the replayed time: a model with synchronizations that outlast what they are known to wait for by more predicts
nothing."""


UNRECORDED = "; streams wait for events that were not recorded (--cuda-event-trace=true of nsys)"
MOST_HIDDEN = 0.05
"""Of the replayed time: if a device may run more of graphs whose kernels were not recorded, nothing is predicted. Up to
that the bounds are further apart by that share."""


def identity_of(model: Model) -> Identity:
    """How well the model reproduces the recording."""
    graph = model.graph
    now = as_run(model, graph.time, model.length)
    same = unchanged(model)
    exact = np.array_equal(same.start, now.start) and np.array_equal(same.end, now.end)
    operation = model.places.operation
    kept = graph.at(operation[~(model.explained | model.staged)], False, True)
    late = graph.at(operation[model.explained], True, False)
    asked = np.where(late[graph.edges.target], graph.edges.ns, graph.asked)
    ns = np.where(np.isin(graph.edges.kind, (EdgeKind.OBSERVED, *OF_BOUNDS)), NEVER_NS, asked)
    residual = np.where(kept, graph.residual, 0)
    eager = as_run(model, replay(graph, ns, residual), model.length)
    return Identity(exact=exact, length_error=round(abs(eager.ns - now.ns) / max(now.ns, 1), 6))


def reason_against(model: Model, identity: Identity) -> str:
    """Why a model predicts nothing; empty if it does."""
    if identity.length_error > MOST_ERROR:
        error, most = f"{100 * identity.length_error:.1f}%", f"{100 * MOST_ERROR:.0f}%"
        off = f"the model is {error} off the recorded length with nothing changed; more than {most} is too much"
        return off + (UNRECORDED if len(model.graph.rows[EdgeKind.HIDDEN]) else "")
    if model.outlived.share > MOST_OUTLIVED:
        longer = f"{100 * model.outlived.share:.0f}% of the time"
        return f"for {longer} synchronizations wait for something that is not in the trace"
    if model.hidden > MOST_HIDDEN:
        return f"for {100 * model.hidden:.0f}% of the time a GPU may run CUDA graphs whose kernels were not recorded"
    return ""


def predict(
    model: Model, transforms: Sequence[Transform], identity: Identity, findings: Mapping[str, Finding] | None = None
) -> Prediction:
    """With all these transforms together; `findings` are those of the report by id. Raises UsageError if one matches
    nothing."""
    known = findings or {}
    fixed = [known[each.of] for each in transforms if each.option == "finding" and each.of in known]
    unsure = any(each.option in SHAPES for each in transforms) or any(may_differ(model, each) for each in fixed)
    unsure |= bool(model.waits_before_mpi.any() or model.waits_of_others.any()) or _of_hidden_kernels(model, transforms)
    views = [View.LIKELY, *([View.LEAST, View.MOST] if unsure else [])]
    more = Edges.concatenate([Edges.empty(), *(edges_of(model, each) for each in transforms)])
    rewired = replace(model, graph=extended(model.graph, more))
    likely, *others = [Changes.none(rewired, view) for view in views]
    for changes in (likely, *others):
        for transform in transforms:
            if transform.option != "finding":
                apply(changes, transform)
            else:
                _fix(changes, transform.of, known)
    made = prediction_of(likely, identity.length_error, others)
    alone = len(transforms) == 1 and (transforms[0].option, transforms[0].of) == ("overlap", "copies")
    most = handed_over_ns(model) if alone else None
    return made if most is None else made.saving(1.0, most)


def _of_hidden_kernels(model: Model, transforms: Sequence[Transform]) -> bool:
    """Whether kernels are to change, and some that the trace does not name may be among them."""
    return any(each.option == "kernel" for each in transforms) and bool(model.names.graphs.any())


def _fix(changes: Changes, finding: str, findings: Mapping[str, Finding]) -> None:
    if finding not in findings:
        near = difflib.get_close_matches(finding, findings, MOST_NEAR, 0) or list(findings)
        raise UsageError(f"there is no finding '{finding}'", hint="findings: " + ", ".join(near))
    if reason := apply_fix(changes, findings[finding], list(findings.values())):
        raise UsageError(
            f"the fix of finding '{finding}' cannot be replayed: {reason}", hint="the report has a bound instead"
        )


# What each finding would bring, the findings that pay together, and what stays when nothing but the GPUs is left.

Told = Mapping[str, Prediction | str]
"""What was predicted of findings by their ids, or why nothing was."""


class Predictions(Struct, frozen=True):
    """Predicts what fixing findings brings, by the replay of a model, in both threads of `background`; each finding
    once."""

    model: Model
    identity: Identity
    background: Background = ALONE
    known: dict[str, Prediction | str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, background: Background = ALONE) -> Predictions | str:
        """Says why if the model is too far off what was recorded."""
        identity = identity_of(model)
        return reason_against(model, identity) or cls(model, identity, background)

    def __call__(self, finding: Finding, among: Sequence[Finding] = (), most: float = 1.0) -> Predicted:
        """What fixing a finding `among` all saves, at `most` this share, or why the replay cannot tell."""
        if finding.id not in self.known:
            made = predicted(self.model, [finding], self.identity, among, self.background)
            if not isinstance(made, str):
                made = made.saving(most, taken_out(self.model, finding))
                made = made.unproven() if finding.confidence < LIKELY_BELOW else made
            self.known[finding.id] = made
        found, per = self.known[finding.id], self.model.stretch.per
        pace = self.model.threads.timed.pace(self.model.stretch)
        if isinstance(found, str):
            return Predicted(per, unchanged(self.model).ns, reason=found, paced_ns=pace)
        now = found.now.ns
        saved, low, high = (max(now - ns, 0) for ns in (found.run.ns, found.high_ns, found.low_ns))
        return Predicted(
            per, now, saved, low, high, found.cannot_tell, paced_ns=pace, steps=found.now.count, more=found.shorter
        )

    def outlooks(self, findings: Sequence[Finding]) -> list[Outlook]:
        """For each finding of which the replay can tell the saving a step of the device that works most."""
        work = self.model.work
        device = int(np.bincount(work.device, work.length).argmax())
        known = {each.id: self.known.get(each.id) for each in findings if each.saves and each.saves.method == REPLAY}
        predicted = {
            each: found for each, found in known.items() if isinstance(found, Prediction) and not found.cannot_tell
        }
        if not predicted:
            return []
        replays = [(Changes.none(self.model), next(iter(predicted.values())).now)]
        replays += [(found.changes, found.run) for found in predicted.values()]
        now, *strips = self.background.each(lambda each: _strip(*each, device), replays)
        key, per = self.model.names.keys[device], self.model.stretch.per
        return [
            Outlook(finding=each, device=key, per=per, now=now, predicted=strip)
            for each, strip in zip(predicted, strips, strict=True)
        ]


def _strip(changes: Changes, run: Run, device: int) -> dict[str, int]:
    parts = four_parts(changes.model, run, device)
    busy = {"compute": parts.compute_ns, "exposed_comm": parts.exposed_comm_ns, "exposed_copy": parts.exposed_copy_ns}
    return {name: ns for name, ns in {**busy, **step_idle(changes, run, device)}.items() if ns}


WORTH = 0.01
"""Of the length: what one more fix has to bring to be named with those before it."""


def savings_of(model: Model, findings: Sequence[Finding], identity: Identity, told: Told) -> list[Saving]:
    """One for each finding, then one for the best two together, the best three, and so on while that pays. What is
    `told` of findings is not predicted again."""
    now = unchanged(model).ns
    every = [(each, told.get(each.id) or predicted(model, [each], identity, findings)) for each in findings]
    known = [(each, found) for each, found in every if isinstance(found, Prediction)]
    known.sort(key=lambda pair: pair[1].run.ns)
    return [*(_saving(now, [each], found) for each, found in every), *_together(model, known, identity, findings)]


def predicted(
    model: Model,
    findings: Sequence[Finding],
    identity: Identity,
    among: Sequence[Finding] = (),
    background: Background = ALONE,
) -> Prediction | str:
    """With all these `among` all findings fixed, or why the replay cannot tell."""
    views = [View.LIKELY]
    of_causes = np.isin(model.threads.held.cause, [PLACE.get(each.cause, -1) for each in findings])
    synced = any(each.cause == SYNCHRONIZATION for each in findings) and model.waits_of_others.any()
    differs = synced or any(may_differ(model, each) for each in findings)
    views += [View.LEAST] if differs else []
    # A call of MPI may need what the device made.
    views += [View.MOST] if (model.waits_before_mpi & of_causes).any() else []
    likely, *others = [Changes.none(model, view) for view in views]
    for changes in (likely, *others):
        for finding in findings:
            if reason := apply_fix(changes, finding, among):
                return reason
    return prediction_of(likely, identity.length_error, others, background)


def _together(
    model: Model, known: Sequence[tuple[Finding, Prediction]], identity: Identity, among: Sequence[Finding]
) -> list[Saving]:
    found: list[Saving] = []
    chosen = [each for each, _ in known[:1]]
    best = known[0][1].run.ns if known else 0
    for finding, alone in known[1:]:
        both = predicted(model, [*chosen, finding], identity, among)
        if isinstance(both, Prediction) and best - both.run.ns >= WORTH * alone.now.ns:
            chosen, best = [*chosen, finding], both.run.ns
            found.append(_saving(alone.now.ns, chosen, both))
    return found


def _saving(now: int, findings: Sequence[Finding], found: Prediction | str) -> Saving:
    low, predicted_ns, high = (now,) * 3 if isinstance(found, str) else (found.low_ns, found.run.ns, found.high_ns)
    return Saving(
        finding=findings[0].id if len(findings) == 1 else None,
        transforms=[Transform(option="finding", of=each.id) for each in findings],
        predicted_ns=predicted_ns,
        low_ns=low,
        high_ns=high,
        refused=found if isinstance(found, str) else None,
        findings=[each.id for each in findings],
        cannot_tell=not isinstance(found, str) and found.cannot_tell,
    )


def floor_of(model: Model, findings: Sequence[Finding]) -> Run:
    """With all findings fixed and without the host: operations, their order, and the meetings of ranks. At most as
    long as now: if the first step ends much earlier and the last one cannot, the mean step would be longer."""
    changes = Changes.none(model)
    for finding in findings:
        apply_fix(changes, finding)
    for gone in (changes.time, changes.unseen, changes.lag, changes.cost):
        gone[:] = 0
    for waits in (changes.held, changes.full, changes.woken):
        waits[:] = False
    return min(run_of(changes), unchanged(model), key=lambda run: run.ns)


# A prediction with what the report of its trace says: titles of findings, causes, settings, and names in sentences.


def complete(made: WhatIf, report: Report) -> WhatIf:
    """The prediction as it is saved. Its sentences may hold names that know what they are names of."""
    titles = {finding.id: finding.title for finding in report.findings}
    models = {device.key: device.name for device in report.devices}
    whole = replace(
        made,
        devices=[replace(each, name=models.get(each.key, each.name)) for each in made.devices],
        savings=[replace(each, title=each.title or titles.get(each.finding or "", "")) for each in made.savings],
        causes=report.causes,
        settings=report.settings,
    )
    known = report.phrases.typed() if report.phrases is not None else {}

    def visit(_text: TextKind, _record: Record, value: Any) -> Any:
        if isinstance(value, list):
            return [known.get(each, each) for each in value]
        return known.get(value, value) if isinstance(value, str) else value

    return finished(rewritten(whole, visit))


IN_MPI = "MPI calls take as long as recorded: this trace does not show whether other ranks would be faster."
OUTSIDE = (
    "Input from outside of the trace is predicted as if it was always there. What makes it late is not known, so the "
    "least that is saved is nothing."
)
UNSEEN = (
    "OS calls were not captured: input or requests that are ahead of the steps, which the trace does not show, are "
    "predicted to stay so."
)
IN_GRAPHS = (
    "Graphs that were recorded as a whole may hold such kernels, too, and are predicted as they are. If all of them "
    "change, the length is at the other bound: --cuda-graph-trace=node of nsys shows which do."
)
READING = "The workers mostly read: more of them help only if the storage can serve more."


def refused(report: Report, transforms: Sequence[Transform], reason: str, identity: Identity | None = None) -> WhatIf:
    """No prediction, and why."""
    judged = [phase.steps for phase in report.phases if phase.judged and phase.steps is not None]
    steps = next((each for each in judged if each.of_the_program), None)
    now = steps.average_ns if steps else max((each.window_ns for each in report.devices), default=0)
    unchanged = _unchanged(report, transforms, identity, now, "step" if steps else "window")
    return complete(replace(unchanged, refused=reason), report)


def _unchanged(
    report: Report, transforms: Sequence[Transform], identity: Identity | None, now_ns: int, per: Per
) -> WhatIf:
    """The record if nothing is predicted."""
    return WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        trace=report.trace,
        per=per,
        steps=0,
        now_ns=now_ns,
        predicted_ns=now_ns,
        low_ns=now_ns,
        high_ns=now_ns,
        identity=identity,
        refused=None,
        transforms=list(transforms),
        devices=[],
        waterfall=[],
        savings=[],
    )


def answered(
    report: Report, model: Model, transforms: Sequence[Transform], identity: Identity, told: Told | None = None
) -> WhatIf:
    """The prediction of some transforms; of none, what each finding would bring. What the report was `told` of a
    finding is said again. Raises UsageError if one matches nothing."""
    told = told or {}
    known = told.get(transforms[0].of) if [each.option for each in transforms] == ["finding"] else None
    findings = {each.id: each for each in report.findings}
    found = known if isinstance(known, Prediction) else predict(model, transforms, identity, findings)
    stretch = model.stretch
    shown = {each.key for each in report.devices}
    numbers = [number for number in model.devices if model.names.keys[number] in shown]
    now = idle_of(Changes.none(model), found.now, numbers)
    then = now if not transforms else idle_of(found.changes, found.run, numbers)
    made = replace(
        _unchanged(report, transforms, identity, found.now.ns, stretch.per),
        steps=stretch.count if stretch.stepwise else 0,
        devices=_devices(model, found, now, then),
        waterfall=_waterfall(now, then),
        floor_ns=floor_of(model, report.findings).ns,
        paced_ns=model.threads.timed.pace(stretch) or None,
        caveats=[
            CAVEAT,
            *([IN_MPI] if len(model.host.host.mpi) else []),
            *([OUTSIDE] if (found.changes.unknown & of_unknown_sources(model)).any() else []),
            *([UNSEEN] if transforms and model.without_evidence.any() else []),
            *([IN_GRAPHS] if _of_hidden_kernels(model, transforms) else []),
            *([READING] if any(each.option == "workers" for each in transforms) and mostly_read(model) else []),
        ],
    )
    if not transforms:
        return complete(replace(made, savings=savings_of(model, report.findings, identity, told)), report)
    made = replace(made, predicted_ns=found.run.ns, low_ns=found.low_ns, high_ns=found.high_ns)
    return complete(replace(made, cannot_tell=found.cannot_tell, reasons=list(found.why)), report)


Idle = dict[int, dict[str, int]]
"""Idle time by cause, by the number of the device; of a step or of the window, in ns."""


def idle_of(changes: Changes, run: Run, devices: Iterable[int]) -> Idle:
    """The idle time of `devices` (numbers) by cause, in a step (a mean over the counted steps) or in the window."""
    return {device: step_idle(changes, run, device) for device in devices}


def _waterfall(now: Idle, then: Idle) -> list[CauseChange]:
    """By how much each cause changes, the largest change first."""
    before, after = summed(now.values()), summed(then.values())
    rows = [
        CauseChange(cause=each, from_ns=before.get(each, 0), to_ns=after.get(each, 0)) for each in {**before, **after}
    ]
    return sorted(rows, key=lambda each: (-abs(each.from_ns - each.to_ns), each.cause))


def _devices(model: Model, found: Prediction, now: Idle, then: Idle) -> list[WhatIfDevice]:
    return [
        WhatIfDevice(
            key=model.names.keys[number],
            now_ns=found.now.ns,
            predicted_ns=found.run.ns,
            now=four_parts(model, found.now, number),
            predicted=four_parts(model, found.run, number),
            ledger=then[number],
            ledger_now=now[number],
        )
        for number in now
    ]
