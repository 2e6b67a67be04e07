"""`nsysdiag ranks`: compares the ranks of one run."""

from pathlib import Path
from typing import Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import progress_bar
from nsysdiag.messages import UsageError

EPILOG = """\b
Examples:
  nsysdiag ranks rank0.sqlite rank1.sqlite rank2.sqlite rank3.sqlite
  nsysdiag ranks eight-gpus.sqlite -o ranks.html -o ranks.json
  nsysdiag ranks rank0.sqlite rank1.sqlite -o - --format md
  nsysdiag ranks rank0.sqlite rank1.sqlite --redact -o for-the-ticket.html"""


def ranks(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...",
            help="Exported traces (.sqlite, or folders of Parquet files), of one rank or several each.",
        ),
    ],
    *,
    output: options.OutputOption = None,
    format_name: options.RanksFormatOption = None,
    same_gpu: options.SameGpuOfEachOption = False,
    redact: options.RedactOption = False,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Say which rank the others wait for, and why it is late.

    Matches the collectives of all ranks in one or several traces, brings their clocks together, and prints a summary.
    Without -o, writes ranks.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats.documents import DocumentKind
    from nsysdiag.ranks import pipeline
    from nsysdiag.ranks.show.registry import RENDERERS, TABLES

    paths = [Path(trace) for trace in traces]
    if twice := options.first_repeated(paths):
        raise UsageError(f"{twice} is named twice", hint="name each trace once")
    kind = DocumentKind("a comparison of ranks", [*RENDERERS], TABLES)
    destinations = plan(output, format_name, "ranks", kind, inputs=paths, force=force, open_html=open_html)
    with progress_bar(quiet=quiet) as progress:
        report = pipeline.analyze_ranks(paths, Settings(same_gpu=same_gpu, timeline=False), progress)
    report = options.redacted_for(report, redact=redact)
    write_all(report, destinations, force=force, quiet=quiet, open_html=open_html)
