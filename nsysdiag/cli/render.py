"""`nsysdiag render`: other views of a saved report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.cli.output import Kind
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import Report

EPILOG = """\b
Examples:
  nsysdiag render report.json -o report.html
  nsysdiag render report.json -o - --format md
  nsysdiag render report.json --redact -o for-the-ticket.html"""


def render(
    report: Annotated[
        str,
        typer.Argument(metavar="REPORT.json", help="Saved by analyze, ranks, compare or whatif, with -o REPORT.json."),
    ],
    *,
    output: options.OutputOption = None,
    format_name: options.FormatOption = None,
    redact: options.RedactOption = False,
    redact_key: options.RedactKeyOption = None,
    details: options.DetailsOption = False,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Write a saved report in other formats, without the trace."""
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.saved_files import read_document

    options.check_redaction(redact_key, redact=redact)
    if not output:
        raise UsageError("render needs an output", hint="add -o report.html, or '-o -' with --format")
    path = Path(report)
    document = read_document(path)
    kind = _kind(document)
    destinations = plan(output, format_name, path.stem, kind, inputs=[path], force=force, open_html=open_html)
    if isinstance(document, Comparison):
        if redact:
            raise UsageError(
                "a saved comparison cannot be redacted",
                hint="compare again with --redact: nsysdiag compare BEFORE AFTER --redact",
            )
    else:
        document = options.redacted_for(document, redact_key, redact=redact)
    write_all(document, destinations, force=force, quiet=quiet, summary=False, open_html=open_html, details=details)


def _kind(document: "Report | RanksReport | Comparison | WhatIf") -> "Kind | None":
    from nsysdiag.cli.output import Kind
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.comparison.show.registry import RENDERERS as COMPARISONS
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.ranks.show.csv_ import TABLES
    from nsysdiag.ranks.show.registry import RENDERERS
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.replay.show.registry import RENDERERS as PREDICTIONS

    if isinstance(document, RanksReport):
        return Kind("a comparison of ranks", [*RENDERERS], TABLES)
    if isinstance(document, WhatIf):
        return Kind("a prediction", [*PREDICTIONS], tables=())
    return Kind("a comparison", [*COMPARISONS], tables=()) if isinstance(document, Comparison) else None
