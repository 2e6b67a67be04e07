"""The options that more than one command has, each declared once."""

from typing import Annotated, Any

import typer

OutputOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="Write to PATH; repeats. The suffix picks the format; '-' is stdout, with --format.",
        show_default=False,
    ),
]


def _format(names: str) -> Any:
    return typer.Option(
        "--format",
        metavar="F",
        help=f"Format of '-o -', and of a PATH whose suffix says nothing: {names}.",
        show_default=False,
    )


FormatOption = Annotated[str | None, _format("html, json, md, txt, csv, prom or perfetto")]
RanksFormatOption = Annotated[str | None, _format("html, json, md, txt or csv")]
ComparisonFormatOption = Annotated[str | None, _format("html, json, md or txt")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that nsysdiag did not write.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the HTML report in the browser when done.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No text summary, no progress, no notes: only errors.")
]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Numbers instead of the names of kernels, NVTX ranges, functions, libraries, threads, processes, files.",
    ),
]
RedactKeyOption = Annotated[
    str | None,
    typer.Option(
        "--redact-key",
        metavar="K",
        help="With --redact: hashes of the names with key K instead of numbers; reports of one key can be compared.",
        show_default=False,
    ),
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="EXPR",
        help="Exit with 1 where this is true, as 'idle_share > 20%'; repeats. See Budgets in the README.",
        show_default=False,
    ),
]
WarnOnOption = Annotated[
    list[str] | None,
    typer.Option("--warn-on", metavar="EXPR", help="Only say where this is true; repeats.", show_default=False),
]
NoConfigOption = Annotated[
    bool, typer.Option("--no-config", help="Look for no nsysdiag.toml or pyproject.toml by itself.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
