"""Budgets on the command line: those of options, their results on stderr, the exit code."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from nsysdiag.cli.console import complain, note
from nsysdiag.cli.errors import BROKEN_BUDGET
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.ci.budgets import Budget, Judgement
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.config.settings import Settings


@contextmanager
def concluding(judged: Judgement, file: FromFile, settings: Settings, *, quiet: bool) -> Iterator[None]:
    """After the outputs, one line on stderr for each budget that is broken or could not be judged, also where all else
    is quiet; those of a settings file that was found by itself come with its name.

    Then exits with 2 where a budget could not be judged, with 1 where one is broken that fails.
    """
    from nsysdiag.ci.budgets import FAIL
    from nsysdiag.cli.settings import say_what_mattered

    try:
        yield
    finally:
        if quiet:
            say_what_mattered(file, settings, judged)
        for result in [each for each in judged.results if each.broken]:
            note(f"{result.level}: {result.sentence} ({result.source})")
        for budget in judged.unjudged:
            complain(budget.error, budget.hint)
    if judged.unjudged:
        raise typer.Exit(UsageError.exit_code)
    if any(result.broken and result.level == FAIL for result in judged.results):
        raise typer.Exit(BROKEN_BUDGET)


def budgets_of_options(fail_on: Sequence[str] | None, warn_on: Sequence[str] | None) -> list[Budget]:
    """Those of --fail-on and --warn-on. Raises UsageError with the place of a mistake."""
    from nsysdiag.ci.budgets import FAIL, WARN, parse_budgets

    return [*parse_budgets(fail_on or (), FAIL, "--fail-on"), *parse_budgets(warn_on or (), WARN, "--warn-on")]
