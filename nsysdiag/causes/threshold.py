"""The numbers that rules depend on, as `nsysdiag rules` lists them."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.config.settings import FindingThresholds
from nsysdiag.gaps import calibration
from nsysdiag.units import format_ns

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
    f"{calibration.LATENCY_FACTOR} × latency, {format_ns(calibration.LATENCY_LOWEST_NS)} to "
    f"{format_ns(calibration.LATENCY_HIGHEST_NS)}",
    "the longest time in which a launch reaches an idle device; longer delays have another cause",
)
DRAINED = Threshold("drained_lead", format_ns(LEAD_NS), "a call that drained the queue began this long before the gap")
READ_BACK = Threshold("read_back", f"{READ_BACK_BYTES} B", "the largest copy to the host that is a read-back")
