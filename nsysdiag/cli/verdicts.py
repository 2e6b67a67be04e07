"""What becomes of budgets on the streams, and the exit codes that follow."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from msgspec import Struct

from nsysdiag.ci.facts import FAIL, IGNORE, WARN
from nsysdiag.cli import options
from nsysdiag.cli.console import BROKEN_BUDGET, complain, emit_text, note
from nsysdiag.cli.output import write_all
from nsysdiag.cli.settings import changes_analysis, say_found, say_unpriced
from nsysdiag.messages import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsysdiag.ci.budgets import Budget, Judgement
    from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats.documents import Destination
    from nsysdiag.report import Report


def say_what_mattered(file: FromFile, settings: Settings, judged: Judgement) -> None:
    """With --quiet, name an automatically found settings file if it may have changed a verdict, or its budgets are
    broken or cannot be judged."""
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
    """After the outputs, print one line for each budget that is broken or could not be judged, even with --quiet. Lines
    on budgets of an automatically found settings file have its name. `against` says what a broken one was compared
    with. Failures go to stdout if that is free, all else to stderr.

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


# What becomes of the report of one trace: its budgets are judged, and it is written as the options say.


class Wanted(Struct, frozen=True):
    """What the options ask for, checked before the work. `budgets` are those of options, `file` holds its own."""

    settings: Settings
    file: FromFile
    budgets: Sequence[Budget]
    destinations: Sequence[Destination]
    redact: bool
    details: bool
    open_html: bool
    force: bool
    quiet: bool
    unjudged: str = FAIL
    comment: str | None = None


def conclude(report: Report, trace: str, wanted: Wanted) -> None:
    """Write the report of this trace. Exits with 1 if a failing budget is broken, with 2 if one could not be judged or
    an output could not be written. Raises UsageError for a redacted report that is to be redacted."""
    from nsysdiag.ci.budgets import Judgement, judge
    from nsysdiag.ci.budgets import check as check_budgets

    budgets = [*wanted.budgets, *wanted.file.budgets]
    judged = judge(budgets, lambda budget: check_budgets(report, [budget], trace), wanted.unjudged)
    shown = options.redacted_for(report, redact=wanted.redact)
    if not wanted.quiet:
        say_unpriced(shown, wanted.settings)
    public = Judgement() if wanted.redact else judged  # the expressions of budgets may hold names of the trace
    free = not wanted.quiet and all(each.path for each in wanted.destinations)
    with concluding(judged, wanted.file, wanted.settings, quiet=wanted.quiet, to_stdout=free):
        write_all(
            shown,
            wanted.destinations,
            force=wanted.force,
            quiet=wanted.quiet,
            open_html=wanted.open_html,
            judged=public,
            details=wanted.details,
            comment=wanted.comment,
        )
