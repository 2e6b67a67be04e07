"""How long a step, or the window, is after changes, and between which bounds."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.errors import UsageError
from nsysdiag.events.rows import distinct_values
from nsysdiag.replay.bounds import Case, bounds_of, computing
from nsysdiag.replay.changes import Changes, View
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.graph import NEVER_NS, Edges, Kind, replay
from nsysdiag.replay.model import Model
from nsysdiag.replay.repairs import may_differ, repair
from nsysdiag.replay.reshaped import with_edges
from nsysdiag.replay.run import Run, as_run, run_of
from nsysdiag.replay.transforms import MOST_NEAR, SHAPES, apply, edges_of
from nsysdiag.report import Finding

MOST_ERROR = 0.02
"""Of the length: a model that is further off predicts nothing."""
MOST_OUTLIVED = 0.2
"""Of the replayed time: a model with synchronizations that outlast what they are known to wait for by more predicts
nothing."""
MOST_APART = 0.25
"""Of the length: a prediction whose bounds are further apart says only that it cannot tell."""


class Prediction(Struct, frozen=True):
    """The length of a step or of the window as it was, as predicted with `changes`, and the bounds of that, in ns.
    `why` says why the bounds are apart. `entangled`: more may be saved than what is repaired takes. Where processes run
    at once on a GPU, more may run at once; where ranks wait for each other, one may hold up another."""

    changes: Changes
    now: Run
    run: Run
    low_ns: int
    high_ns: int
    why: Sequence[str] = ()
    entangled: bool = False

    @property
    def cannot_tell(self) -> bool:
        """Whether the bounds are too far apart for the predicted length to say anything."""
        return self.high_ns - self.low_ns > MOST_APART * self.now.ns

    def saving(self, most: float) -> Prediction:
        """The same, but no more than this share is saved; what is entangled may save more. Kernels of one thread in
        several streams may run at the same time then, where they did not."""
        model = self.changes.model
        least = math.ceil((1 - most) * self.now.ns)
        if model.stretch.stepwise and len(distinct_values(model.launched_by)) == 1:
            least -= max(round(computing(model, self.now) - computing(model, self.run)), 0)
        run = replace(self.run, longer=max(least - self.run.ns, 0))
        low_ns = min(self.low_ns, run.ns) if self.entangled else max(self.low_ns, least)
        return replace(self, run=run, low_ns=low_ns, high_ns=max(self.high_ns, least))


def identity_of(model: Model) -> Identity:
    """How well the model reproduces the recording."""
    graph = model.graph
    now = as_run(model, graph.time, model.length)
    same = run_of(Changes.none(model))
    exact = np.array_equal(same.start, now.start) and np.array_equal(same.end, now.end)
    residual = graph.residual.copy()
    residual[model.places.operation[~model.explained]] = 0
    ns = np.where(np.isin(graph.edges.kind, (Kind.OBSERVED, Kind.HIDDEN)), NEVER_NS, graph.asked)
    eager = as_run(model, replay(graph, ns, residual), model.length)
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
    unsure = any(each.option in SHAPES for each in transforms) or any(may_differ(model, each) for each in repaired)
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
    """The prediction of changes. The lengths of the same changes made in other ways (`others`) are bounds, too."""
    case = Case.of(changes, others)
    found = bounds_of(case, identity.length_error)
    return Prediction(changes, case.now, case.run, found.low_ns, found.high_ns, found.why, found.entangled)
