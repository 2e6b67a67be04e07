"""Looks causes up by id for --disable and `rules`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.analysis.causes.cause import Cause


def find_cause(cause_id: str) -> Cause:
    """The cause with this id. Raises UsageError with the nearest ids, and all of them as the hint."""
    from nsysdiag.analysis.causes import CAUSES

    cause = CAUSES.get(cause_id)
    if cause is None:
        nearest = get_close_matches(cause_id, CAUSES, n=1) or [each for each in CAUSES if cause_id in each.split("_")]
        suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
        raise UsageError(f"unknown cause '{cause_id}'{suggestion}", hint=f"causes: {', '.join(CAUSES)}")
    return cause
