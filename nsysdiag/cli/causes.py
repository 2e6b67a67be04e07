"""Looks causes and rules up by id for --disable and `rules`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.analysis.causes.cause import Cause


def find_cause(cause_id: str) -> Cause:
    """The cause with this id. Raises UsageError with the nearest ids, and all of them as the hint."""
    from nsysdiag.analysis.causes import CAUSES

    return CAUSES[_known(cause_id, CAUSES, "cause")]


def find_rule(rule_id: str) -> str:
    """The id if a cause or a rule of findings has it. Raises UsageError like `find_cause`."""
    from nsysdiag.analysis.causes import CAUSES
    from nsysdiag.analysis.finding_rules import FINDING_RULES

    return _known(rule_id, [*CAUSES, *FINDING_RULES], "rule")


def _known(wanted: str, ids: Iterable[str], what: str) -> str:
    known = list(ids)
    if wanted in known:
        return wanted
    nearest = get_close_matches(wanted, known, n=1) or [each for each in known if wanted in each.split("_")]
    suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
    raise UsageError(f"unknown {what} '{wanted}'{suggestion}", hint=f"{what}s: {', '.join(known)}")
