"""How much a finding matters, in one word."""

from __future__ import annotations

from nsysdiag.config import FindingThresholds


def severity(share: float, thresholds: FindingThresholds | None = None, *, unresolved: bool = False) -> str:
    """high, medium, low or info, by the share of the window; what the trace cannot tell is information."""
    limits = thresholds or FindingThresholds()
    if unresolved:
        return "info"
    words = ((limits.high, "high"), (limits.medium, "medium"), (limits.low, "low"))
    return next((word for least, word in words if share >= least), "info")
