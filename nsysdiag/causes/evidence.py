"""Evidence as layers: named rows on the thread axis that one cause may claim time with."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.calls import named_like
from nsysdiag.events.event_waits import HeldCalls
from nsysdiag.events.host import HostActivity
from nsysdiag.events.rows import NamedRows, picked
from nsysdiag.fields import Sentence
from nsysdiag.gaps import gaps
from nsysdiag.units import format_ns


class EvidenceLayer(Struct, frozen=True):
    """The evidence rows of one cause, as a set. `name` is each row's code in `names`. `label` distinguishes kinds of
    the cause (what a synchronization waited for), None for none. `device` is the number of the device that the calls
    waited for, None if unknown. `are_calls`: the names are those of calls, not descriptions."""

    spans: Intervals
    name: IntArray
    names: list[Sentence]
    label: EvidenceLabel | None = None
    device: int | None = None
    are_calls: bool = True

    def __len__(self) -> int:
        return len(self.spans)


class CallFacts(Struct, frozen=True):
    """Facts about API calls beyond their name: a flag for each row of the table of calls.

    `pageable`: copies to or from pageable memory; `read_back`: device-to-host copies of at most 64 bytes;
    `upload`: copies from pageable memory to a device; `creates_context`: a process's first calls, over 1 ms, before
    anything ran; `first_launch`: the first launch of a kernel name that took far longer than the median of its API;
    `first_use`: a long first launch of an API with too few others for a median. `synchronized` is the number of the
    device that a call waited for, -1 where unknown. `held` are the times in which calls wait for a host function, if
    they synchronize at all.
    """

    pageable: BoolArray
    read_back: BoolArray
    upload: BoolArray
    creates_context: BoolArray
    first_launch: BoolArray
    first_use: BoolArray
    synchronized: IntArray
    held: HeldCalls

    def copied(self, row: IntArray) -> IntArray:
        """What a wait right behind each of these calls is for, as a place in HINTS."""
        found: IntArray = np.where(self.read_back[row], 1, np.where(self.upload[row], 2, 0))
        return found


class HostEvidence(Struct, frozen=True):
    """What the rules look at: the launching threads, on one time axis with a stretch for each. Outermost calls (`outer`)
    speak for the time before a launch, nested ones (`inner`) for time inside it. Of other threads there is nothing
    here: who ended a wait is found later, in `nsysdiag/wakeups/`, and the rules are applied to those threads again."""

    host: HostActivity
    facts: CallFacts
    outer: NamedRows
    inner: NamedRows

    @classmethod
    def of(cls, host: HostActivity, facts: CallFacts) -> HostEvidence:
        """Divides the calls once; those that created a context are in neither part: what they are called does not say
        what took the time."""
        api = host.api
        named_well = ~facts.creates_context[api.row]
        inner = ~api.outermost & named_well
        whole = bool(named_well.all()) and not inner.any()
        return cls(host, facts, api if whole else api.take(api.outermost & named_well), api.take(inner))

    def calls(self, pattern: re.Pattern[str] | None = None, *, nested: bool = False) -> NamedRows:
        """API calls whose clean name matches: the outermost, or those inside another call."""
        part = self.inner if nested else self.outer
        return part if pattern is None else named_rows(part, pattern)

    def os_calls(self, pattern: re.Pattern[str]) -> NamedRows:
        """Outermost OS calls whose name matches."""
        return named_rows(self.host.os_calls, pattern)


def named(lane: NamedRows, pattern: re.Pattern[str]) -> BoolArray:
    """True for the rows whose name matches from its beginning to its end."""
    hits = named_like(lane.names, pattern)
    return hits[lane.name] if hits.any() else np.zeros(len(lane), dtype=np.bool_)


def named_rows(lane: NamedRows, pattern: re.Pattern[str]) -> NamedRows:
    """The rows whose name matches from its beginning to its end."""
    hits = named_like(lane.names, pattern)
    return lane.take(hits[lane.name] if hits.any() else slice(0, 0))


def nested_calls(pattern: re.Pattern[str]) -> Callable[[HostEvidence], list[EvidenceLayer]]:
    """Evidence of calls whose name matches, inside another call."""
    return lambda evidence: [layer_of(evidence.calls(pattern, nested=True))]


def layer_of(lane: NamedRows, label: EvidenceLabel | None = None, device: int | None = None) -> EvidenceLayer:
    """A lane's rows as a layer; rows that overlap become one, named after the first of them."""
    kept = picked(lane.spans.end > lane.spans.start)
    spans, name = lane.spans[kept], lane.shown[kept]
    if np.all(spans.start[1:] >= spans.end[:-1]):
        return EvidenceLayer(spans, name, lane.shown_names, label, device)
    merged = union(spans)
    return EvidenceLayer(merged, name[np.searchsorted(spans.start, merged.start)], lane.shown_names, label, device)


def described(lane: NamedRows, label: EvidenceLabel | None = None) -> EvidenceLayer:
    """A lane's rows as a layer, whose names are no calls."""
    return replace(layer_of(lane, label), are_calls=False)


def plain_layer(spans: Intervals, what: str, label: EvidenceLabel | None = None) -> EvidenceLayer:
    """Time that one sentence describes, without rows of its own to name."""
    time = union(spans)
    return EvidenceLayer(time, np.zeros(len(time), dtype=np.int64), [what], label, are_calls=False)


# The numbers that rules depend on, as `nsysdiag rules` lists them.

READ_BACK_BYTES = 64
"""A copy to the host of at most so many bytes is a read-back: a value that the program looks at."""
LEAD_NS = 5_000
"""A call that emptied the queue began this long before the gap, at least."""
_MEANINGS = {
    "most": "findings of a report, at most",
    "places": "locations of one cause and device with separate findings, at most",
    "rows": "rows of the trace listed by a finding, at most",
    "smallest": "of the window: the smallest share of a finding, and of a separate location",
    "high": "of the window: from here on, a finding is high",
    "medium": "of the window: from here on, a finding is medium",
    "low": "of the window: from here on, a finding is low",
    "empty": "of the iterations must be without work",
    "collector": "of the CPU samples in Python's collector: from here on, host code is garbage collection",
    "interpreter": "of the CPU samples in the interpreter: from here on, host code is Python",
}


class Threshold(Struct, frozen=True):
    """A number that a rule depends on: its name, its value as text, and what it is. Names that begin with `findings.`
    are settings; the others are constants of the rule."""

    name: str
    value: str
    meaning: str


def setting(name: str) -> Threshold:
    """A field of FindingThresholds with its default."""
    value = getattr(FindingThresholds(), name)
    text = f"{100 * value:g}%" if isinstance(value, float) else str(value)
    return Threshold(f"findings.{name}", text, _MEANINGS[name])


LATENCY_LIMIT = Threshold(
    "latency_limit",
    f"{gaps.LATENCY_FACTOR} × latency, {format_ns(gaps.LATENCY_LOWEST_NS)} to {format_ns(gaps.LATENCY_HIGHEST_NS)}",
    "the longest time in which a launch reaches an idle device; longer delays have another cause",
)
DRAINED = Threshold("drained_lead", format_ns(LEAD_NS), "a call that drained the queue began this long before the gap")
READ_BACK = Threshold("read_back", f"{READ_BACK_BYTES} B", "the largest copy to the host that is a read-back")
