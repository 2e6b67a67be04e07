"""The application: the visible list of commands, and the entry point."""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from nsysdiag.cli import analyze, batch, bundle, compare, demo, info, ranks, render, rules, whatif
from nsysdiag.cli.errors import run
from nsysdiag.messages import note_messages_of_python
from nsysdiag.shortage import require_start
from nsysdiag.version import __version__

app = typer.Typer(
    name="nsysdiag",
    help="Says, to the nanosecond, what an idle GPU was waiting for, from an exported Nsight Systems trace.",
    epilog="Example: nsysdiag analyze train.sqlite -o report.html -o report.json",
    add_completion=False,  # it would write into the user's shell files
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=analyze.EPILOG)(analyze.analyze)
app.command(epilog=compare.EPILOG)(compare.compare)
app.command(epilog=batch.EPILOG)(batch.batch)
app.command(epilog=ranks.EPILOG)(ranks.ranks)
app.command(epilog=whatif.EPILOG)(whatif.whatif)
app.command(epilog=bundle.EPILOG)(bundle.bundle)
app.command(epilog=info.EPILOG)(info.info)
app.command(epilog=rules.EPILOG)(rules.rules)
app.command(epilog=render.EPILOG)(render.render)
app.command(epilog=demo.EPILOG)(demo.demo)


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
    """Show the help where no command is given: a first look is not a mistake."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        require_start()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line, `sys.argv` by default, and exit with its code."""
    note_messages_of_python()
    sys.exit(run(app, sys.argv[1:] if arguments is None else arguments))
