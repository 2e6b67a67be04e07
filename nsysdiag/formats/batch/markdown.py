"""A batch as Markdown for the summary of a CI job: the worst first, cut where GitHub would refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import named
from nsysdiag.document.markdown import markdown_document
from nsysdiag.formats.batch.summary import document

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary

MOST_BYTES = 1_000_000
"""GitHub takes 1 MiB from all steps of a job together: a little is left to others."""
CUT = "\n**Cut here: the whole of it would be longer than a summary may be.** All of it is in `index.html`.\n"


def render(summary: BatchSummary, most: int = MOST_BYTES) -> bytes:
    """At most `most` bytes; what does not fit is cut, and a last sentence says so."""
    found, config = document(summary), summary.settings.get("config")
    origin = [f"{summary.tool.name} {summary.tool.version}", *named(" · settings of ", str(config or ""))]
    data = markdown_document(found.title.lower(), found.sections, origin, None)
    return data if len(data) <= most else _cut(data, most - len(CUT.encode())) + CUT.encode()


def _cut(data: bytes, most: int) -> bytes:
    """The first lines, at most so many bytes."""
    return data[: data.rfind(b"\n", 0, most) + 1]
