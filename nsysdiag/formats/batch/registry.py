"""The files of a batch, by their names within its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nsysdiag.ci.facts import BatchSummary, HistoryLine
from nsysdiag.formats import markdown as markdown_report
from nsysdiag.formats import text_
from nsysdiag.formats.batch import github, gitlab, junit, sarif, trend
from nsysdiag.formats.batch.summary import render_markdown, render_page
from nsysdiag.formats.html import page
from nsysdiag.report import CauseInfo

OURS: dict[str, Callable[[bytes], bool]] = {
    "index.html": page.is_ours,
    "trend.html": page.is_ours,
    "summary.md": markdown_report.is_ours,
    "junit.xml": junit.is_ours,
    "nsysdiag.sarif": sarif.is_ours,
    "gitlab.json": gitlab.is_ours,
    "github.txt": text_.is_ours,
}
"""Every file that a batch may have, with what tells whether the content of an existing one was written by us."""


def write_all(
    summary: BatchSummary, history: Sequence[HistoryLine], causes: Sequence[CauseInfo] = ()
) -> dict[str, bytes]:
    """The content of every file by its name. `history` are the runs of all devices, this one among them; without it
    there is no trend. `causes` gives causes their titles and colours; missing ones are shown by id."""
    return {
        "index.html": render_page(summary, history),
        **({"trend.html": trend.render(summary, history, causes)} if history else {}),
        "summary.md": render_markdown(summary),
        "junit.xml": junit.render(summary),
        "nsysdiag.sarif": sarif.render(summary, causes),
        "gitlab.json": gitlab.render(summary),
        "github.txt": github.render(summary),
    }
