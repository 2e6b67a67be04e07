"""The thresholds of each stage, read from the code: numeric constants of modules, with what their docstrings say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import ROOT

PACKAGE = ROOT / "nsysdiag"
STAGES = {
    "Reading of events": ("events", "stacks"),
    "Gaps, causes and the ledger": ("gaps", "causes", "ledger", "gap_groups"),
    "Who ended a wait": ("wakeups", "host"),
    "Steps": ("iterations", "ranges"),
    "Phases": ("phases",),
    "Accounts and findings": ("account", "findings"),
    "The judgment": ("diagnosis",),
    "Kernels, launches, memory, counters": ("kernels", "launches", "memory", "utilization", "counters"),
    "Replay": ("replay", "critical_path"),
    "Comparison": ("comparison",),
    "Ranks": ("ranks",),
}
"""The folders of each stage, in the order in which a trace goes through them."""
SHOWN = ("show", "show.py", "words.py", "facts.py", "report.py")
"""Folders and files that say how much is shown, and decide nothing."""


class ModuleConstant(NamedTuple):
    """Numeric constants that one docstring is about: `NAME` and value of each, and where they stand."""

    path: Path
    values: dict[str, str]
    said: str


def constants(folder: str) -> Iterator[ModuleConstant]:
    """Those of the files of a folder that decide something, in the order of files and lines; `said` is empty if they
    have no docstring."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        if set(path.relative_to(PACKAGE).parts).isdisjoint(SHOWN):
            yield from _in(path)


def _in(path: Path) -> Iterator[ModuleConstant]:
    source = path.read_text(encoding="utf-8")
    body = ast.parse(source).body
    for at, each in enumerate(body):
        values = _numbers(each, source)
        if values:
            behind = body[at + 1] if at + 1 < len(body) else None
            text = behind.value.value if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant) else ""
            yield ModuleConstant(path, values, text if isinstance(text, str) else "")


def _numbers(statement: ast.stmt, source: str) -> dict[str, str]:
    """The names and values of an assignment of numbers; codes such as -1 are not thresholds."""
    if not isinstance(statement, ast.Assign):
        return {}
    (target,) = statement.targets[:1]
    pairs = [(target, statement.value)]
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        pairs = list(zip(target.elts, statement.value.elts, strict=True))
    if not all(isinstance(name, ast.Name) and _is_number(value) for name, value in pairs):
        return {}
    named = ((name.id, ast.get_source_segment(source, value)) for name, value in pairs if isinstance(name, ast.Name))
    return {name: value for name, value in named if value}


def _is_number(value: ast.expr) -> bool:
    """Whether it is a number, or computed from numbers."""
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def section() -> str:
    """A table for each stage: name, value, what it says, and the file."""
    return "\n\n".join(f"## {stage}\n\n{_table(folders)}" for stage, folders in STAGES.items())


def _table(folders: tuple[str, ...]) -> str:
    lines = ["| threshold | value | what it does | file |", "| --- | --- | --- | --- |"]
    for each in (each for folder in folders for each in constants(folder) if each.said):
        names, values = ("<br>".join(f"`{text}`" for text in texts) for texts in (each.values, each.values.values()))
        said = " ".join(each.said.split("```")[0].split()).replace("|", "\\|")
        lines.append(f"| {names} | {values} | {said} | `{each.path.relative_to(PACKAGE)}` |")
    return "\n".join(lines)
