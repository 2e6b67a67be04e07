"""What a format is, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
from nsysdiag.report import Report


class RenderOptions(Struct, frozen=True):
    """`width` (in columns) and `color` are for text. `details` shows all sections instead of the first screen, in text
    and Markdown. `source`, `command` and `created` go to the footer where given. `budgets` were checked on the report,
    `unjudged` are those that it cannot tell; both are for the formats of CI systems.

    Nothing is taken from the clock or the machine: the same report and options give the same bytes.
    """

    width: int = 100
    color: bool = False
    details: bool = False
    source: str | None = None
    command: str | None = None
    created: str | None = None
    budgets: tuple[BudgetResult, ...] = ()
    unjudged: tuple[UnjudgedBudget, ...] = ()


class Format(Struct, frozen=True):
    """One way to write a report. `is_ours` says whether the content of a file carries this format's marker. `syntax` is
    one of those of `workflow_commands`: how a command in it is broken where the result goes to stdout."""

    name: str
    suffix: str
    title: str
    render: Callable[[Report, RenderOptions], bytes]
    is_ours: Callable[[bytes], bool]
    syntax: str
