"""`nsysdiag whatif`: how long a step would be after a fix. `nsysdiag try`: records, predicts what a fix brings, waits
for the change, records again, and says how good the prediction was.

The first run of `try` leaves its prediction in a folder, and the second one finds it there. At a terminal one run does
both: it waits in between.

```
NAME.try/before.nsys-rep     the program as it was, unless --before names a trace
         before.json         its report
         predicted.json      what the fix is predicted to bring
         after.nsys-rep      the program with the change, unless --after names a trace
         after.json          its report
```
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import emit_text, progress_bar
from nsysdiag.cli.record import Recording, ending_with, recorded, refuse_stdout
from nsysdiag.messages import NotComparableError, UsageError, note, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.capture.plan import RecordedSpan
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.config.settings import Settings
    from nsysdiag.findings.facts import Finding
    from nsysdiag.formats import Destination
    from nsysdiag.record import Record
    from nsysdiag.replay.facts import Transform, WhatIf
    from nsysdiag.report import Report

EPILOG = """\b
Examples:
  nsysdiag whatif train.sqlite
  nsysdiag whatif train.sqlite --without sync
  nsysdiag whatif train.sqlite --finding f-data_loading --kernel '*gemm**0.5'
  nsysdiag whatif train.sqlite --without sync -o predicted.json
  nsysdiag compare predicted.json after.sqlite"""


def _number(option: str, help: str, least: int = 1) -> Any:
    return options.value(option, "N", help, min=least, max=1000)


class Fixes(options.OptionGroup):
    """What is changed, all together."""

    without: Annotated[
        list[str] | None,
        options.value(
            "--without", "CAUSE", "Remove the idle time of this cause; repeatable. See 'nsysdiag rules'.", "causes"
        ),
    ] = None
    finding: Annotated[
        list[str] | None, options.value("--finding", "ID", "Fix this finding of the report; repeatable.")
    ] = None
    kernel: Annotated[
        list[str] | None,
        options.value(
            "--kernel",
            "PATTERN*F",
            "Scale kernels of this name by F, as '*gemm**0.5'. In the name, * and ? match any text and one character; "
            "repeatable.",
        ),
    ] = None
    host: Annotated[
        list[str] | None,
        options.value(
            "--host", "RANGE*F", "Scale host code in NVTX ranges of this name by F, as 'load*0.5'; repeatable."
        ),
    ] = None
    async_copies: Annotated[
        bool, typer.Option("--async-copies", help="Make blocking copies asynchronous: their calls do not wait.")
    ] = False
    overlap: Annotated[
        list[str] | None,
        options.value("--overlap", "WHAT", "Overlap 'copies' or 'communication' with kernels; repeatable."),
    ] = None
    graphs: Annotated[
        list[str] | None,
        options.value("--graphs", "RANGE", "Launch the kernels of NVTX ranges of this name as one graph; repeatable."),
    ] = None
    rank_like: Annotated[
        str | None, options.value("--rank-like", "WHICH", "Make a late rank as fast as the 'median' one.")
    ] = None
    merge: Annotated[
        list[str] | None,
        options.value(
            "--merge", "PATTERN", "Fuse kernels of this name that follow each other in a stream into one; repeatable."
        ),
    ] = None
    stream: Annotated[
        list[str] | None,
        options.value(
            "--stream", "PATTERN", "Run kernels or copies of this name in a stream of their own; repeatable."
        ),
    ] = None
    workers: Annotated[int | None, _number("--workers", "Load data with N workers.")] = None
    ahead: Annotated[int | None, _number("--ahead", "Let the host be N steps ahead of the GPU.")] = None
    batch: Annotated[int | None, _number("--batch", "Do the work of N steps in one step.", least=2)] = None

    def transforms(self) -> list["Transform"]:
        """What the options ask for, each once. Raises UsageError for a cause or a value that is none."""
        from nsysdiag.cli.settings import known_causes
        from nsysdiag.replay.facts import change_of

        given = {name.replace("_", "-"): getattr(self, name) for name in Fixes.__annotations__}
        for option in ("finding", "graphs", "merge", "stream"):
            if "" in (given[option] or []):
                raise UsageError(f"--{option} is empty", hint="see 'nsysdiag whatif --help'")
        given |= {"without": [*known_causes(self.without or [])], "async-copies": "" if self.async_copies else None}
        values = {option: each if isinstance(each, list) else [each] for option, each in given.items()}
        found = (change_of(option, str(value)) for option in values for value in values[option] if value is not None)
        return list(dict.fromkeys(each for each in found if each is not None))


@options.spread
def whatif(
    trace: options.TraceArgument,
    *,
    fixes: Fixes,
    part: options.AnalyzedPart,
    file: options.SettingsFile,
    out: options.PredictionOutputs,
) -> None:
    """Predict how long a step is after a fix.

    Replays the trace's own dependencies with the changes that the options ask for, all together. Without any, lists
    what each finding would save. Prints a summary, and writes files only if -o names them.
    """
    from msgspec.structs import replace

    from nsysdiag.arrays.spill import share_one_heap
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.cli.settings import settings_of_file
    from nsysdiag.formats import DocumentKind
    from nsysdiag.pipeline import changes as pipeline
    from nsysdiag.replay.show.blocks import RENDERERS
    from nsysdiag.saved import is_saved_report

    asked = fixes.transforms()
    path = Path(trace)
    kind = DocumentKind("a prediction", [*RENDERERS], tables=())
    summary_alone = not out.output and out.format_name is None
    shown = out.but(output=out.output or ["-"], format_name="txt" if summary_alone else out.format_name)
    destinations = plan(shown, options.REDACTED_STEM, kind, inputs=[path])
    if is_saved_report(path):
        raise UsageError(
            f"{path} is a saved report: a prediction needs the trace itself", hint="name the exported trace"
        )
    settings = replace(part.of(settings_of_file(file, quiet=out.quiet).settings), timeline=False)
    share_one_heap()
    with progress_bar(quiet=out.quiet) as progress:
        made = pipeline.whatif(path, asked, settings, progress)
    made = options.redacted_for(made, redact=out.redact)
    write_all(made, [] if summary_alone else destinations, out)


# `nsysdiag try`.

TRY_EXAMPLES = """\b
Examples:
  nsysdiag try --finding f-sync -- python train.py
  nsysdiag try --finding f-sync --before train.sqlite -- python train.py
  nsysdiag try --finding f-sync --before train.sqlite --state sync
  nsysdiag try --after changed.sqlite --state sync -o compare.html"""

SUFFIX = ".try"
MOST_ADVICE = 3
BEFORE, AFTER, PREDICTED, REPORT = "before", "after", "predicted.json", ".nsys-rep"


@options.spread
def try_fix(
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM ARGS...",
            help="The program and its arguments; not needed with --before, nor later with --after.",
            show_default=False,
        ),
    ] = None,
    *,
    finding: Annotated[str | None, options.value("--finding", "ID", "The finding that is fixed.")] = None,
    before: Annotated[str | None, options.value("--before", "TRACE", "A trace from before the change.")] = None,
    after: Annotated[str | None, options.value("--after", "TRACE", "A trace from after the change.")] = None,
    state: Annotated[
        str | None,
        options.value(
            "--state", "DIR", "The folder between both recordings. By default PROGRAM.try in the current folder."
        ),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Begin again: predict, whatever the folder holds.")] = False,
    recording: Recording,
    same_gpu: options.SameGpuOption = False,
    step: options.StepOption = None,
    given: options.SettingsFile,
    out: options.TrialOutputs,
) -> None:
    """Say what a fix is predicted to bring, and after the change how good that was.

    Records the program, or takes the trace of --before, and predicts the step without the finding. Says what to change.
    At a terminal it waits for the change; elsewhere it ends, and the same command goes on later. Then it records again
    and says predicted against measured in one line.
    """
    from msgspec.structs import replace

    from nsysdiag.cli.output import plan
    from nsysdiag.cli.settings import settings_of_file
    from nsysdiag.comparison.show.registry import RENDERERS
    from nsysdiag.formats import DocumentKind

    refuse_stdout(out)
    words = program or []
    folder = _folder(state, words)
    kind = DocumentKind("a comparison", [*RENDERERS], tables=())
    destinations = plan(out, "try", kind) if out.output else []
    file = settings_of_file(given, quiet=out.quiet).settings
    settings = replace(
        file,
        same_gpu=same_gpu or file.same_gpu,
        step=options.checked_step(step, file.step),
        timeline=False,
        nsys=recording.nsys,
    )
    trial = _Trial(folder, words, recording.span, settings, out)
    begun = (folder / PREDICTED).exists() and not anew
    if begun:
        trial.require_same(finding, before)
    else:
        trial.predict(finding, before)
        if after is None and not (words and _waited()):
            trial.say(_go_on(folder, words))
            return
    trial.judge(after, destinations)


def _folder(state: str | None, words: "Sequence[str]") -> Path:
    from nsysdiag.capture.plan import name_of

    if state is None and not words:
        raise UsageError("neither a program nor --state is named", hint="nsysdiag try --finding ID -- PROGRAM ARGS...")
    return Path(state or f"{name_of(words)}{SUFFIX}")


def _waited() -> bool:
    """Wait for the change at a terminal: False if there is none, or its input ends."""
    if sys.stdin is None or sys.stderr is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    note("change the program, then press Enter: it is recorded again")
    return bool(sys.stdin.readline())


def _go_on(folder: Path, words: "Sequence[str]") -> str:
    import shlex

    rest = ["--", *words] if words else ["--after", "TRACE"]
    return f"  after the change: {printable(shlex.join(['nsysdiag', 'try', '--state', str(folder), *rest]))}"


class _Trial:
    """One fix that is tried: where it is kept, and how the program is recorded and analyzed."""

    def __init__(
        self, folder: Path, words: list[str], span: "RecordedSpan", settings: "Settings", out: options.Outputs
    ) -> None:
        self.folder, self.words, self.span, self.settings, self.out = folder, words, span, settings, out

    def say(self, text: str) -> None:
        """A result."""
        if not self.out.quiet:
            emit_text(f"{text}\n")

    def require_same(self, finding: str | None, before: str | None) -> None:
        """Raises UsageError if the folder holds the prediction of another fix, or is not to be used."""
        made = self._predicted()
        hint = "begin again with --anew, or choose another --state DIR"
        if before is not None:
            raise UsageError(f"{self.folder} holds a prediction, and --before begins another one", hint=hint)
        if finding is not None and [each.of for each in made.transforms] != [finding]:
            raise UsageError(f"{self.folder} holds a prediction for {made.transforms[0].of}, not {finding}", hint=hint)

    def predict(self, finding: str | None, before: str | None) -> None:
        """Record, unless there is a trace, and say what the fix brings and what to change."""
        from nsysdiag.arrays.spill import share_one_heap
        from nsysdiag.comparison.predicted import compare_sides
        from nsysdiag.pipeline.changes import with_report
        from nsysdiag.replay.facts import Transform

        if not finding:
            raise UsageError("--finding is missing", hint="'nsysdiag whatif TRACE' lists the findings of a trace")
        path, code = (Path(before), 0) if before is not None else self._record(BEFORE)
        if code:
            raise typer.Exit(code)
        share_one_heap()
        with progress_bar(quiet=self.out.quiet) as progress:
            report, made = with_report(path, [Transform(option="finding", of=finding)], self.settings, progress)
        promise = compare_sides([report], [made]).headline
        self._keep({"before.json": report, PREDICTED: made})
        self.say(_told(next(each for each in report.findings if each.id == finding), promise))

    def judge(self, after: str | None, destinations: "Sequence[Destination]") -> None:
        """Record, unless there is a trace, and say how good the prediction was."""
        from nsysdiag.arrays.spill import share_one_heap
        from nsysdiag.cli.output import write_all
        from nsysdiag.cli.settings import analyze_trace
        from nsysdiag.comparison.compare import compare_reports
        from nsysdiag.saved import read_report

        path, code = (Path(after), 0) if after is not None else self._record(AFTER)
        with ending_with(code):
            share_one_heap()
            report = analyze_trace(path, self.settings, quiet=self.out.quiet)
            self._keep({"after.json": report})
            measured = compare_reports([read_report(self.folder / "before.json")], [report])
            self.say(f"{self._outcome(report, measured)}\n{measured.headline}")
            write_all(measured, destinations, self.out, summary=False)

    def _outcome(self, report: "Report", measured: "Comparison") -> str:
        """Predicted against measured in a line. Steps of other work do not answer the prediction."""
        from nsysdiag.comparison.predicted import compare_sides
        from nsysdiag.units import format_ns

        made = self._predicted()
        name = made.transforms[0].of
        if measured.job is not None and any(row.differs for row in measured.job.work):
            return f"{name}: the prediction is not judged, as the steps do not have the same work"
        unit, _predicted, said = compare_sides([made], [report]).headline.partition(" predicted ")
        return f"{name}: {unit.lower()} {format_ns(made.now_ns)} before, predicted {said}"

    def _predicted(self) -> "WhatIf":
        from nsysdiag.replay.facts import WhatIf
        from nsysdiag.saved import read_side

        path = self.folder / PREDICTED
        found = read_side(path)
        if not isinstance(found, WhatIf) or not found.transforms:
            raise NotComparableError(f"{printable(path)} holds no prediction of a fix", hint="begin again with --anew")
        return found

    def _record(self, side: str) -> tuple[Path, int]:
        """The report of the program on this side, and the code that the command ends with."""
        from nsysdiag.capture.plan import require_program
        from nsysdiag.capture.run import find_nsys, probe, require_system
        from nsysdiag.process import make_folder, private_folder

        if not self.words:
            raise UsageError(f"neither a program nor --{side} is named", hint="nsysdiag try ... -- PROGRAM ARGS...")
        require_system()
        require_program(self.words)
        nsys = find_nsys(self.settings.nsys)
        make_folder(self.folder)
        target = self.folder / f"{side}{REPORT}"
        with private_folder() as private:
            found = probe(nsys, private)
            return recorded(found, self.words, self.span, target, private, self.out.but(force=True))

    def _keep(self, documents: "dict[str, Record]") -> None:
        from nsysdiag.formats import is_json, write
        from nsysdiag.process import make_folder
        from nsysdiag.record import to_json

        make_folder(self.folder)
        for name, document in documents.items():
            write(self.folder / name, to_json(document), force=False, is_ours=is_json)


def _told(finding: "Finding", promise: str) -> str:
    """The finding, what its fix is predicted to bring, and what to change."""
    advice = [f"  change: {each}" for each in finding.advice[:MOST_ADVICE]]
    return "\n".join([f"{finding.id}: {finding.title}", f"  {promise}", *advice])
