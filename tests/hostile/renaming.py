"""Saved documents in which every text is a command."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, get_args

from nsysdiag.phases.facts import PhaseName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEPT = {"schema_version", "kind", "tool", "severity", "redacted", "account_base", "per"}
"""What the document is read by."""
PHASES = get_args(PhaseName)
"""Names of phases are values of a fixed set: any other is no report."""
PACKED_EMPTY = {"stream", "idle_before", "idle_after"}
"""Packed columns that may be empty."""
PACKED = re.compile(r"[A-Za-z0-9+/=]{24,}|e[A-Za-z0-9+/]{8,}=*")


def renamed(data: bytes, names: Sequence[str]) -> bytes:
    """A document of JSON with the names in turn as its texts; keys and packed numbers stay."""
    return json.dumps(_renamed(json.loads(data), itertools.cycle(names))).encode()


def _stays(key: str, value: object) -> bool:
    return key in KEPT or value in PHASES or (value == "" and key in PACKED_EMPTY)


def _renamed(value: object, names: Iterator[str]) -> object:
    if isinstance(value, dict):
        return {key: each if _stays(key, each) else _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return next(names) if isinstance(value, str) and not PACKED.fullmatch(value) else value
