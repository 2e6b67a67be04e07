"""The sentence about a device: the first rule that holds, with the numbers that made it hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from nsysdiag.causes import CAUSES, PREEMPTION, SYNCHRONIZATION, host_compute, off_cpu
from nsysdiag.causes.cause import Loss
from nsysdiag.config.settings import Thresholds
from nsysdiag.diagnosis.missing import MOST, Missing
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.ledger import UNRESOLVED
from nsysdiag.report import Verdict
from nsysdiag.units import format_share

MOSTLY = 0.5
NO_WORK = "no-gpu-work"
_INPUT = [cause.id for cause in CAUSES.values() if cause.family == "input"]
_LAUNCH = [cause.id for cause in CAUSES.values() if cause.family == "launch" and cause.loss is Loss.LAUNCHING]


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """What the verdict looks at. `ledger` and `labels` are by root cause. `drained_ns` is sync time plus all of the
    sync-drained gaps, nothing counted twice; `off_cpu_ns` is how long the launching threads themselves had no CPU, None
    where that is the ledger's; the medians, of the time between launches and of how long what is launched runs, are
    None where the device has no launches or kernels. `missing` is what was not recorded."""

    split: WindowSplit
    ledger: dict[str, int]
    drained_ns: int
    coverage: float | None
    median_interval_ns: int | None
    median_work_ns: int | None
    labels: dict[str, dict[str, int]] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)
    off_cpu_ns: int | None = None
    missing: Missing = field(default_factory=Missing)


def verdict(given: VerdictInput) -> Verdict:
    """The first that holds of the rules below, in this order; where rows are missing, the sentence says so."""
    found = _judged(given)
    reasons = given.missing.reasons()
    if not reasons or found.id == NO_WORK or given.missing.unseen_share >= MOST:
        return found
    return Verdict(id=found.id, sentence=f"{found.sentence[:-1]}; but the trace is incomplete: {reasons[0]}.")


def _judged(given: VerdictInput) -> Verdict:
    for rule in (
        _no_work,
        _incomplete,
        _unresolved,
        _copies,
        _communication,
        _gpu,
        _input,
        _contended,
        _sync,
        _launches,
        _leading,
    ):
        found = rule(given)
        if found is not None:
            return found
    idle = format_share(given.split.idle_ns, given.split.window_ns)
    return Verdict(
        id="mixed", sentence=f"The GPU is idle {idle} of the time, for several reasons; no single one leads."
    )


def _of_idle(given: VerdictInput, *causes: str) -> float:
    return _share_of_idle(given, sum(given.ledger.get(cause, 0) for cause in causes))


def _share_of_idle(given: VerdictInput, ns: int) -> float:
    return ns / given.split.idle_ns if given.split.idle_ns else 0.0


def _idle_text(given: VerdictInput) -> str:
    return f"The GPU is idle {format_share(given.split.idle_ns, given.split.window_ns)} of the time"


def _claim(given: VerdictInput, text: str) -> str:
    """A claim with less than half of the host's idle time explained is likely, with less than a fifth unresolved."""
    known = 1.0 if given.coverage is None else given.coverage
    if known < given.thresholds.unresolved_claim:
        doubt = f"unresolved: only {format_share(known, 1)} of the host's time has evidence"
        return f"{_idle_text(given)}, {text[:-1]}; {doubt}."
    return f"{_idle_text(given)}, {'likely ' if known < given.thresholds.likely else ''}{text}"


def _no_work(given: VerdictInput) -> Verdict | None:
    if given.split.window_ns > 0:
        return None
    return Verdict(id=NO_WORK, sentence="No GPU work in this window.")


def _incomplete(given: VerdictInput) -> Verdict | None:
    if given.missing.unseen_share < MOST:
        return None
    reason = given.missing.reasons()[0]
    return Verdict(id="unresolved", sentence=f"The trace cannot tell how busy the GPU was: {reason}.")


def _unresolved(given: VerdictInput) -> Verdict | None:
    share = _of_idle(given, *UNRESOLVED)
    if share < given.thresholds.unresolved or given.split.idle_ns < given.thresholds.busy * given.split.window_ns:
        return None
    text = f"{_idle_text(given)}, and the trace cannot tell why for {format_share(share, 1)} of that"
    return Verdict(id="unresolved", sentence=f"{text}.")


def _copies(given: VerdictInput) -> Verdict | None:
    split = given.split
    if split.exposed_copy_ns < split.idle_ns or split.exposed_copy_ns < given.thresholds.copies * split.window_ns:
        return None
    share = format_share(split.exposed_copy_ns, split.window_ns)
    return Verdict(id="copy-bound", sentence=f"The GPU spends {share} of the time copying with no kernel beside it.")


def _communication(given: VerdictInput) -> Verdict | None:
    split = given.split
    if split.exposed_comm_ns < given.thresholds.communication * split.window_ns:
        return None
    share = format_share(split.exposed_comm_ns, split.window_ns)
    return Verdict(
        id="comm-bound", sentence=f"The GPU spends {share} of the time in communication that no compute hides."
    )


def _gpu(given: VerdictInput) -> Verdict | None:
    split = given.split
    if split.idle_ns >= given.thresholds.busy * split.window_ns:
        return None
    share = format_share(split.busy_ns, split.window_ns)
    return Verdict(
        id="gpu-bound", sentence=f"The GPU is busy {share} of the time: look at the kernels, not at the host."
    )


def _input(given: VerdictInput) -> Verdict | None:
    share = _of_idle(given, *_INPUT)
    if share < given.thresholds.input:
        return None
    return Verdict(id="input-bound", sentence=_claim(given, f"{format_share(share, 1)} of that waiting for input."))


def _contended(given: VerdictInput) -> Verdict | None:
    share = _of_idle(given, PREEMPTION)
    if given.off_cpu_ns is not None:
        share = min(share, _share_of_idle(given, given.off_cpu_ns))
    if share < given.thresholds.contended:
        return None
    untraced = given.labels.get(PREEMPTION, {}).get(off_cpu.UNTRACED, 0)
    why = "because the launching thread had no CPU"
    if untraced > MOSTLY * given.ledger.get(PREEMPTION, 0):
        why = "with the launching thread off the CPU in no captured call: preempted, or in a wait that leaves no row"
    text = f"{format_share(share, 1)} of that {why}."
    return Verdict(id="contended", sentence=_claim(given, text))


def _sync(given: VerdictInput) -> Verdict | None:
    share = _share_of_idle(given, given.drained_ns)
    if share < given.thresholds.sync:
        return None
    text = f"{format_share(share, 1)} of that in or after calls that wait for the device and empty its queue"
    most = _largest_known(given)
    if most not in (None, SYNCHRONIZATION) and _of_idle(given, most) >= given.thresholds.leading:
        text += f"; by cause, most is {_named(given, most)} ({format_share(_of_idle(given, most), 1)})"
    return Verdict(id="sync-bound", sentence=_claim(given, f"{text}."))


def _launches(given: VerdictInput) -> Verdict | None:
    share = _of_idle(given, *_LAUNCH)
    if share < given.thresholds.launch or given.median_interval_ns is None or given.median_work_ns is None:
        return None
    if given.median_interval_ns <= given.median_work_ns:
        return None
    text = f"{format_share(share, 1)} of that launching and in other CUDA calls: too slowly for kernels this short."
    return Verdict(id="launch-bound", sentence=_claim(given, text))


def _leading(given: VerdictInput) -> Verdict | None:
    cause = _largest_known(given)
    share = _of_idle(given, cause) if cause else 0.0
    if cause is None or share < given.thresholds.leading:
        return None
    text = f"{format_share(share, 1)} of that: {_named(given, cause)}."
    return Verdict(id=f"{cause}-bound", sentence=_claim(given, text))


def _largest_known(given: VerdictInput) -> str | None:
    known = {cause: ns for cause, ns in given.ledger.items() if cause not in UNRESOLVED}
    return max(known, key=lambda name: known[name], default=None)


def _named(given: VerdictInput, cause: str) -> str:
    """The cause's title as part of a sentence, with its kind where evidence names one for most of it."""
    title = CAUSES[cause].title
    inside = given.labels.get(cause, {}).get(host_compute.INSIDE_MPI, 0)
    kind = f" ({host_compute.INSIDE_MPI})" if inside > MOSTLY * given.ledger[cause] else ""
    return title[0].lower() + title[1:] + kind
