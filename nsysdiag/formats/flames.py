"""Flame graphs as files: collapsed stacks, and the JSON of speedscope.

```
gpu0 idle;Host code;step #;on a CPU;main;load 5300000      a line a stack, ns behind it
```

flamegraph.pl, inferno and speedscope read the lines. Speedscope's own file has a graph for each device and kind:

```
{"shared": {"frames": [{"name": "Host code"}, ...]},
 "profiles": [{"type": "sampled", "name": "gpu0 idle", "unit": "nanoseconds", "samples": [[0, 3]], "weights": [53]}]}
```
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from nsysdiag.document.names import visible
from nsysdiag.document.view import as_read
from nsysdiag.formats.format import RenderOptions
from nsysdiag.ranges.show import IDLE, SAMPLES, WAITS, rows_of
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from nsysdiag.report import Report

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
EXPORTER = "nsysdiag"
_FIRST_LINE = re.compile(rb"[^;\n]*\b(%s|%s|%s)(;[^\n]*)? [0-9]+\n" % (IDLE.encode(), WAITS.encode(), SAMPLES.encode()))
Graphs = dict[str, list[tuple[list[str], int]]]


def folded(report: Report, _options: RenderOptions) -> bytes:
    """A line for each stack, the longest of each graph first. In a name, `;` would begin another frame. Without any,
    one of no time."""
    lines = [
        f"{';'.join(_frame(each) for each in (name, *frames))} {ns}\n"
        for name, stacks in graphs(report).items()
        for frames, ns in stacks
    ]
    return "".join(lines or [f"{IDLE} 0\n"]).encode()


def _frame(name: str) -> str:
    return " ".join(visible(name).replace(";", ":").split()) or "?"


def speedscope(report: Report, _options: RenderOptions) -> bytes:
    """All graphs as sampled profiles with weights in ns."""
    number: dict[str, int] = {}
    profiles = []
    for name, stacks in graphs(report).items():
        samples = [[number.setdefault(visible(each), len(number)) for each in frames] for frames, _ in stacks]
        weights = [ns for _, ns in stacks]
        profiles.append(
            {
                "type": "sampled",
                "name": name,
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    made = {
        "$schema": SCHEMA,
        "shared": {"frames": [{"name": each} for each in number]},
        "profiles": profiles,
        "name": visible(report.trace.file),
        "activeProfileIndex": 0,
        "exporter": f"{EXPORTER}@{__version__}",
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def graphs(report: Report) -> Graphs:
    """The stacks with their ns, by device and kind."""
    found: Graphs = {}
    for device, kind, each in rows_of(as_read(report)):
        found.setdefault(f"{device} {kind}".strip(), []).append((each.frames, each.ns))
    return found


def is_ours(data: bytes) -> bool:
    """Whether a file is one of ours."""
    return _FIRST_LINE.match(data) is not None or (
        SCHEMA.encode() in data[:200] and f'"exporter": "{EXPORTER}@'.encode() in data[-200:]
    )
