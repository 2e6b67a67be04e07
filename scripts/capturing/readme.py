"""The part of the fixtures' README that tells of captures, written from what lies beside each."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from programs import PROGRAMS

PART = re.compile(r"(<!-- captures -->\n).*?(<!-- end of captures -->)", re.DOTALL)
HEAD = (
    "| file | nsys, schema | options beside the common ones | what keeps the GPU waiting | as the program measured it |"
)


def rewritten(text: str, folder: Path) -> str:
    """The README with its table of captures made anew. Raises ValueError where there is no place for it."""
    logs = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("real_*.json"))}
    captures = [row(name, log) for name, log in logs.items() if log.get("program") in PROGRAMS]
    if not PART.search(text):
        raise ValueError("the README has no lines <!-- captures --> and <!-- end of captures -->")
    table = "\n".join([HEAD, "|---" * HEAD.count(" | ") + "|---|", *captures])
    return PART.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


def row(name: str, log: dict[str, Any]) -> str:
    """A line of the table."""
    program = PROGRAMS[log["program"]]
    options = " ".join(f"`{option}`" for option in program.options) or "none"
    cells = [f"`{name}`", f"{log['nsys']}, {log['schema']}", options, program.injects or "see above", measured(log)]
    return f"| {' | '.join(cells)} |"


def measured(log: dict[str, Any]) -> str:
    """What a program injected by its own clock: how often and how long."""
    spent: dict[str, list[int]] = defaultdict(list)
    for each in log.get("injected", ()):
        spent[each["what"]].append(each["end"] - each["start"])
    told = [f"{what}: {len(times)} times, {sum(times) / 1e6:,.1f} ms" for what, times in spent.items()]
    return "; ".join(told) or "nothing"
