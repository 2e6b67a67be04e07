"""`nsysdiag compare`: what a fix, or a fault, changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli.options import (
    DebugOption,
    FailOnOption,
    ForceOption,
    FormatOption,
    NoConfigOption,
    OpenOption,
    OutputOption,
    QuietOption,
    RedactKeyOption,
    RedactOption,
    WarnOnOption,
)
from nsysdiag.errors import UsageError

if TYPE_CHECKING:
    from nsysdiag.config import Settings
    from nsysdiag.model import Report

EPILOG = """\b
Examples:
  nsysdiag compare before.sqlite after.sqlite
  nsysdiag compare before.json after.sqlite -o - --format md
  nsysdiag compare main.json branch.sqlite --fail-on 'length:+5%' --fail-on 'ledger.sync > 1ms/iter'
  nsysdiag compare --before run1.sqlite --before run2.sqlite --after run3.sqlite --after run4.sqlite
  nsysdiag compare a100.json h100.json --across-gpus -o compare.html -o compare.json"""


def compare(
    before: Annotated[
        str | None, typer.Argument(metavar="BEFORE", help="An exported .sqlite file, or a report saved as JSON.")
    ] = None,
    after: Annotated[str | None, typer.Argument(metavar="AFTER", help="The same program after the change.")] = None,
    *,
    more_before: Annotated[
        list[str] | None,
        typer.Option("--before", metavar="X", help="A further capture of before; repeats.", show_default=False),
    ] = None,
    more_after: Annotated[
        list[str] | None,
        typer.Option("--after", metavar="Y", help="A further capture of after; repeats.", show_default=False),
    ] = None,
    across_gpus: Annotated[bool, typer.Option("--across-gpus", help="Compare GPUs of different models.")] = False,
    same_gpu: Annotated[bool, typer.Option("--same-gpu", help="The processes of each trace shared one GPU.")] = False,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings and budgets from this TOML file."),
    ] = None,
    no_config: NoConfigOption = False,
    fail_on: FailOnOption = None,
    warn_on: WarnOnOption = None,
    output: OutputOption = None,
    format_name: FormatOption = None,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    open_html: OpenOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Say what changed between two captures, and whether it is more than chance.

    Compares iterations where there are some, else whole windows for the same work, with a 95 % interval over the
    iterations. Prints a summary and, without -o, writes compare.nsysdiag.html into the current folder.
    """
    from msgspec.structs import replace

    from nsysdiag.ci.budgets import judge
    from nsysdiag.ci.changes import check_comparison
    from nsysdiag.cli.budgets import budgets_of_options, conclude, say
    from nsysdiag.cli.deliver import deliver, require_html
    from nsysdiag.cli.destinations import check, plan, require_formats
    from nsysdiag.cli.load import is_saved_report
    from nsysdiag.cli.redaction import check_redaction
    from nsysdiag.cli.settings import require_one_way, settings_of_file
    from nsysdiag.comparing.comparison import compare_reports
    from nsysdiag.comparing.pairing import require_names
    from nsysdiag.output.compare.registry import RENDERERS

    check_redaction(redact_key, redact=redact)
    require_one_way(config, no_config=no_config)
    budgets = budgets_of_options(fail_on, warn_on)
    left, right = _sides(before, after, more_before or [], more_after or [])
    destinations = plan(output or (), format_name, "compare", tables=())
    require_formats(destinations, RENDERERS, "a comparison")
    require_html(destinations, open_html=open_html)
    for path in (*left, *right):
        check(destinations, path, force=force)
    saved = all(is_saved_report(path) for path in (*left, *right))
    found = settings_of_file(config, discover=not no_config, saved=saved, quiet=quiet)
    file = found.settings
    settings = replace(file, same_gpu=same_gpu or file.same_gpu)
    reports = [_report(path, settings, file, quiet=quiet) for path in (*left, *right)]
    require_names(reports)
    shown = _redacted(reports, redact_key) if redact else reports
    made = compare_reports(shown[: len(left)], shown[len(left) :], across_gpus=across_gpus)
    latest = {str(path): report for path, report in zip(right, reports[len(left) :], strict=True)}
    judged = judge([*budgets, *found.budgets], lambda budget: check_comparison(made, latest, [budget]))
    try:
        deliver(made, destinations, force=force, quiet=quiet, open_html=open_html)
    finally:
        say(judged)
    conclude(judged)


def _sides(
    before: str | None, after: str | None, more_before: list[str], more_after: list[str]
) -> tuple[list[Path], list[Path]]:
    """The captures of each side. Raises UsageError where one has none or a file is named twice on a side."""
    left = [Path(each) for each in ([before] if before else []) + more_before]
    right = [Path(each) for each in ([after] if after else []) + more_after]
    if not left or not right:
        missing = "AFTER" if left else "BEFORE and AFTER"
        raise UsageError(f"{missing} is missing", hint="nsysdiag compare before.sqlite after.sqlite")
    for side in (left, right):
        twice = next(
            (path for at, path in enumerate(side) if path.absolute() in {p.absolute() for p in side[:at]}), None
        )
        if twice is not None:
            raise UsageError(f"{twice} is named twice on one side", hint="name each capture once")
    return left, right


def _report(path: Path, settings: "Settings", file: "Settings", *, quiet: bool) -> "Report":
    from nsysdiag.cli.load import analyze_trace, is_saved_report, read_report
    from nsysdiag.cli.settings import refuse_analysis_settings

    if not is_saved_report(path):
        return analyze_trace(path, settings, quiet=quiet)
    report = read_report(path)
    refuse_analysis_settings(path, report, file, settings)
    return report


def _redacted(reports: list["Report"], key: str | None) -> list["Report"]:
    """Both sides with the same stand-ins: what has one name before and after still has."""
    from nsysdiag.redaction import is_redacted
    from nsysdiag.redaction.names import Names
    from nsysdiag.redaction.redact import redacted_by

    if any(is_redacted(report) for report in reports):
        raise UsageError("a report is redacted already", hint="leave --redact out, or use the traces themselves")
    names = Names(key)
    return [redacted_by(report, names) for report in reports]
