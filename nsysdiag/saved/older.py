"""Saved reports of older versions as today's: fields that were renamed get their new names, settings that were texts
their values.

What a later version has besides is not in them, and its fields say so by their defaults.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nsysdiag.config.settings import Settings
from nsysdiag.saved import check_size

FORMER = "1"
_NUMBERS = ("start_ns", "end_ns", "gaps", "memory_limit")
_THRESHOLDS = {
    "bubble_gap_ns": "launch_bound_gap_ns",
    "bubble_run": "launch_bound_run",
    "bubble_launches": "launch_bound_launches",
    "collapse_depth": "drain_depth",
}
_RENAMED_SINCE_1: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {"untold": "not_recorded"}),
    ("not_recorded.*", {"told_by": "tool"}),
    ("host", {"beginnings": "change_points"}),
    ("devices.*.launch", {"run_ahead": "queue_depth", "bubbles": "launch_bound"}),
    (
        "devices.*.launch.queue_depth",
        {"collapse_count": "drain_count", "collapse_idle_ns": "drain_idle_ns", "collapses": "drains"},
    ),
)
"""The path of a record in a report, and its renamed fields."""
_GONE_SINCE_1: tuple[tuple[str, str], ...] = (("devices.*", "trouble"), ("settings", "trouble"))
"""The path of a record, and its removed field: the diagnosis of a device, and its settings."""


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
    for path, name in _GONE_SINCE_1:
        for record in _records(report, path.split(".")):
            record.pop(name, None)
    for record in _records(report, ["devices", "*", "iterations"]):
        # How many slow iterations there are, and what they take more: of those that are listed, ten at most.
        extra = [each.get("extra_ns") for each in _records(record, ["slow", "*"])]
        if known := [each for each in extra if isinstance(each, int)]:
            record.update(slow_count=len(known), slow_extra_ns=sum(known))
    for record in _records(report, ["settings"]):
        record.update({name: _setting(name, text) for name, text in record.items() if isinstance(text, str)})
    return msgspec.json.encode(report | {"schema_version": "2"} if isinstance(report, dict) else report)


def _records(value: Any, path: list[str]) -> list[dict[str, Any]]:
    """The objects at a path, `*` for all of a list; none for values of other types."""
    if not path:
        return [value] if isinstance(value, dict) else []
    name, *rest = path
    if name == "*":
        return [found for each in value for found in _records(each, rest)] if isinstance(value, list) else []
    return _records(value.get(name), rest) if isinstance(value, dict) else []


def _setting(name: str, text: str) -> Any:
    """The value of a setting that was written as text; the text itself where it is no such value."""
    default = getattr(Settings(), name, None)
    try:
        if isinstance(default, msgspec.Struct):
            return _struct(text)
        if isinstance(default, bool):
            return text == "True"
        if isinstance(default, tuple):
            return text.split(", ")
        if name == "iterations":
            return [int(part) if part else None for part in text.split(":")]
        return int(text) if name in _NUMBERS else text
    except ValueError:
        return text


def _struct(text: str) -> dict[str, Any]:
    """`poll_ns 20000000, hollow_activity 0.5`; prices by GPU are `gpus.H100 2.5`. Raises ValueError for other texts."""
    found: dict[str, Any] = {}
    for part in text.split(", "):
        name, _, value = part.rpartition(" ")
        name = _THRESHOLDS.get(name, name)
        inner, gpu = (found.setdefault("gpus", {}), name[5:]) if name.startswith("gpus.") else (found, name)
        inner[gpu] = value if gpu == "currency" else msgspec.json.decode(value, type=int | float)
    return found
