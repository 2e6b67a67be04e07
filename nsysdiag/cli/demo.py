"""`nsysdiag demo`: a first report, from a small trace that comes with the program."""

import gzip
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.cli.options import DebugOption, ForceOption, FormatOption, OpenOption, OutputOption, QuietOption

if TYPE_CHECKING:
    from nsysdiag.report import Report

EPILOG = """\b
Examples:
  nsysdiag demo
  nsysdiag demo -o demo.html --open"""

NAME = "demo.sqlite"


def demo(
    *,
    output: OutputOption = None,
    format_name: FormatOption = None,
    open_html: OpenOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Analyse a bundled trace, for a first look.

    Two ranks train, and their data loaders are too slow. The host is a real capture. There was no GPU: the program
    reckoned what one would have run when, and that was put into the trace. Prints the summary and, without -o,
    writes demo.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.deliver import deliver, require_html
    from nsysdiag.cli.destinations import check, plan

    destinations = plan(output or (), format_name, Path(NAME).stem)
    require_html(destinations, open_html=open_html)
    check(destinations, None, force=force)
    deliver(_report(quiet=quiet), destinations, force=force, quiet=quiet, open_html=open_html)


def _report(*, quiet: bool) -> "Report":
    from nsysdiag.cli.load import analyze_trace
    from nsysdiag.config.settings import Settings
    from nsysdiag.private import private_folder

    with private_folder() as folder:
        trace = folder / NAME
        trace.write_bytes(gzip.decompress(bundled_trace()))
        return analyze_trace(trace, Settings(), quiet=quiet)


def bundled_trace() -> bytes:
    """The gzipped trace that ships inside the package."""
    return files("nsysdiag").joinpath("data", f"{NAME}.gz").read_bytes()
