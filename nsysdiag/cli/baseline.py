"""`nsysdiag baseline`: runs to compare with, and what of their regressions is accepted."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import aligned, emit_text
from nsysdiag.messages import UsageError, note, printable

if TYPE_CHECKING:
    from nsysdiag.baselines import BaselineRun
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.report import Report

EPILOG = """\b
Examples:
  nsysdiag baseline add main report.json
  nsysdiag baseline add main run1.sqlite run2.sqlite run3.sqlite --runs 20
  nsysdiag compare --baseline main branch.sqlite --fail-on 'length:+5%'
  nsysdiag baseline accept main --what 'length:+9%' --reason 'larger vocabulary' --until 2099-03-01
  nsysdiag baseline list"""
LONGEST_REASON = 500


@options.spread
def baseline(
    action: Annotated[
        Literal["add", "list", "accept"],
        typer.Argument(metavar="add|list|accept", help="What to do.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The baseline, as main; 'list' without it lists all.", show_default=False),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...", help=f"For 'add': {options.A_TRACE}, or a saved report JSON.", show_default=False
        ),
    ] = None,
    *,
    keep: Annotated[
        int | None,
        options.value("--runs", "N", "How many runs the baseline keeps, the last ones; 10 unless said.", min=1),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Remove all earlier runs, and what is accepted: the baseline restarts with these."
        ),
    ] = False,
    what: Annotated[
        str | None, options.value("--what", "EXPR", "What is accepted, up to where: 'length:+9%', 'idle_share > 26%'.")
    ] = None,
    reason: Annotated[str | None, options.value("--reason", "TEXT", "Why it is accepted.")] = None,
    until: Annotated[str | None, options.value("--until", "DATE", "The last day on which it is: 2099-03-01.")] = None,
    baselines: options.BaselinesOption = None,
    settings: options.SettingsFile,
    verbosity: options.Verbosity,
) -> None:
    """Keep runs to compare with under a name.

    'add' saves the reports of runs in the folder of a baseline, which keeps the last ones. 'compare --baseline NAME'
    compares with all of them. 'accept' says what of a regression is accepted, why, and until when. 'list' shows what
    there is.
    """
    from nsysdiag.cli.settings import settings_of_file

    _require_options(action, {"--runs": keep, "--replace": replace or None}, "add")
    _require_options(action, {"--what": what, "--reason": reason, "--until": until}, "accept")
    if runs and action != "add":
        raise UsageError(f"'{action}' takes no runs", hint=f"nsysdiag baseline {action} NAME")
    file = settings_of_file(settings, quiet=True)
    folder = Path(baselines or file.baseline.folder)
    if action == "list":
        emit_text(_listed(folder, name))
    elif name is None:
        raise UsageError("the name of the baseline is missing", hint=f"nsysdiag baseline {action} main ...")
    elif action == "add":
        _add(folder, name, runs or [], keep or file.baseline.runs, file, anew=replace, quiet=verbosity.quiet)
    else:
        _accept(folder, name, what, reason, until, quiet=verbosity.quiet)


def _require_options(action: str, given: dict[str, object], suits: str) -> None:
    wrong = [option for option, value in given.items() if value is not None]
    if wrong and action != suits:
        raise UsageError(f"{wrong[0]} is for 'baseline {suits}'", hint="see 'nsysdiag baseline --help'")


def _add(baselines: Path, name: str, runs: list[str], keep: int, file: "FromFile", *, anew: bool, quiet: bool) -> None:
    from nsysdiag.baselines import add, drop_accepted, folder_of, runs_in

    folder = folder_of(baselines, name)
    if not runs:
        raise UsageError("no run is named", hint=f"nsysdiag baseline add {name} report.json")
    paths = [Path(each) for each in runs]
    if twice := options.first_repeated(paths):
        raise UsageError(f"{twice} is named twice", hint="name each run once")
    reports = [_report(path, file, quiet=quiet) for path in paths]
    dropped = drop_accepted(folder) if anew else 0
    files, removed = add(folder, reports, keep, anew=anew)
    if not quiet:
        for path in files:
            note(f"wrote {path}")
        known = len(reports) - len(files)
        facts = [f"{known} known already and not added again"] if known else []
        facts += [f"{removed} removed"] if removed else []
        facts += [f"{dropped} accepted no more"] if dropped else []
        count = len(runs_in(folder))
        note("; ".join([f"baseline {name} has {count} {'run' if count == 1 else 'runs'}", *facts]))


def _report(path: Path, file: "FromFile", *, quiet: bool) -> "Report":
    """The report of a run. Raises NotComparableError for one that no other could be compared with."""
    from msgspec.structs import replace

    from nsysdiag.cli.settings import analyze_trace
    from nsysdiag.comparison.sides import require_names
    from nsysdiag.messages import NotComparableError
    from nsysdiag.saved import is_saved_report, read_report

    saved = is_saved_report(path)
    report = read_report(path) if saved else analyze_trace(path, replace(file.settings, timeline=False), quiet=quiet)
    require_names([report])
    if not any(device.window_ns for device in report.devices):
        raise NotComparableError(f"{path} has no GPU work to compare", hint="capture with --trace=cuda")
    return report


def _accept(
    baselines: Path, name: str, what: str | None, reason: str | None, until: str | None, *, quiet: bool
) -> None:
    from nsysdiag.baselines import add_accepted, folder_of, held_in
    from nsysdiag.ci.acceptances import acceptance
    from nsysdiag.cli.against import Base, anchored
    from nsysdiag.units import format_ns

    folder = folder_of(baselines, name)
    why = printable((reason or "").strip())
    if not (what and why and until):
        given = {"--what": what, "--reason": why, "--until": until}
        missing = next(option for option, value in given.items() if not value)
        raise UsageError(
            f"{missing} is missing",
            hint=f"nsysdiag baseline accept {name} --what 'length:+9%' --reason WHY --until 2099-03-01",
        )
    if len(why) > LONGEST_REASON:
        raise UsageError(f"--reason has {len(why):,} characters; {LONGEST_REASON} at most")
    accepted = acceptance(what, why, _day(until), "--what")
    if not folder.is_dir():
        raise UsageError(
            f"there is no baseline {name} in {baselines}", hint=f"nsysdiag baseline add {name} report.json"
        )
    accepted = anchored(Base(name, held_in(folder), [], []), accepted)
    path = add_accepted(folder, accepted)
    if not quiet:
        longest = max(accepted.before_ns.values(), default=0)
        of = f", from {format_ns(longest)}," if longest else ""
        note(f"wrote {path}: {accepted.expression.text}{of} is accepted until {accepted.until.isoformat()}")


def _day(text: str) -> date:
    """Raises UsageError for a text that is not a day, or one that is over."""
    from nsysdiag.ci.acceptances import today

    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until {printable(text)} is not a date", hint="write it as 2099-03-01") from error
    if day < today():
        raise UsageError(f"--until {day.isoformat()} is over: nothing would be accepted", hint="name a later day")
    return day


UNKNOWN = "–"
OF_ALL = ("name", "runs", "latest run", "accepted")
OF_RUNS = ("run", "added (UTC)", "trace", "step", "GPUs")
OF_ACCEPTED = ("accepted up to", "until", "state", "reason")


def _listed(baselines: Path, name: str | None) -> str:
    """One baseline with its runs, or a row for each of all."""
    from nsysdiag.baselines import folder_of, names_in, read_accepted, runs_in
    from nsysdiag.ci.acceptances import today

    if name is not None:
        folder = folder_of(baselines, name)
        if not folder.is_dir():
            raise UsageError(f"there is no baseline {name} in {baselines}", hint="'nsysdiag baseline list' shows all")
        return _one_listed(folder)
    rows = []
    for each in names_in(baselines):
        runs = runs_in(folder_of(baselines, each))
        accepted = sum(one.until >= today() for one in read_accepted(folder_of(baselines, each)))
        rows.append((each, f"{len(runs):,}", _added(runs[-1]) if runs else UNKNOWN, f"{accepted:,}"))
    hint = "there are none: nsysdiag baseline add main report.json"
    return aligned(OF_ALL, rows) if rows else f"Baselines in {printable(baselines)}: {hint}\n"


def _one_listed(folder: Path) -> str:
    """A row for each run, the oldest first, and one for each accepted regression; and what cannot be read."""
    from nsysdiag.baselines import held_in, read_accepted
    from nsysdiag.ci.acceptances import today

    held, accepted = held_in(folder), read_accepted(folder)
    text = aligned(OF_RUNS, [_run(*each) for each in held.runs]) if held.runs else "No run.\n"
    text += "".join(f"Damaged: {printable(name)}\n" for name in held.damaged)
    rows = []
    for each in accepted:
        state = "accepted" if each.until >= today() else "expired"
        rows.append((each.expression.text, each.until.isoformat(), state, each.reason))
    return f"{text}\n{aligned(OF_ACCEPTED, rows)}" if rows else text


def _run(run: "BaselineRun", report: "Report") -> tuple[str, ...]:
    from nsysdiag.units import format_ns

    steps = [device.iterations.p50_ns for device in report.devices if device.iterations and device.iterations.steady]
    names = dict.fromkeys(device.name for device in report.devices)
    gpus = f"{len(report.devices)} × {', '.join(names)}"
    return run.path.name, _added(run), report.trace.file, format_ns(max(steps)) if steps else UNKNOWN, gpus


def _added(run: "BaselineRun") -> str:
    return run.added.strftime("%Y-%m-%d %H:%M:%S") if run.added else UNKNOWN
