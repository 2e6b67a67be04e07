"""Everything that shows a Report: formats chosen by name or by the suffix of a path, and their options."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from types import ModuleType

from msgspec import Struct

from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
from nsysdiag.document.names import visible
from nsysdiag.messages import JSON, MARKUP, TEXT, UsageError
from nsysdiag.plugins import FORMATS as FORMATS_GROUP
from nsysdiag.plugins import plugins
from nsysdiag.record import to_json, value_in
from nsysdiag.report import Report


class RenderOptions(Struct, frozen=True):
    """`width` (in columns) and `color` are for text. `details` shows all sections instead of the first screen, in text
    and Markdown. `source`, `command` and `created` go to the footer where given. `budgets` were checked on the report,
    `unjudged` are those that it cannot tell; both are for the formats of CI systems. With `comment`, a key, Markdown is
    a comment on a pull request, which holds them too; `accept` has the command that accepts a budget, by its id,
    and `report_url` is where the whole report is.

    Nothing is taken from the clock or the machine: the same report and options give the same bytes.
    """

    width: int = 100
    color: bool = False
    details: bool = False
    source: str | None = None
    command: str | None = None
    created: str | None = None
    budgets: tuple[BudgetResult, ...] = ()
    unjudged: tuple[UnjudgedBudget, ...] = ()
    comment: str | None = None
    report_url: str | None = None
    accept: dict[str, str] = {}


class Format(Struct, frozen=True):
    """One way to write a report. Its `module`, by its place in this package, is imported when it is first asked: a run
    needs few of them. Of its functions `function` writes, and `marker` tells whether the content of a file is ours.
    `syntax` is one of those of `workflow_commands`: how a command in it is broken where the result goes to stdout. One
    that another package `added` names its module in full."""

    name: str
    suffix: str
    title: str
    module: str
    syntax: str
    function: str = "render"
    marker: str = "is_ours"
    added: bool = False

    def render(self, report: Report, options: RenderOptions) -> bytes:
        """The report in this format."""
        made: bytes = getattr(self._writer(), self.function)(report, options)
        return made

    def is_ours(self, data: bytes) -> bool:
        """Does the content of a file carry this format's marker?"""
        ours: bool = getattr(self._writer(), self.marker)(data)
        return ours

    def _writer(self) -> ModuleType:
        return import_module(self.module if self.added else f"{__name__}.{self.module}".rstrip("."))


# The formats that a report can be written in. To add one, write its file and name it here.

_KNOWN = (
    Format("html", ".html", "HTML report in one file", "html.page", MARKUP),
    Format("json", ".json", "JSON, the saved report", "", JSON, "render_json", "is_json"),
    Format("md", ".md", "Markdown for tickets", "prose", TEXT, "render_markdown", "is_markdown"),
    Format("txt", ".txt", "text summary", "prose", TEXT, "render_text", "is_text"),
    Format("csv", ".csv", "CSV, the gaps, and one more file for every other table", "tables", TEXT),
    Format("prom", ".prom", "OpenMetrics gauges for a Prometheus textfile collector", "openmetrics", TEXT),
    Format("perfetto", ".perfetto.json", "trace events of the gaps, for ui.perfetto.dev", "viewers", JSON, "perfetto"),
    Format("folded", ".folded", "collapsed stacks of idle time and waits, for flame graphs", "viewers", TEXT, "folded"),
    Format("speedscope", ".speedscope.json", "the same for speedscope.app", "viewers", JSON, "speedscope"),
    Format("junit", ".junit.xml", "JUnit XML, one test case a budget", "batch.ci", MARKUP, "junit_report", "is_junit"),
    Format("sarif", ".sarif", "SARIF 2.1.0 for code scanning", "batch.ci", JSON, "sarif_report", "is_sarif"),
)


def _refused(plugin: Format) -> str:
    taken = any({plugin.name, plugin.suffix} & {known.name, known.suffix} for known in _KNOWN)
    return "its name or suffix is that of another format" if taken else "" if plugin.added else "it is not `added`"


FORMATS = {known.name: known for known in (*_KNOWN, *plugins(FORMATS_GROUP, Format, _refused))}


def format_for(path: str, possible: Collection[str] = FORMATS.keys()) -> str:
    """The name of the format for the suffix of `path`; the longest matching suffix wins.

    Raises UsageError naming the suffixes of the `possible` ones.
    """
    if path.lower().endswith(".gitlab.json"):
        raise UsageError("GitLab's code quality format is gone", hint="write .junit.xml, which GitLab shows as tests")
    fitting = [known for known in FORMATS.values() if path.lower().endswith(known.suffix)]
    if fitting:
        return max(fitting, key=lambda known: len(known.suffix)).name
    suffixes = ", ".join(known.suffix for known in FORMATS.values() if known.name in possible)
    raise UsageError(f"no format has the suffix of '{visible(path)}'", hint=f"the suffixes are: {suffixes}")


def render_json(report: Report, _options: RenderOptions) -> bytes:
    """The report as UTF-8 JSON: the saved form, from which every other one can be made."""
    return to_json(report)


def is_json(data: bytes) -> bool:
    """Does the document name us as its tool?"""
    return bool(value_in(data, "tool", "name") == "nsysdiag")
