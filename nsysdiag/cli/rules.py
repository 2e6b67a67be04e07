"""`nsysdiag rules`: the causes of idle time in order of precedence, the rules of findings, or one of them in full."""

from enum import StrEnum
from typing import Annotated

import typer

from nsysdiag.cli.console import emit_text
from nsysdiag.cli.options import DebugOption
from nsysdiag.workflow_commands import JSON, TEXT

EPILOG = """\b
Examples:
  nsysdiag rules
  nsysdiag rules lock_wait
  nsysdiag rules slow_iterations
  nsysdiag rules --format json"""


class RulesFormat(StrEnum):
    """How the rules are shown."""

    TEXT = "text"
    MARKDOWN = "md"
    JSON = "json"


def rules(
    rule_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One cause or finding in full.")] = None,
    format_name: Annotated[
        RulesFormat, typer.Option("--format", metavar="F", help="text, md or json.")
    ] = RulesFormat.TEXT,
    debug: DebugOption = False,
) -> None:
    """List the causes of idle time and the rules of findings, or explain one.

    The order is that of precedence: each takes what those before it left."""
    from nsysdiag.cli import rule_pages
    from nsysdiag.cli.causes import find_rule

    syntax = JSON if format_name is RulesFormat.JSON else TEXT
    if rule_id is None:
        every = {
            RulesFormat.TEXT: rule_pages.all_text,
            RulesFormat.MARKDOWN: rule_pages.all_markdown,
            RulesFormat.JSON: rule_pages.all_json,
        }
        emit_text(every[format_name](), syntax)
        return
    found = find_rule(rule_id)
    one = {
        RulesFormat.TEXT: rule_pages.one_text,
        RulesFormat.MARKDOWN: rule_pages.one_markdown,
        RulesFormat.JSON: rule_pages.one_json,
    }
    emit_text(one[format_name](next(page for page in rule_pages.pages() if page.id == found)), syntax)
