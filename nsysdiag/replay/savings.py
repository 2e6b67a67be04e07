"""What each finding would bring, the findings that pay together, and what stays when nothing but the GPUs is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsysdiag.replay.changes import Changes
from nsysdiag.replay.facts import Identity, Saving, Transform
from nsysdiag.replay.model import Model
from nsysdiag.replay.predict import MOST_ERROR, Prediction, Run, identity_of, prediction_of, run_of
from nsysdiag.replay.repairs import repair
from nsysdiag.report import Finding


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predicts what repairing findings brings, by the replay of a model."""

    model: Model
    identity: Identity

    @classmethod
    def of(cls, model: Model) -> Predictions | None:
        """None where the model is too far off what was recorded."""
        identity = identity_of(model)
        return None if identity.length_error > MOST_ERROR else cls(model, identity)

    def __call__(self, findings: Sequence[Finding]) -> tuple[float, float, float] | None:
        """The part of a step, or of the window, that repairing all of these saves, and the bounds of that; None where
        the replay does not know what repairs them."""
        found = predicted(self.model, findings, self.identity)
        if found is None:
            return None
        now = found.now.ns
        share, low, high = ((now - ns) / max(now, 1) for ns in (found.run.ns, found.high_ns, found.low_ns))
        return max(share, 0.0), max(low, 0.0), max(high, 0.0)


WORTH = 0.01
"""Of the length: what one more repair has to bring to be named with those before it."""
NOT_REPLAYED = "what repairs it cannot be replayed: see its bound in the report"


def savings_of(model: Model, findings: Sequence[Finding], identity: Identity) -> list[Saving]:
    """One for each finding, then one for the best two together, the best three, and so on while that pays."""
    now = run_of(Changes.none(model)).ns
    every = [(each, predicted(model, [each], identity)) for each in findings]
    known = sorted(((each, found) for each, found in every if found), key=lambda pair: pair[1].run.ns)
    return [*(_saving(now, [each], found) for each, found in every), *_together(model, known, identity)]


def predicted(model: Model, findings: Sequence[Finding], identity: Identity) -> Prediction | None:
    """With all these repaired; None where the replay does not know what repairs one of them."""
    changes = Changes.none(model)
    for finding in findings:
        if not repair(changes, finding):
            return None
    return prediction_of(changes, identity)


def _together(model: Model, known: Sequence[tuple[Finding, Prediction]], identity: Identity) -> list[Saving]:
    found: list[Saving] = []
    chosen = [each for each, _ in known[:1]]
    best = known[0][1].run.ns if known else 0
    for finding, alone in known[1:]:
        both = predicted(model, [*chosen, finding], identity)
        if both is not None and best - both.run.ns >= WORTH * alone.now.ns:
            chosen, best = [*chosen, finding], both.run.ns
            found.append(_saving(alone.now.ns, chosen, both))
    return found


def _saving(now: int, findings: Sequence[Finding], found: Prediction | None) -> Saving:
    return Saving(
        finding=findings[0].id if len(findings) == 1 else None,
        transforms=[Transform(option="finding", of=each.id) for each in findings],
        predicted_ns=now if found is None else found.run.ns,
        low_ns=now if found is None else found.low_ns,
        high_ns=now if found is None else found.high_ns,
        refused=NOT_REPLAYED if found is None else None,
        findings=[each.id for each in findings],
    )


def floor_of(model: Model) -> Run:
    """Without the host: operations, their order, and the meetings of ranks."""
    changes = Changes.none(model)
    for gone in (changes.time, changes.unseen, changes.lag, changes.cost):
        gone[:] = 0
    for waits in (changes.held, changes.full, changes.woken):
        waits[:] = False
    return run_of(changes)
