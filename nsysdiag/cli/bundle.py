"""`nsysdiag bundle`: a zip for a ticket."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import note, progress_bar
from nsysdiag.messages import UsageError, printable
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import named, stem_of

if TYPE_CHECKING:
    from nsysdiag.config.settings import Settings
    from nsysdiag.share.bundle import Bundle

SUFFIX = ".zip"
EPILOG = """\b
Examples:
  nsysdiag bundle train.sqlite
  nsysdiag bundle train.sqlite -o ticket.zip
  nsysdiag bundle train.sqlite --device gpu1 -o gpu1.zip
  nsysdiag bundle train.sqlite --redact -o for-the-vendor.zip"""


@options.spread
def bundle(
    trace: options.TraceArgument,
    *,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="Write the zip to PATH.", show_default=False)
    ] = None,
    device: options.DeviceOption = None,
    same_gpu: options.SameGpuOption = False,
    redact: options.RedactOption = False,
    out: options.Writing,
) -> None:
    """Write a zip for a ticket: report.html, summary.md, findings.json, and trace.sqlite, a slice of the trace.

    The slice is the smallest part found that analyses again to the same verdict. It never holds the environment, the
    command line, the host or programs that were not traced. With --redact no file in the zip holds a name of the
    trace. Without -o, writes TRACE-stem.nsysdiag.zip into the current folder, with --redact redacted.nsysdiag.zip.
    """
    from nsysdiag.cli.output import check_file
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats.documents import write
    from nsysdiag.saved.files import is_saved_report
    from nsysdiag.share.bundle import LEFT_OUT, coverage, differences, is_ours
    from nsysdiag.units import format_bytes

    source = named(Path(trace))
    target = _target(options.REDACTED_STEM if redact else stem_of(source), output)
    if is_saved_report(source):
        raise UsageError(
            f"{source} is a saved report: a bundle holds a slice of the trace, which a report does not",
            hint="name the trace that it was made from",
        )
    check_file(target, source, force=out.force, is_ours=is_ours)
    settings = Settings(device=device, same_gpu=same_gpu)
    made = _bundle(source, settings, redact=redact, quiet=out.quiet)
    write(target, made.data, force=out.force, is_ours=is_ours)
    size = made.slice_bytes
    missing = LEFT_OUT if size is None else "the slice does not show what the trace shows"
    for difference in differences(made.slice):  # also where all else is quiet: the bundle lacks something
        note(f"nsysdiag: {missing}: {difference}")
    if not out.quiet:
        content = "without trace.sqlite" if size is None else f"{coverage(made.slice)} ({format_bytes(size)})"
        note(f"wrote {target}; {content}")


def _target(stem: str, output: str | None) -> Path:
    if output is None:
        return Path(f"{stem.removesuffix('.nsysdiag') or 'trace'}.nsysdiag{SUFFIX}")
    if not output.lower().endswith(SUFFIX):
        raise UsageError(f"a bundle is a zip, and '{output}' is none by its name", hint="add -o ticket.zip")
    return Path(output)


def _bundle(source: Path, settings: "Settings", *, redact: bool, quiet: bool) -> "Bundle":
    from nsysdiag.document.one_line import command_of
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.pseudonyms import private_folder
    from nsysdiag.share.bundle import bundle_of
    from nsysdiag.share.names import Names
    from nsysdiag.trace.trace import open_trace

    with (
        Attempt(f"bundle '{printable(source)}'") as attempt,
        private_folder() as folder,
        progress_bar(quiet=quiet) as progress,
        open_trace(source) as trace,
    ):
        names = Names() if redact else None
        return bundle_of(
            trace,
            settings,
            folder,
            lambda report: RenderOptions(command=command_of(report)),
            attempt.noting(progress),
            names,
        )
