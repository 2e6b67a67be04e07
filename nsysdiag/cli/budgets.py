"""Budgets on the command line: those of options, what became of them on stderr, the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nsysdiag.cli.console import complain, note
from nsysdiag.cli.guard import BROKEN_BUDGET
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.budgets import Budget, Judgement


def say(found: Judgement) -> None:
    """One line on stderr for each that is broken or could not be judged, also where all else is quiet."""
    for result in [each for each in found.results if each.broken]:
        note(f"{result.level}: {result.sentence} ({result.source})")
    for budget in found.unjudged:
        complain(budget.error, budget.hint)


def conclude(found: Judgement) -> None:
    """Exit with 2 where a budget could not be judged, with 1 where one is broken that fails."""
    from nsysdiag.ci.budgets import FAIL

    if found.unjudged:
        raise typer.Exit(UsageError.exit_code)
    if any(result.broken and result.level == FAIL for result in found.results):
        raise typer.Exit(BROKEN_BUDGET)


def budgets_of_options(fail_on: Sequence[str] | None, warn_on: Sequence[str] | None) -> list[Budget]:
    """Those of --fail-on and --warn-on. Raises UsageError with the place of a mistake."""
    from nsysdiag.ci.budgets import FAIL, WARN, parse_budgets

    return [*parse_budgets(fail_on or (), FAIL, "--fail-on"), *parse_budgets(warn_on or (), WARN, "--warn-on")]
