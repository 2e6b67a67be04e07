"""A slice of a trace that analyses again to the same verdict: cut, analysed, compared, and grown until it does."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import pipeline
from nsysdiag.config.settings import Settings
from nsysdiag.report import DeviceReport, Report
from nsysdiag.share.bundle.spans import Candidate, candidates, whole_of
from nsysdiag.share.slice.cut import Cut, write_cut
from nsysdiag.share.slice.roles import Rename
from nsysdiag.trace.trace import Trace


class Pair(Struct, frozen=True):
    """A device of the trace and the same one in the slice; None where nothing of it is in there."""

    full: DeviceReport
    part: DeviceReport | None

    @property
    def alike(self) -> bool:
        """Whether both have the same verdict, and idle time the same leading cause."""
        if self.part is None:
            return not self.full.window_ns
        return self.full.verdict.id == self.part.verdict.id and _leading(self.full) == _leading(self.part)


class Slice(Struct, frozen=True):
    """A slice in the file `path`. Where nothing ran on a GPU, or no span shows what the trace shows, `span` is None and
    all events are in it. `lean` means that call chains and the samples of most threads are left out."""

    path: Path
    span: Candidate | None
    whole: bool
    lean: bool
    pairs: list[Pair]

    @property
    def alike(self) -> bool:
        """Whether every device has the same verdict and leading cause as in the trace."""
        return all(pair.alike for pair in self.pairs)


class _Attempt(Struct, frozen=True):
    span: Candidate | None
    whole: bool = False
    lean: bool = False


def slice_of(trace: Trace, report: Report, settings: Settings, folder: Path, rename: Rename | None = None) -> Slice:
    """The smallest slice, written into `folder`, that analyses to the verdicts of `report`; if none does, all events,
    and the pairs say where they differ. With `rename` that is so of the slice with other names."""
    attempts = [_Attempt(candidate) for candidate in candidates(report)]
    if whole := whole_of(report):
        attempts += [_Attempt(whole, whole=True, lean=True), _Attempt(whole, whole=True)]
    # Damaged traces have rows whose times SQL compares otherwise than the reader does: no span holds them.
    attempts.append(_Attempt(None, whole=True))
    for number, attempt in enumerate(attempts):
        path = folder / f"slice-{number}.sqlite"
        found = _try(trace, report, settings, path, attempt, rename)
        if found.alike or attempt is attempts[-1]:
            break
        path.unlink()
    return found


def _try(
    trace: Trace, report: Report, settings: Settings, path: Path, attempt: _Attempt, rename: Rename | None
) -> Slice:
    span = attempt.span
    # An operation that starts where an iteration ends closes its last gap.
    start, end = (span.start_ns, span.end_ns + 1) if span else (None, None)
    write_cut(trace, path, Cut(start, end, lean=attempt.lean, rename=rename))
    plain = Settings(same_gpu=settings.same_gpu, timeline=False, reader=settings.reader)
    pairs = _pairs(report, pipeline.analyze(path, plain))
    if settings.device is not None and len(pairs) == 1 and pairs[0].part is not None:
        # A verdict depends on the devices that it waits for: the report is of this one alone, so the slice's is, too.
        pairs = _pairs(report, pipeline.analyze(path, replace(plain, device=pairs[0].part.key)))
    return Slice(path, span, attempt.whole, attempt.lean, pairs)


def _pairs(report: Report, again: Report) -> list[Pair]:
    """By process and ordinal: if devices are left out, the others may have other keys."""
    same = [[other for other in again.devices if set(other.ids) & set(device.ids)] for device in report.devices]
    return [Pair(device, found[0] if found else None) for device, found in zip(report.devices, same, strict=True)]


def _leading(device: DeviceReport) -> str | None:
    """The cause, at the root, of most of the idle time; None where there is none."""
    ledger = device.root_ledger
    return max(ledger, key=lambda cause: ledger[cause], default=None)
