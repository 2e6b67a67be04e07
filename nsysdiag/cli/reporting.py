"""What becomes of the report of one trace: its budgets are judged, and it is written as the options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.ci.facts import FAIL
from nsysdiag.cli import options
from nsysdiag.cli.output import write_all
from nsysdiag.cli.settings import say_unpriced
from nsysdiag.cli.verdicts import concluding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.budgets import Budget
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats.documents import Destination
    from nsysdiag.report import Report


class Wanted(Struct, frozen=True):
    """What the options ask for, checked before the work. `budgets` are those of options, `file` holds its own."""

    settings: Settings
    file: FromFile
    budgets: Sequence[Budget]
    destinations: Sequence[Destination]
    redact: bool
    redact_key: str | None
    details: bool
    open_html: bool
    force: bool
    quiet: bool
    unjudged: str = FAIL
    comment: str | None = None


def conclude(report: Report, trace: str, wanted: Wanted) -> None:
    """Write the report of this trace. Exits with 1 where a budget is broken that fails; with 2 where such a one could
    not be judged or an output not be written. Raises UsageError for a redacted report that is to be redacted."""
    from nsysdiag.ci.budgets import Judgement, judge
    from nsysdiag.ci.budgets import check as check_budgets

    budgets = [*wanted.budgets, *wanted.file.budgets]
    judged = judge(budgets, lambda budget: check_budgets(report, [budget], trace), wanted.unjudged)
    shown = options.redacted_for(report, wanted.redact_key, redact=wanted.redact)
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
