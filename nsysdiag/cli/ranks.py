"""`nsysdiag ranks`: the ranks of one run beside each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.config.settings import Settings
    from nsysdiag.ranks.report import RanksReport

EPILOG = """\b
Examples:
  nsysdiag ranks rank0.sqlite rank1.sqlite rank2.sqlite rank3.sqlite
  nsysdiag ranks eight-gpus.sqlite -o ranks.html -o ranks.json
  nsysdiag ranks rank0.sqlite rank1.sqlite -o - --format md
  nsysdiag ranks rank0.sqlite rank1.sqlite --redact -o for-the-ticket.html"""


def ranks(
    traces: Annotated[
        list[str], typer.Argument(metavar="TRACE...", help="Exported .sqlite files, of one rank or several each.")
    ],
    *,
    output: options.OutputOption = None,
    format_name: options.RanksFormatOption = None,
    same_gpu: Annotated[bool, typer.Option("--same-gpu", help="The processes of each trace shared one GPU.")] = False,
    redact: options.RedactOption = False,
    redact_key: options.RedactKeyOption = None,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Say which rank the others wait for, and why it is late.

    Matches the collectives of all ranks in one or several traces, brings their clocks together, and prints a summary.
    Without -o, writes ranks.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.deliver import deliver, require_html
    from nsysdiag.cli.destinations import Kind, check, plan
    from nsysdiag.cli.redaction import check_redaction, redacted_for
    from nsysdiag.config.settings import Settings
    from nsysdiag.ranks.show.csv_ import TABLES
    from nsysdiag.ranks.show.registry import RENDERERS

    check_redaction(redact_key, redact=redact)
    paths = [Path(trace) for trace in traces]
    _refuse_repeats(paths)
    destinations = plan(output or (), format_name, "ranks", Kind("a comparison of ranks", [*RENDERERS], TABLES))
    require_html(destinations, open_html=open_html)
    for path in paths:
        check(destinations, path, force=force)
    report = _report(paths, Settings(same_gpu=same_gpu, timeline=False), quiet=quiet)
    report = redacted_for(report, redact_key, redact=redact)
    deliver(report, destinations, force=force, quiet=quiet, open_html=open_html)


def _refuse_repeats(paths: list[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.absolute() in seen:
            raise UsageError(f"{path} is named twice", hint="name each trace once")
        seen.add(path.absolute())


def _report(paths: list[Path], settings: "Settings", *, quiet: bool) -> "RanksReport":
    from nsysdiag.cli.progress import progress_bar
    from nsysdiag.ranks import pipeline

    with progress_bar(quiet=quiet) as progress:
        return pipeline.analyze_ranks(paths, settings, progress)
