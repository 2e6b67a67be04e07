"""What becomes of budgets on the streams, and the exit codes that follow."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from nsysdiag.ci.facts import FAIL, IGNORE, WARN
from nsysdiag.cli.console import complain, emit_text, note
from nsysdiag.cli.errors import BROKEN_BUDGET
from nsysdiag.cli.settings import changes_analysis, say_found
from nsysdiag.errors import UsageError
from nsysdiag.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsysdiag.ci.budgets import Judgement
    from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.config.settings import Settings


def say_what_mattered(file: FromFile, settings: Settings, judged: Judgement) -> None:
    """Name a file that was found by itself, for those who want quiet: where its settings may have changed a verdict, or
    one of its budgets is broken or cannot be judged."""
    sources = {budget.source for budget in file.budgets}
    outcomes = {each.source for each in judged.results if each.broken}
    outcomes |= {each.source for each in judged.unjudged if each.outcome != IGNORE}
    say_found(file, settings=changes_analysis(file.settings, settings), budgets=bool(sources & outcomes))


def say_broken(result: BudgetResult, more: str = "", *, to_stdout: bool, of: str = "") -> None:
    """One line for a broken budget: `of` which input, and `more` about it. One that fails is a result, and so goes to
    stdout where that is free."""
    line = f"{result.level}: {of}{result.sentence} ({result.source}){more if result.level == FAIL else ''}"
    if to_stdout and result.level == FAIL:
        emit_text(f"{printable(line)}\n")
    else:
        note(line)


def say_unjudged(budget: UnjudgedBudget) -> None:
    """That it could not be judged, as an error or as a warning, or nothing."""
    if budget.outcome == FAIL:
        complain(budget.error, budget.hint)
    elif budget.outcome == WARN:
        note(f"{WARN}: {budget.error}")


@contextmanager
def concluding(
    judged: Judgement,
    file: FromFile,
    settings: Settings,
    *,
    quiet: bool,
    to_stdout: bool,
    against: Callable[[BudgetResult], str] = lambda _result: "",
) -> Iterator[None]:
    """After the outputs, one line for each budget that is broken or could not be judged, also where all else is quiet;
    those of a settings file that was found by itself come with its name. `against` says what a broken one was held
    against. What fails goes to stdout where that is free, all else to stderr.

    Then exits with 2 where a budget that fails could not be judged, with 1 where one is broken that fails.
    """
    try:
        yield
    finally:
        if quiet:
            say_what_mattered(file, settings, judged)
        for result in [each for each in judged.results if each.broken]:
            say_broken(result, against(result), to_stdout=to_stdout)
        for budget in judged.unjudged:
            say_unjudged(budget)
    if any(budget.outcome == FAIL for budget in judged.unjudged):
        raise typer.Exit(UsageError.exit_code)
    if any(result.broken and result.level == FAIL for result in judged.results):
        raise typer.Exit(BROKEN_BUDGET)
