"""Budgets on the command line: those of options and file together, what became of them on stderr, the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from nsysdiag.cli.console import complain, note
from nsysdiag.cli.guard import BROKEN_BUDGET
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.ci.budgets import Budget
    from nsysdiag.model_ci import BudgetResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the budgets, and why some could not be judged."""

    results: list[BudgetResult]
    problems: list[UsageError]

    @property
    def broken(self) -> list[BudgetResult]:
        """Those that are broken."""
        return [result for result in self.results if result.broken]

    def say(self) -> None:
        """One line for each on stderr, also where all else is quiet."""
        for result in self.broken:
            note(f"{result.level}: {result.sentence} ({result.source})")
        for problem in self.problems:
            complain(problem.message, problem.hint, problem.shown)

    def conclude(self) -> None:
        """Exit with 2 where a budget could not be judged, with 1 where one is broken that fails."""
        from nsysdiag.ci.budgets import FAIL

        if self.problems:
            raise typer.Exit(UsageError.exit_code)
        if any(result.level == FAIL for result in self.broken):
            raise typer.Exit(BROKEN_BUDGET)


def budgets_of_options(fail_on: Sequence[str] | None, warn_on: Sequence[str] | None) -> list[Budget]:
    """Those of --fail-on and --warn-on. Raises UsageError with the place of a mistake."""
    from nsysdiag.ci.budgets import FAIL, WARN, parse_budgets

    return [*parse_budgets(fail_on or (), FAIL, "--fail-on"), *parse_budgets(warn_on or (), WARN, "--warn-on")]


def judged(budgets: Sequence[Budget], check: Callable[[Budget], list[BudgetResult]]) -> Outcome:
    """Each by itself: one that cannot be judged does not hide the others."""
    outcome = Outcome([], [])
    for budget in budgets:
        try:
            outcome.results.extend(check(budget))
        except UsageError as error:
            outcome.problems.append(error)
    return outcome
