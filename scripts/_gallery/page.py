"""The page docs/gallery.md: what is made of the entries, and the links that it gets on the site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag.bottlenecks import title_of
from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import FINDING_RULES
from scripts._gallery.entries import ENTRIES, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = {"whatif": "Prediction", "compare": "Before and after", "ranks": "Many ranks"}
"""Entries without a bottleneck of their own, by command."""
HEADING = re.compile(r"^## (.+)\n\n<!-- gallery ([\w-]+): ", re.MULTILINE)
ID = re.compile(r"(?<!`)`([a-z_]+)`(?!`)")
MARK = re.compile(r"^<!-- gallery ([\w-]+): .* -->$", re.MULTILINE)


def table(text: str) -> str:
    """Which entry is about which bottleneck, with links to the sections of the page."""
    sections = {name: f"[{heading}](#{anchor(heading)})" for heading, name in HEADING.findall(text)}
    rows: dict[str, list[str]] = {}
    for entry in ENTRIES:
        rows.setdefault(kind(entry), []).append(sections[entry.name])
    lines = ["| what the report is about | entry |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {title} | {', '.join(links)} |" for title, links in rows.items())])


def kind(entry: Entry) -> str:
    """The bottleneck of an entry as the reports name it, or what it does instead."""
    return title_of(entry.bottleneck) if entry.bottleneck else KINDS[entry.command]


def anchor(heading: str) -> str:
    """As forges and the site make them."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def linked(text: str) -> str:
    """The page for the site: a link to each report, and from each cause to its page."""
    text = MARK.sub(lambda found: f"{link(found[1])}\n\n{found[0]}", text)
    return ID.sub(lambda found: reference(found[1]) or found[0], text)


def link(name: str) -> str:
    """To a report, which Sphinx knows nothing of."""
    return f"[Open the report](gallery/{name}.html){{.external .report}}"


def reference(name: str) -> str:
    """A link to the page of a cause or finding, where it is one."""
    folder = "causes" if name in CAUSES else "findings" if name in FINDING_RULES else ""
    return f"[`{name}`]({folder}/{name}.md)" if folder else ""


def names(entries: Iterable[Entry] = ENTRIES) -> list[str]:
    """Of the reports."""
    return [entry.name for entry in entries]
