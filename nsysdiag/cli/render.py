"""`nsysdiag render`: other views of a saved report."""

from pathlib import Path
from typing import Annotated

import typer

from nsysdiag.cli.options import DebugOption, ForceOption, FormatOption, OpenOption, OutputOption, QuietOption
from nsysdiag.errors import UsageError

EPILOG = """\b
Examples:
  nsysdiag render report.json -o report.html
  nsysdiag render report.json -o - --format md"""


def render(
    report: Annotated[str, typer.Argument(metavar="REPORT.json", help="Saved by 'analyze TRACE -o REPORT.json'.")],
    *,
    output: OutputOption = None,
    format_name: FormatOption = None,
    open_html: OpenOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a saved report in other formats, without the trace."""
    from nsysdiag.cli.deliver import deliver, require_html
    from nsysdiag.cli.destinations import check, plan
    from nsysdiag.cli.load import read_report

    if not output:
        raise UsageError("render needs an output", hint="add -o report.html, or '-o -' with --format")
    path = Path(report)
    destinations = plan(output, format_name, path.stem)
    require_html(destinations, open_html=open_html)
    check(destinations, path, force=force)
    deliver(read_report(path), destinations, force=force, quiet=quiet, summary=False, open_html=open_html)
