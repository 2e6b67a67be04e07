"""GitHub workflow commands: lines which a job prints and GitHub shows as annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.names import visible
from nsysdiag.formats.batch.problems import ERROR, NOTE, WARNING, problems
from nsysdiag.formats.batch.rows import headline

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary

MOST = 10
"""GitHub shows so many annotations of each kind and step."""
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def render(summary: BatchSummary) -> bytes:
    """A title line, then one line per annotation; if there are more than GitHub shows, the last of each kind gives the
    number."""
    found = problems(summary)
    lines = [f"nsysdiag {visible(summary.tool.version)}: {headline(summary)}"]
    for level, command in _COMMANDS.items():
        of_level = [problem for problem in found if problem.level == level]
        shown = of_level if len(of_level) <= MOST else of_level[: MOST - 1]
        lines += [annotation(command, problem.title, problem.sentence) for problem in shown]
        if more := len(of_level) - len(shown):
            lines.append(annotation(command, "nsysdiag", f"{more:,} more: see the summary of this batch"))
    return ("\n".join(lines) + "\n").encode()


def annotation(command: str, title: str, message: str) -> str:
    """One workflow command; neither its title nor its message can end it or begin another."""
    return f"::{command} title={_escaped(title, _PROPERTY)}::{_escaped(message, _DATA)}"


def _escaped(text: str, signs: dict[int, str]) -> str:
    return visible(text).translate(signs)
