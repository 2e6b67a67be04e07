"""Saved reports of older versions as today's: fields that were renamed get their new names.

What a later version has besides is not in them, and its fields say so by their defaults.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nsysdiag.saved import check_size

FORMER = "1"
_DRAINS = {"collapse_count": "drain_count", "collapse_idle_ns": "drain_idle_ns", "collapses": "drains"}
_RENAMED_SINCE_1: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {"untold": "not_recorded"}),
    ("not_recorded.*", {"told_by": "tool"}),
    ("host", {"beginnings": "change_points"}),
    ("devices.*", {"trouble": "triage"}),
    ("devices.*.launch", {"run_ahead": "queue_depth", "bubbles": "launch_bound"}),
    ("devices.*.launch.queue_depth", _DRAINS),
)
"""Where a record stands in a report, and its renamed fields."""


def as_version_2(data: bytes) -> bytes:
    """The JSON of a report of version 1 with the names of version 2. Raises one of UNREADABLE for what is no JSON, or
    too large."""
    check_size(data)
    report = msgspec.json.decode(data)
    for path, names in _RENAMED_SINCE_1:
        for record in _records(report, path.split(".") if path else []):
            for old, new in names.items():
                if old in record:
                    record[new] = record.pop(old)
    return msgspec.json.encode(report | {"schema_version": "2"} if isinstance(report, dict) else report)


def _records(value: Any, path: list[str]) -> list[dict[str, Any]]:
    """The objects at a path, `*` for all of a list; none where something else stands there."""
    if not path:
        return [value] if isinstance(value, dict) else []
    name, *rest = path
    if name == "*":
        return [found for each in value for found in _records(each, rest)] if isinstance(value, list) else []
    return _records(value.get(name), rest) if isinstance(value, dict) else []
