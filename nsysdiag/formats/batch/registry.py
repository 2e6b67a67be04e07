"""The files of a batch, by their names within its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsysdiag.ci.facts import BatchSummary, HistoryLine
from nsysdiag.document.names import visible
from nsysdiag.formats import markdown as markdown_report
from nsysdiag.formats import text_
from nsysdiag.formats.batch import junit, sarif, trend
from nsysdiag.formats.batch.entries import headline
from nsysdiag.formats.batch.sarif import ERROR, NOTE, WARNING, problems
from nsysdiag.formats.batch.summary import render_markdown, render_page
from nsysdiag.formats.html import page
from nsysdiag.report import CauseInfo

# GitHub workflow commands: lines which a job prints and GitHub shows as annotations.

MOST = 10
"""GitHub shows so many annotations of each kind and step."""
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def render(summary: BatchSummary, *, findings: bool = False) -> bytes:
    """A title line, then one line per annotation, of findings only where they are asked for. If there are more than
    GitHub shows, the last of each kind gives the number."""
    found = [problem for problem in problems(summary) if findings or not problem.severity]
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


OURS: dict[str, Callable[[bytes], bool]] = {
    "index.html": page.is_ours,
    "trend.html": page.is_ours,
    "summary.md": markdown_report.is_ours,
    "junit.xml": junit.is_ours,
    "nsysdiag.sarif": sarif.is_ours,
    "github.txt": text_.is_ours,
}
"""Every file that a batch may have, with what tells whether the content of an existing one was written by us."""


def write_all(
    summary: BatchSummary,
    history: Sequence[HistoryLine],
    causes: Sequence[CauseInfo] = (),
    *,
    annotate_findings: bool = False,
) -> dict[str, bytes]:
    """The content of every file by its name. `history` are the runs of all devices, this one among them; without it
    there is no trend. `causes` gives causes their titles and colours; missing ones are shown by id."""
    return {
        "index.html": render_page(summary, history),
        **({"trend.html": trend.render(summary, history, causes)} if history else {}),
        "summary.md": render_markdown(summary),
        "junit.xml": junit.render(summary),
        "nsysdiag.sarif": sarif.render(summary, causes),
        "github.txt": render(summary, findings=annotate_findings),
    }
