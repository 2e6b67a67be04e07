"""The kinds of bottleneck in the order of their repair, and the one that comes first."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.diagnosis.facts import Triage, TriageKind
from nsysdiag.diagnosis.feed import communication, feed
from nsysdiag.diagnosis.inputs import Given
from nsysdiag.diagnosis.runtime import kernels, runtime
from nsysdiag.diagnosis.small_work import batch, sizing
from nsysdiag.diagnosis.workload import BURSTS, STEPS
from nsysdiag.units import format_share

_FIRST = {
    "feed": "Repair the feed path first",
    "communication": "Repair communication first",
    "batch": "Give the kernels more work first",
    "runtime": "Make launching cheaper first",
    "kernels": "The device is fed: look at the kernels",
    "sizing": "Sizing, not tuning: the work is small for this GPU",
}
_YARDSTICK = {
    STEPS: "measured by its steps",
    BURSTS: "measured inside its bursts",
}


def triage(given: Given) -> Triage:
    """What to repair first: what keeps work from the device, then what the work leaves unused, then what launching it
    costs, then the work itself. Work that nothing holds up and that is small is no matter of tuning."""
    fed, exchange, filled, launched, work = (rule(given) for rule in (feed, communication, batch, runtime, kernels))
    size = sizing(given)
    kinds = [fed, exchange, filled, launched, work, size]
    first = next((kind.id for kind in kinds if kind.holds), "none")
    if fed.holds is None:
        first = "unresolved"
    elif size.holds:
        first = size.id
    return Triage(id=first, sentence=_sentence(first, kinds, given), workload=given.workload, kinds=kinds)


def _other(given: Given) -> str:
    """What most of a long idle time is, where it is of none of the kinds."""
    total = sum(given.idle.values())
    if given.share(total) < given.limits.feed:
        return ""
    cause = max(given.idle, key=lambda name: (given.idle[name], name))
    idle, part = format_share(given.share(total), 1), format_share(given.idle[cause], total)
    return f" The device is idle {idle} of the time, {part} of that: {CAUSES[cause].title.lower()}."


def _sentence(first: str, kinds: list[TriageKind], given: Given) -> str:
    yardstick = _YARDSTICK.get(given.workload.kind)
    measured = f" ({yardstick})" if yardstick else ""
    if first == "unresolved":
        said = next(kind for kind in kinds if kind.id == "feed").evidence[-1]
        return f"Whether work reaches the device in time, the trace cannot tell{measured}. {said}"
    if first == "none":
        return f"No bottleneck stands out{measured}.{_other(given)}"
    kind = next(kind for kind in kinds if kind.id == first)
    return f"{_FIRST[first]}{measured}. {kind.evidence[0]}"
