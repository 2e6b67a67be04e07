"""A slice of a trace that gives the same verdict: cut, analyzed, compared, and grown until it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import pipeline
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.config.settings import Settings
from nsysdiag.document.drawings import FULL
from nsysdiag.document.packed import unpack_lanes
from nsysdiag.report import DeviceReport, Report
from nsysdiag.saved import unpack
from nsysdiag.share.cut import SliceCut, write_cut
from nsysdiag.share.target import Rename
from nsysdiag.trace.trace import Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    Shares = npt.NDArray[np.float64]
    Times = npt.NDArray[np.int64]


# Which span of time stands for a whole trace: short ones whose time is divided like that of all of it, shortest first.
#
# ```
# device     |==|..|==|..|==|......|==|..|==|..|==|......|==|..|==|......
# borders    |     |     |         |     |     |         |     |                iterations, else equal parts
# tried                  [---------------)                                      5 iterations, the most alike of those
#                  [---------------------------)                                then twice as many, and so on
# ```

FEWEST_ITERATIONS = 6
"""Five make a rhythm, and the last one of a trace has no end of its own."""
EQUAL_PARTS = 64
FEWEST_PARTS = 1
LONGEST_SHARE = 0.75
"""A slice that is longer is not worth being one."""
MOST_DIFFERENT, TOO_DIFFERENT = 2.0, 0.5
"""How much of the time may be divided otherwise: at most twice all of it."""


class Candidate(msgspec.Struct, frozen=True):
    """A span [start_ns, end_ns); `iterations` are those from the first up to but not including the second, None if
    the borders are not those of iterations."""

    start_ns: int
    end_ns: int
    iterations: tuple[int, int] | None = None


class Borders(msgspec.Struct, frozen=True):
    """Where a slice may begin and end, in order; `numbers` are those of the iterations that begin there."""

    times: Times
    numbers: list[int] | None

    @property
    def fewest(self) -> int:
        """How many steps from border to border the shortest slice has."""
        return FEWEST_PARTS if self.numbers is None else FEWEST_ITERATIONS

    def candidate(self, first: int, last: int) -> Candidate:
        """The span between two borders."""
        which = None if self.numbers is None else (self.numbers[first], self.numbers[last])
        return Candidate(int(self.times[first]), int(self.times[last]), which)


def whole_of(report: Report) -> Candidate | None:
    """From the first to the last operation of all devices; None if nothing ran."""
    windows = [device.window for device in report.devices if device.window_ns]
    if not windows:
        return None
    return Candidate(min(window.start_ns for window in windows), max(window.end_ns for window in windows))


def candidates(report: Report) -> Iterator[Candidate]:
    """Spans to try, shortest first, each at least twice as long as the one before, none of them the whole.

    Of about equally long ones, it is the one most similar to the whole in the split of its time, on the least similar
    device. Each holds one of the longest gaps of the leading cause, if possible.
    """
    whole = whole_of(report)
    if whole is None:
        return
    borders = _borders(report, whole)
    pairs, difference = _matched(report, borders, whole)
    length = borders.times[pairs[:, 1]] - borders.times[pairs[:, 0]]
    shortest = int(length.min()) if len(length) else 0
    while len(length) and shortest <= length.max():
        alike = np.flatnonzero((length >= shortest) & (length < 2 * shortest))
        if len(alike):
            best = alike[np.lexsort((length[alike], np.round(difference[alike], 2)))[0]]
            if difference[best] <= TOO_DIFFERENT:
                yield borders.candidate(int(pairs[best, 0]), int(pairs[best, 1]))
        shortest *= 2


def _borders(report: Report, whole: Candidate) -> Borders:
    """The starts of iterations on the device that is idle longest, among those that have any; else equal parts."""
    known = [device for device in report.devices if device.iterations and device.iterations.count > FEWEST_ITERATIONS]
    if known:
        rows = max(known, key=lambda device: device.idle_ns).iterations
        starts = sorted((row.start_ns, row.index) for row in (rows.rows if rows else ()))
        if len(starts) > FEWEST_ITERATIONS:
            return Borders(np.array([start for start, _ in starts]), [index for _, index in starts])
    return Borders(distinct_values(np.linspace(whole.start_ns, whole.end_ns, EQUAL_PARTS + 1).astype(np.int64)), None)


def _matched(report: Report, borders: Borders, whole: Candidate) -> tuple[Times, Shares]:
    """The pairs of borders that come into question, and how differently the time between them is divided."""
    first, last = np.triu_indices(len(borders.times), borders.fewest)
    length = borders.times[last] - borders.times[first]
    fits = (length > 0) & (length <= LONGEST_SHARE * (whole.end_ns - whole.start_ns))
    # Anchors: where the longest gaps begin whose cause is the leading one of the device that is idle longest.
    idlest = max(report.devices, key=lambda device: device.idle_ns)
    leading = max(idlest.ledger, key=lambda cause: idlest.ledger[cause], default=None)
    gaps = [gap for gap in idlest.gaps if gap.slices and max(gap.slices, key=lambda part: part.ns).cause == leading]
    anchors = np.array(sorted(gap.start_ns for gap in gaps), dtype=np.int64)
    before = np.searchsorted(anchors, borders.times)
    holds = before[last] > before[first]
    fits &= holds if (holds & fits).any() else True
    first, last = first[fits], last[fits]
    difference = np.zeros(len(first))
    for device in report.devices:
        if device.window_ns:
            difference = np.maximum(difference, _difference(report, device, borders.times, first, last))
    return np.stack((first, last), axis=1), difference


def _difference(report: Report, device: DeviceReport, times: Times, first: Times, last: Times) -> Shares:
    """How much of the time of each span is divided otherwise than in the whole window, 0 to 2."""
    when, what, ns, kinds = _events(report, device)
    # For each border the time before it, by cause of idle time and kind of work; and the time beyond all borders.
    sums = np.zeros((len(times) + 1, kinds))
    np.add.at(sums, (np.searchsorted(times, when, side="right"), what), ns)
    running: Shares = np.cumsum(sums, axis=0)[: len(times)]
    running -= running[0].copy()
    beyond = (when < times[0]) | (when >= times[-1])
    outside = np.zeros(kinds)
    np.add.at(outside, what[beyond], ns[beyond])
    inside = running[last] - running[first]
    shares = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1)
    total = running[-1] + outside
    difference: Shares = np.abs(shares - total / max(total.sum(), 1)).sum(axis=1)
    difference[inside.sum(axis=1) <= 0] = MOST_DIFFERENT
    return difference


def _events(report: Report, device: DeviceReport) -> tuple[Times, Times, Shares, int]:
    """Gaps by their dominant cause, and work in the buckets of the timeline: when, of what kind, and how long."""
    start, gap_ns, cause = unpack(device.gaps_packed)
    causes = len(device.gaps_packed.cause_ids)
    parts = [(start, cause, gap_ns.astype(np.float64))]
    levels = None if report.timeline is msgspec.UNSET else report.timeline.get(device.key)
    if levels is not None:
        found = unpack_lanes(levels.levels[0])  # the finest level
        edges = np.linspace(levels.start_ns, levels.end_ns, levels.levels[0].buckets + 1)
        middle = ((edges[1:] + edges[:-1]) / 2).astype(np.int64)
        for number, lane in enumerate(("compute", "communication", "copies")):
            spent = found[lane] / FULL * np.diff(edges)
            parts.append((middle, np.full(len(middle), causes + number), spent))
    when, what, ns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return when, what, ns, causes + 3


class SlicePair(Struct, frozen=True):
    """A device of the trace and the same one in the slice; None if nothing of it is in there."""

    full: DeviceReport
    part: DeviceReport | None

    @property
    def alike(self) -> bool:
        """Whether both have the same verdict, and idle time the same leading cause."""
        if self.part is None:
            return not self.full.window_ns
        return self.full.verdict.id == self.part.verdict.id and _leading(self.full) == _leading(self.part)


class TraceSlice(Struct, frozen=True):
    """A slice in the file `path`. Where nothing ran on a GPU, or no span shows what the trace shows, `span` is None and
    all events are in it. `lean` means that call chains and the samples of most threads are left out."""

    path: Path
    span: Candidate | None
    whole: bool
    lean: bool
    pairs: list[SlicePair]

    @property
    def alike(self) -> bool:
        """Whether every device has the same verdict and leading cause as in the trace."""
        return all(pair.alike for pair in self.pairs)


def slice_of(
    trace: Trace, report: Report, settings: Settings, folder: Path, rename: Rename | None = None
) -> TraceSlice:
    """The smallest slice, written into `folder`, whose analysis gives the verdicts of `report`; if none does, all
    events, and the pairs say where they differ. With `rename` that is so of the slice with other names."""
    whole = whole_of(report)
    attempts: list[tuple[Candidate | None, bool]] = [(span, False) for span in candidates(report)]
    attempts += [(whole, True), (whole, False)] if whole else []
    # Damaged traces have rows whose times SQL compares otherwise than the reader does: no span holds them.
    attempts += [(None, False)]
    for number, (span, lean) in enumerate(attempts):
        path = folder / f"slice-{number}.sqlite"
        # An operation that starts where an iteration ends closes its last gap.
        start, end = (span.start_ns, span.end_ns + 1) if span else (None, None)
        write_cut(trace, path, SliceCut(start, end, lean=lean, rename=rename))
        found = TraceSlice(path, span, span in (whole, None), lean, _compared(path, report, settings))
        if found.alike or span is None:
            break
        path.unlink()
    return found


def _compared(path: Path, report: Report, settings: Settings) -> list[SlicePair]:
    """The devices of the report next to those of a slice, which is analyzed alike."""
    plain = Settings(same_gpu=settings.same_gpu, timeline=False, replay=False, reader=settings.reader)
    pairs = _pairs(report, pipeline.analyze(path, plain))
    if settings.device is not None and len(pairs) == 1 and pairs[0].part is not None:
        # A verdict depends on the devices that it waits for: the report is of this one alone, so the slice's is, too.
        pairs = _pairs(report, pipeline.analyze(path, replace(plain, device=pairs[0].part.key)))
    return pairs


def _pairs(report: Report, again: Report) -> list[SlicePair]:
    """By process and ordinal: if devices are left out, the others may have other keys."""
    same = [[other for other in again.devices if set(other.ids) & set(device.ids)] for device in report.devices]
    return [SlicePair(device, found[0] if found else None) for device, found in zip(report.devices, same, strict=True)]


def _leading(device: DeviceReport) -> str | None:
    """The cause, at the root, of most of the idle time; None if there is none."""
    ledger = device.root_ledger
    return max(ledger, key=lambda cause: ledger[cause], default=None)
