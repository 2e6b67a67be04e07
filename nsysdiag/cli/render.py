"""`nsysdiag render`: other views of a saved report."""

from pathlib import Path
from typing import Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.messages import UsageError

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
    details: options.DetailsOption = False,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Write a saved report in other formats, without the trace."""
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.formats.documents import kind_of
    from nsysdiag.saved.files import read_document

    if not output:
        raise UsageError("render needs an output", hint="add -o report.html, or '-o -' with --format")
    path = Path(report)
    document = read_document(path)
    kind = kind_of(document)
    destinations = plan(output, format_name, path.stem, kind, inputs=[path], force=force, open_html=open_html)
    if isinstance(document, Comparison):
        if redact:
            raise UsageError(
                "a saved comparison cannot be redacted",
                hint="compare again with --redact: nsysdiag compare BEFORE AFTER --redact",
            )
    else:
        document = options.redacted_for(document, redact=redact)
    write_all(document, destinations, force=force, quiet=quiet, summary=False, open_html=open_html, details=details)
