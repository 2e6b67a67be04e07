"""`nsysdiag mcp`: the Model Context Protocol on stdin and stdout."""

from pathlib import Path
from typing import Annotated

from nsysdiag.cli import options
from nsysdiag.messages import UsageError

EPILOG = """\b
Examples:
  nsysdiag mcp --root traces
  nsysdiag mcp --root /data/traces --root . --redact"""


def mcp(
    *,
    root: Annotated[
        list[str] | None,
        options.value("--root", "DIR", "Traces below this folder can be read, by default the current one; repeatable."),
    ] = None,
    redact: options.RedactOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Answer agents: a server of the Model Context Protocol on stdin and stdout.

    Six tools: open, diagnosis, query (SQL), explain, whatif and compare. They read traces below the folders of
    --root, and write nothing. Needs the extra `mcp`: pip install '.[mcp]' in a copy of the repository.
    """
    from nsysdiag.queries.server import Traces, server

    folders = [Path(each) for each in root or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"'{folder}' is no folder", hint="name one that holds traces")
    server(Traces(folders, redact=redact)).run("stdio")
