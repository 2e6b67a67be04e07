"""`nsysdiag render`: other views of a saved report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli.options import (
    DebugOption,
    ForceOption,
    FormatOption,
    OpenOption,
    OutputOption,
    QuietOption,
    RedactKeyOption,
    RedactOption,
)
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.model import Report
    from nsysdiag.model_compare import Comparison
    from nsysdiag.model_ranks_report import RanksReport

EPILOG = """\b
Examples:
  nsysdiag render report.json -o report.html
  nsysdiag render report.json -o - --format md
  nsysdiag render report.json --redact -o for-the-ticket.html"""


def render(
    report: Annotated[
        str, typer.Argument(metavar="REPORT.json", help="Saved by analyze, ranks or compare, with -o REPORT.json.")
    ],
    *,
    output: OutputOption = None,
    format_name: FormatOption = None,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    open_html: OpenOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a saved report in other formats, without the trace."""
    from nsysdiag.cli.deliver import deliver, require_html
    from nsysdiag.cli.destinations import check, plan, require_formats
    from nsysdiag.cli.load import read_document
    from nsysdiag.cli.redaction import check_redaction
    from nsysdiag.model_compare import Comparison
    from nsysdiag.model_ranks_report import RanksReport
    from nsysdiag.output.compare.registry import RENDERERS as COMPARISONS
    from nsysdiag.output.ranks.csv_ import TABLES
    from nsysdiag.output.ranks.registry import RENDERERS

    check_redaction(redact_key, redact=redact)
    if not output:
        raise UsageError("render needs an output", hint="add -o report.html, or '-o -' with --format")
    path = Path(report)
    document = read_document(path)
    tables = TABLES if isinstance(document, RanksReport) else () if isinstance(document, Comparison) else None
    destinations = plan(output, format_name, path.stem, tables=tables)
    if isinstance(document, RanksReport):
        require_formats(destinations, RENDERERS, "a comparison of ranks")
    if isinstance(document, Comparison):
        require_formats(destinations, COMPARISONS, "a comparison")
    require_html(destinations, open_html=open_html)
    check(destinations, path, force=force)
    deliver(
        _redacted(document, redact_key, redact=redact),
        destinations,
        force=force,
        quiet=quiet,
        summary=False,
        open_html=open_html,
    )


def _redacted(
    document: "Report | RanksReport | Comparison", key: str | None, *, redact: bool
) -> "Report | RanksReport | Comparison":
    from nsysdiag.cli.redaction import redacted_for
    from nsysdiag.model_compare import Comparison

    if not isinstance(document, Comparison):
        return redacted_for(document, key, redact=redact)
    if redact:
        raise UsageError(
            "a saved comparison cannot be redacted",
            hint="compare again with --redact: nsysdiag compare BEFORE AFTER --redact",
        )
    return document
