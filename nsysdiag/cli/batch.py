"""`nsysdiag batch`: the reports of many traces."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli.options import DebugOption, ForceOption, QuietOption
from nsysdiag.errors import IncompleteError, OutputError, UsageError

if TYPE_CHECKING:
    from nsysdiag.batch.inputs import Found
    from nsysdiag.batch.pool import Limits
    from nsysdiag.batch.results import Run
    from nsysdiag.batch.task import Shared, Task
    from nsysdiag.model_ci import BatchEntry, BatchSummary, HistoryLine

EPILOG = """\b
Examples:
  nsysdiag batch runs -o reports
  nsysdiag batch 'runs/*/report.sqlite' old/report.json -o reports --jobs 4 --memory-limit 8GB
  nsysdiag batch runs -o reports --resume
  nsysdiag batch runs -o reports --history trend.jsonl --run v1.2
  nsysdiag batch /shared/runs -o /shared/reports --scheduler tcp://head:8786"""


def batch(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Traces, saved report JSON files, folders (searched for both with all below), patterns.",
        ),
    ],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder of the reports.", show_default=False)
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, help="How many to analyse at once; unless said, one for each CPU."
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit",
            metavar="SIZE",
            help="Memory for all jobs together, as 8GB or 500MiB: fewer run at once where they may need more.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Analyse on this Dask cluster, whose workers see the same paths: tcp://host:8786.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what an earlier batch finished, where input and settings are the same.")
    ] = False,
    history: Annotated[
        str | None, typer.Option("--history", metavar="FILE", help="Add the results of this run to FILE.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="NAME", help="What the history calls this run; unless said, the commit in CI, else the time."
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings from a nsysdiag.toml or pyproject.toml."),
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Report on many traces: a page and a saved report for each, and a summary of all.

    Each is analysed in a process of its own. An input that cannot be analysed is told of in the summary, the others are
    done, and the exit code is 4.
    """
    from nsysdiag.batch.inputs import find_inputs
    from nsysdiag.batch.task import Shared
    from nsysdiag.cli.command import command_of
    from nsysdiag.cli.load import load_report
    from nsysdiag.cli.settings import settings_of_file

    runner = _runner(scheduler, jobs, memory_limit)
    settings = settings_of_file(config)
    folder = _folder(output)
    found = find_inputs(paths, folder)
    past = _Past(history, run)
    shared = Shared(folder, settings, load_report, command_of, no_budgets, force=force, resume=resume)
    entries = _entries(found, shared, runner, quiet=quiet)
    summary = _written(entries, shared, past)
    for line in [] if quiet else [*found.notes, *past.notes, _told(summary, folder)]:
        note(line)
    _conclude(summary)
