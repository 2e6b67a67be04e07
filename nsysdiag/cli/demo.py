"""`nsysdiag demo`: a first report, from a small trace that comes with the program."""

import gzip
from importlib.resources import files
from pathlib import Path

from nsysdiag.cli import options

EPILOG = """\b
Examples:
  nsysdiag demo
  nsysdiag demo -o demo.html --open"""

NAME = "demo.sqlite"


def demo(
    *,
    output: options.OutputOption = None,
    format_name: options.FormatOption = None,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Analyse a bundled trace, for a first look.

    Two ranks train, and their data loaders are too slow. The host is a real capture. There was no GPU: the program
    simulated what one would have run when, and that was put into the trace. Prints the summary and, without -o,
    writes demo.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.cli.settings import analyze_trace
    from nsysdiag.config.settings import Settings
    from nsysdiag.pseudonyms import private_folder

    destinations = plan(output, format_name, Path(NAME).stem, force=force, open_html=open_html)
    with private_folder() as folder:
        trace = folder / NAME
        trace.write_bytes(gzip.decompress(bundled_trace()))
        report = analyze_trace(trace, Settings(), quiet=quiet)
    write_all(report, destinations, force=force, quiet=quiet, open_html=open_html)


def bundled_trace() -> bytes:
    """The gzipped trace that ships inside the package."""
    return files("nsysdiag").joinpath("data", f"{NAME}.gz").read_bytes()
