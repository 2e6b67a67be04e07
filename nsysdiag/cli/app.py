"""The application: the visible list of commands, and the entry point."""

import os
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from nsysdiag.cli import analyze, baseline, batch, compare, help, record, traces, whatif
from nsysdiag.cli.console import run
from nsysdiag.cli.help import WIDEST, GroupedCommand, plain
from nsysdiag.cli.record import RecordCommand
from nsysdiag.trace.formats import folder_format
from nsysdiag.version import __version__


class Commands(TyperGroup):
    """The commands by their names; a first argument that is none of them but a trace stands for `analyze` and it."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As for any group, but plain."""
        return plain(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As for any group, which suggests what a misspelt word may mean."""
        if self.get_command(ctx, args[0]) is None and _is_trace(args[0]):
            args = ["analyze", *args]
        return super().resolve_command(ctx, args)


def _is_trace(word: str) -> bool:
    """Whether this is the path of a file, which `analyze` looks into, or of a folder that is a trace."""
    try:
        path = Path(word)
        return path.exists() and (not path.is_dir() or folder_format(path) is not None)
    except (OSError, ValueError):
        return False


app: typer.Typer = typer.Typer(
    name="nsysdiag",
    cls=Commands,
    help="Says, to the nanosecond, what an idle GPU was waiting for, from an exported Nsight Systems trace. "
    "A trace instead of a command is analyzed.",
    epilog="\b\nExamples:\n  nsysdiag train.sqlite\n  nsysdiag analyze train.sqlite -o report.html -o report.json",
    add_completion=False,  # it would write into the user's shell files
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
app.command(cls=GroupedCommand, epilog=analyze.EPILOG)(analyze.analyze)
app.command(cls=RecordCommand, epilog=record.EPILOG)(record.record)
app.command("try", cls=RecordCommand, epilog=whatif.TRY_EXAMPLES)(whatif.try_fix)
app.command(cls=GroupedCommand, epilog=compare.EPILOG)(compare.compare)
app.command(cls=GroupedCommand, epilog=baseline.EPILOG)(baseline.baseline)
app.command(cls=GroupedCommand, epilog=batch.EPILOG)(batch.batch)
app.command(cls=GroupedCommand, epilog=compare.RANKS_EXAMPLES)(compare.ranks)
app.command(cls=GroupedCommand, epilog=whatif.EPILOG)(whatif.whatif)
app.command(cls=GroupedCommand, epilog=traces.BUNDLE_EXAMPLES)(traces.bundle)
app.command(cls=GroupedCommand, epilog=traces.INFO_EXAMPLES)(traces.info)
app.command(cls=GroupedCommand, epilog=traces.EPILOG)(traces.sql)
app.command(cls=GroupedCommand, epilog=traces.MCP_EXAMPLES)(traces.mcp)
app.command(cls=GroupedCommand, epilog=help.RULES_EXAMPLES)(help.rules)
app.command(cls=GroupedCommand, epilog=analyze.RENDER_EXAMPLES)(analyze.render)
app.command(cls=GroupedCommand, epilog=analyze.DEMO_EXAMPLES)(analyze.demo)
app.command(cls=GroupedCommand, epilog=help.COMPLETION_EXAMPLES)(help.completion)
app.command(cls=GroupedCommand, epilog=help.EPILOG)(help.manual)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nsysdiag {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def nsysdiag(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
    ] = False,
) -> None:
    """Show the help if no command is given: a first look is not a mistake."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line, `sys.argv` by default, or complete one for a shell, and exit with its code."""
    if help.VARIABLE in os.environ:
        help.complete(app)
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run(_analyzing() if given[:1] == ["analyze"] else app, given))


def _analyzing() -> typer.Typer:
    """The application with `analyze` alone: to make all commands takes 9 of 430 ms for a small trace."""
    alone = copy(app)
    alone.registered_commands = [each for each in app.registered_commands if each.callback is analyze.analyze]
    return alone
