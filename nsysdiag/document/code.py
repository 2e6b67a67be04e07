"""Places in the program's code in words: functions with their callers, and what samples were in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from nsysdiag.document.names import brief, clip
from nsysdiag.units import format_count, format_share

if TYPE_CHECKING:
    from nsysdiag.report import CallSite, CodeFrame, CodeShare

NAME_LIMIT = 60
COUNTED = {"cuda": "calls", "osrt": "calls", "sampling": "samples", "python": "back traces"}
Show = Callable[[str], str]


def short(name: str) -> str:
    """A function or file as shown: without parameters, cut if long, without control characters."""
    return clip(brief(name.partition(" [clone ")[0].removesuffix(" const")), NAME_LIMIT)


def whole(name: str) -> str:
    """A function or file as it is in the trace, for a table of raw values."""
    return name


def call_site_label(site: CallSite | None, show: Show = short) -> str:
    """A place with its callers, innermost first, and how many of the call chains lead there; empty where there is none.

    `pack ← exchange ← main [solver], 12 of 20 samples`, `load (data.py:17) ← train (train.py:80)`.
    """
    if site is None or not site.frames:
        return ""
    parts = []
    # Native functions of one module bear its name once, behind the last of them.
    for module, group in groupby(site.frames, key=lambda frame: "" if frame.python else frame.module):
        names = " ← ".join(_function(frame, show) for frame in group)
        shown = show(module)
        parts.append(names + (f" {shown if shown.startswith('[') else f'[{shown}]'}" if module else ""))
    what = "" if site.own else "library code: "
    when = "the launch, in " if site.launch else ""
    share = f", {format_count(site.chains)} of {format_count(site.of)} {COUNTED.get(site.source, 'call chains')}"
    return when + what + " ← ".join(parts) + (share if site.of > 1 else "")


def _function(frame: CodeFrame, show: Show) -> str:
    name = show(frame.symbol) or "no symbol"
    if not frame.python or not frame.module:
        return name
    line = f":{frame.line}" if frame.line else ""
    return f"{name} ({show(frame.module)}{line})"


def host_code_label(code: list[CodeShare], show: Show = short) -> str:
    """What samples were in: `_PyEval_EvalFrameDefault (interpreter) 62.0%, memcpy (native library) 21.0%`."""
    return ", ".join(f"{show(each.symbol)} ({show(each.kind)}) {format_share(each.share, 1)}" for each in code)
