"""The formats that a report can be written in. To add one, write its file and name it here."""

from __future__ import annotations

from collections.abc import Collection

from nsysdiag.document.names import visible
from nsysdiag.errors import UsageError
from nsysdiag.formats.format import Format
from nsysdiag.workflow_commands import JSON, MARKUP, TEXT

_KNOWN = (
    Format("html", ".html", "HTML report in one file", "html.page", MARKUP),
    Format("json", ".json", "JSON, the saved report", "json_", JSON),
    Format("md", ".md", "Markdown for tickets", "markdown", TEXT),
    Format("txt", ".txt", "text summary", "text_", TEXT),
    Format("csv", ".csv", "CSV, the gaps, and one more file for every other table", "csv_", TEXT),
    Format("prom", ".prom", "OpenMetrics gauges for a Prometheus textfile collector", "openmetrics", TEXT),
    Format("perfetto", ".perfetto.json", "trace events of the gaps, for ui.perfetto.dev", "perfetto.perfetto", JSON),
    Format("junit", ".junit.xml", "JUnit XML, one test case a budget", "ci.junit", MARKUP),
    Format("sarif", ".sarif", "SARIF 2.1.0 for code scanning", "ci.sarif", JSON),
    Format("gitlab", ".gitlab.json", "GitLab code quality report", "ci.gitlab", JSON),
)
FORMATS = {known.name: known for known in _KNOWN}


def format_for(path: str, possible: Collection[str] = FORMATS.keys()) -> str:
    """The name of the format for the suffix of `path`; the longest matching suffix wins.

    Raises UsageError naming the suffixes of the `possible` ones.
    """
    fitting = [known for known in FORMATS.values() if path.lower().endswith(known.suffix)]
    if fitting:
        return max(fitting, key=lambda known: len(known.suffix)).name
    suffixes = ", ".join(known.suffix for known in FORMATS.values() if known.name in possible)
    raise UsageError(f"no format has the suffix of '{visible(path)}'", hint=f"the suffixes are: {suffixes}")
