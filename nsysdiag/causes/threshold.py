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
    "places": "places of one cause and device that are findings of their own, at most",
    "rows": "rows of the trace named by a finding, at most",
    "smallest": "of the window from which on something is a finding, and a place one of its own",
    "high": "of the window from which on a finding is high",
    "medium": "of the window from which on a finding is medium",
    "low": "of the window from which on a finding is low",
    "empty": "of the iterations that must be without work",
    "collector": "of the CPU samples in Python's collector from which on host code is garbage collection",
    "interpreter": "of the CPU samples in the interpreter from which on host code is Python",
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
    "what a launch may take to reach an idle device; what is longer is something else",
)
DRAINED = Threshold("drained_lead", format_ns(LEAD_NS), "a call that emptied the queue began this long before the gap")
READ_BACK = Threshold("read_back", f"{READ_BACK_BYTES} B", "the largest copy to the host that is a read-back")
