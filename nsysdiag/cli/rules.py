"""`nsysdiag rules`: the causes of idle time in order of precedence, or one of them in full."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli.console import emit_text
from nsysdiag.cli.options import DebugOption

if TYPE_CHECKING:
    from nsysdiag.analysis.causes.cause import Cause

EPILOG = """\b
Examples:
  nsysdiag rules
  nsysdiag rules lock_wait
  nsysdiag rules --format json"""


class RulesFormat(StrEnum):
    """How the registry is shown."""

    TEXT = "text"
    MARKDOWN = "md"
    JSON = "json"


def rules(
    cause_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One cause in full.")] = None,
    format_name: Annotated[
        RulesFormat, typer.Option("--format", metavar="F", help="text, md or json.")
    ] = RulesFormat.TEXT,
    debug: DebugOption = False,
) -> None:
    """List the causes of idle time, or explain one.

    The order is that of precedence: each takes what those before it left."""
    from nsysdiag.analysis.causes import CAUSES
    from nsysdiag.cli.causes import find_cause

    if cause_id is None:
        emit_text(_ALL[format_name](list(CAUSES.values())))
        return
    cause = find_cause(cause_id)
    emit_text(_ONE[format_name](cause, list(CAUSES).index(cause.id) + 1))


def _all_text(causes: "list[Cause]") -> str:
    from nsysdiag.cli.table import aligned

    rows = [(str(n), c.id, c.title, ", ".join(c.tables) or "-") for n, c in enumerate(causes, 1)]
    return aligned(("order", "id", "title", "tables"), rows)


def _all_markdown(causes: "list[Cause]") -> str:
    from nsysdiag.cli.table import markdown

    rows = [(str(n), f"`{c.id}`", c.title, c.meaning, _code(c.tables)) for n, c in enumerate(causes, 1)]
    return markdown(("order", "id", "title", "meaning", "tables"), rows)


def _all_json(causes: "list[Cause]") -> str:
    from nsysdiag.cli.table import as_json

    return as_json([_record(cause, order) for order, cause in enumerate(causes, 1)])


def _one_text(cause: "Cause", order: int) -> str:
    evidence = [f"  {table}" for table in cause.tables] or ["  none: it is what remains"]
    advice = [f"  - {sentence}" for sentence in cause.advice] or ["  none"]
    lines = [f"{cause.id}: {cause.title}", f"order {order}, side {cause.side}", "", cause.meaning]
    picture = [f"  {line}".rstrip() for line in cause.picture.strip("\n").splitlines()]
    return "\n".join([*lines, "", *picture, "", "evidence tables", *evidence, "", "advice", *advice]) + "\n"


def _one_markdown(cause: "Cause", order: int) -> str:
    head = f"## `{cause.id}`: {cause.title}\n\n{cause.meaning}\n\n"
    facts = f"* order: {order}\n* side: {cause.side}\n* evidence: {_code(cause.tables)}\n"
    head += f"```\n{cause.picture.strip()}\n```\n\n"
    return head + facts + "".join(f"* advice: {sentence}\n" for sentence in cause.advice)


def _one_json(cause: "Cause", order: int) -> str:
    from nsysdiag.cli.table import as_json

    return as_json(_record(cause, order))


def _code(tables: "tuple[str, ...]") -> str:
    return ", ".join(f"`{table}`" for table in tables) or "none"


def _record(cause: "Cause", order: int) -> dict[str, object]:
    return {
        "order": order,
        "id": cause.id,
        "title": cause.title,
        "meaning": cause.meaning,
        "tables": list(cause.tables),
        "advice": list(cause.advice),
        "color": cause.color,
        "picture": cause.picture.strip("\n"),
        "side": cause.side,
        "unresolved": cause.unresolved,
    }


_ALL = {RulesFormat.TEXT: _all_text, RulesFormat.MARKDOWN: _all_markdown, RulesFormat.JSON: _all_json}
_ONE = {RulesFormat.TEXT: _one_text, RulesFormat.MARKDOWN: _one_markdown, RulesFormat.JSON: _one_json}
