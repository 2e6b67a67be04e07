"""What each finding would bring, the findings that pay together, and what stays when nothing but the GPUs is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from nsysdiag.diagnosis.facts import REPLAY, Predicted
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.facts import Identity, Saving, Transform
from nsysdiag.replay.model import Model
from nsysdiag.replay.parts import four_parts, step_idle
from nsysdiag.replay.predict import Prediction, identity_of, prediction_of, reason_against
from nsysdiag.replay.repairs import may_differ, repair
from nsysdiag.replay.run import Run, run_of
from nsysdiag.report import Finding, Outlook

Told = Mapping[str, Prediction | str]
"""What was predicted of findings by their ids, or why nothing was."""


class Predictions(Struct, frozen=True):
    """Predicts what repairing findings brings, by the replay of a model; each finding once."""

    model: Model
    identity: Identity
    known: dict[str, Prediction | str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> Predictions | str:
        """Says why where the model is too far off what was recorded."""
        identity = identity_of(model)
        return reason_against(model, identity) or cls(model, identity)

    def __call__(self, finding: Finding, among: Sequence[Finding] = (), most: float = 1.0) -> Predicted:
        """What repairing a finding `among` all saves, at `most` this share, or why the replay cannot tell."""
        if finding.id not in self.known:
            made = predicted(self.model, [finding], self.identity, among)
            self.known[finding.id] = made if isinstance(made, str) else made.saving(most)
        found, per = self.known[finding.id], self.model.stretch.per
        pace = self.model.threads.timed.pace(self.model.stretch)
        if isinstance(found, str):
            return Predicted(per, run_of(Changes.none(self.model)).ns, reason=found, paced_ns=pace)
        now = found.now.ns
        saved, low, high = (max(now - ns, 0) for ns in (found.run.ns, found.high_ns, found.low_ns))
        return Predicted(per, now, saved, low, high, found.cannot_tell, paced_ns=pace)

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
        now = _strip(Changes.none(self.model), next(iter(predicted.values())).now, device)
        return [
            Outlook(
                finding=each,
                device=self.model.names.keys[device],
                per=self.model.stretch.per,
                now=now,
                predicted=_strip(found.changes, found.run, device),
            )
            for each, found in predicted.items()
        ]


def _strip(changes: Changes, run: Run, device: int) -> dict[str, int]:
    parts = four_parts(changes.model, run, device)
    busy = {"compute": parts.compute_ns, "exposed_comm": parts.exposed_comm_ns, "exposed_copy": parts.exposed_copy_ns}
    return {name: ns for name, ns in {**busy, **step_idle(changes, run, device)}.items() if ns}


WORTH = 0.01
"""Of the length: what one more repair has to bring to be named with those before it."""


def savings_of(model: Model, findings: Sequence[Finding], identity: Identity, told: Told) -> list[Saving]:
    """One for each finding, then one for the best two together, the best three, and so on while that pays. What is
    `told` of findings is not predicted again."""
    now = run_of(Changes.none(model)).ns
    every = [(each, told.get(each.id) or predicted(model, [each], identity, findings)) for each in findings]
    known = [(each, found) for each, found in every if isinstance(found, Prediction)]
    known.sort(key=lambda pair: pair[1].run.ns)
    return [*(_saving(now, [each], found) for each, found in every), *_together(model, known, identity, findings)]


def predicted(
    model: Model, findings: Sequence[Finding], identity: Identity, among: Sequence[Finding] = ()
) -> Prediction | str:
    """With all these `among` all findings repaired, or why the replay cannot tell."""
    moved = any(may_differ(model, each) for each in findings)
    likely, *others = [Changes.none(model, view) for view in (View.LIKELY, View.LEAST)[: 1 + moved]]
    for changes in (likely, *others):
        for finding in findings:
            if reason := repair(changes, finding, among):
                return reason
    return prediction_of(likely, identity, others)


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
    """With all findings repaired and without the host: operations, their order, and the meetings of ranks."""
    changes = Changes.none(model)
    for finding in findings:
        repair(changes, finding)
    for gone in (changes.time, changes.unseen, changes.lag, changes.cost):
        gone[:] = 0
    for waits in (changes.held, changes.full, changes.woken):
        waits[:] = False
    return run_of(changes)
