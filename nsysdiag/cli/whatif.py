"""`nsysdiag whatif`: how long a step would be after a fix."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsysdiag.cli import options
from nsysdiag.messages import UsageError

if TYPE_CHECKING:
    from nsysdiag.replay.facts import Transform

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
        from nsysdiag.replay.facts import HOST, KERNEL, OVERLAP, RANK_LIKE, Transform, chosen, scaled

        plain = {"finding": self.finding, "graphs": self.graphs, "merge": self.merge, "stream": self.stream}
        for option, values in plain.items():
            if "" in (values or []):
                raise UsageError(f"--{option} is empty", hint="see 'nsysdiag whatif --help'")
        numbers = {"workers": self.workers, "ahead": self.ahead, "batch": self.batch}

        def named(option: str) -> list[Transform]:
            return [Transform(option=option, of=each) for each in plain[option] or []]

        found = [
            *(Transform(option="without", of=cause) for cause in known_causes(self.without or [])),
            *named("finding"),
            *(scaled(KERNEL, each) for each in self.kernel or []),
            *(scaled(HOST, each) for each in self.host or []),
            *([Transform(option="async-copies")] if self.async_copies else []),
            *(chosen(OVERLAP, each) for each in self.overlap or []),
            *named("graphs"),
            *([chosen(RANK_LIKE, self.rank_like)] if self.rank_like is not None else []),
            *named("merge"),
            *named("stream"),
            *(Transform(option=each, factor=float(number)) for each, number in numbers.items() if number is not None),
        ]
        return list(dict.fromkeys(found))


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
    from nsysdiag.cli.console import progress_bar
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
