"""The formats that a report can be written in. To add one, write its file and name it here."""

from __future__ import annotations

from collections.abc import Collection

from nsysdiag.document.names import visible
from nsysdiag.errors import UsageError
from nsysdiag.formats import ci, csv_, json_, markdown, openmetrics, text_
from nsysdiag.formats.format import Format
from nsysdiag.formats.html import page
from nsysdiag.formats.perfetto import perfetto

FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        page.FORMAT,
        json_.FORMAT,
        markdown.FORMAT,
        text_.FORMAT,
        csv_.FORMAT,
        openmetrics.FORMAT,
        perfetto.FORMAT,
        ci.JUNIT,
        ci.SARIF,
        ci.GITLAB,
    )
}


def format_for(path: str, possible: Collection[str] = FORMATS.keys()) -> str:
    """The name of the format that the suffix of `path` asks for; of two that fit, the longer suffix wins.

    Raises UsageError naming the suffixes of the `possible` ones.
    """
    fitting = [known for known in FORMATS.values() if path.lower().endswith(known.suffix)]
    if fitting:
        return max(fitting, key=lambda known: len(known.suffix)).name
    suffixes = ", ".join(known.suffix for known in FORMATS.values() if known.name in possible)
    raise UsageError(f"no format has the suffix of '{visible(path)}'", hint=f"the suffixes are: {suffixes}")
