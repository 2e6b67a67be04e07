"""`nsysdiag rules`: the causes of idle time in order of precedence, the rules of findings, or one of them in full."""

from __future__ import annotations

from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import emit_text
from nsysdiag.cli.help import one_of
from nsysdiag.messages import JSON, TEXT, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.causes.cause import Cause

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
    rule_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One cause or finding in full.", autocompletion=one_of("rules"))
    ] = None,
    format_name: Annotated[
        RulesFormat, typer.Option("--format", metavar="F", help="text, md or json.")
    ] = RulesFormat.TEXT,
    debug: options.DebugOption = False,
) -> None:
    """List the causes of idle time and the rules of findings, or explain one.

    Causes are checked in this order; each takes only the time that earlier ones left."""
    from nsysdiag.cli import rule_pages

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


def find_cause(cause_id: str) -> Cause:
    """The cause with this id. Raises UsageError with the nearest ids, and all of them as the hint."""
    from nsysdiag.causes import CAUSES

    return CAUSES[_known(cause_id, CAUSES, "cause")]


def find_rule(rule_id: str) -> str:
    """The id if a cause or a rule of findings has it. Raises UsageError like `find_cause`."""
    from nsysdiag.causes import CAUSES
    from nsysdiag.findings.rules import FINDING_RULES

    return _known(rule_id, [*CAUSES, *FINDING_RULES], "rule")


def _known(wanted: str, ids: Iterable[str], what: str) -> str:
    known = list(ids)
    if wanted in known:
        return wanted
    nearest = get_close_matches(wanted, known, n=1) or [each for each in known if wanted in each.split("_")]
    suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
    raise UsageError(f"unknown {what} '{wanted}'{suggestion}", hint=f"{what}s: {', '.join(known)}")
