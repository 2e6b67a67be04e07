"""The moment that outputs bear where they must bear one, so that the same input gives the same bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

VARIABLE = "SOURCE_DATE_EPOCH"
_MOST_DIGITS = 11


def now(environment: Mapping[str, str] = os.environ) -> int:
    """The time of the run, in UTC seconds since 1970: SOURCE_DATE_EPOCH where that is set."""
    known = source_date_epoch(environment)
    return int(time.time()) if known is None else known


def source_date_epoch(environment: Mapping[str, str] = os.environ) -> int | None:
    """UTC seconds since 1970 as SOURCE_DATE_EPOCH says; None where it is not set, or holds no such number."""
    text = environment.get(VARIABLE, "")
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
