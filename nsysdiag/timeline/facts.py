"""A device's timeline as plain data: levels of detail for all of it, and every slice where there is room for them.

Times are integer nanoseconds. Columns of numbers are packed: `start_ns` and the encodings say how to read them back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from nsysdiag.fields import Base64, Buckets, CauseId, Count, Index, Moment, Number, OwnText, PackedNames, ThreadName
from nsysdiag.limits import MOST_BUCKETS, MOST_NAMES_BYTES
from nsysdiag.record import Packed, PackedColumn, Record

OFF_CPU = "off_cpu"
"""The kind of the lane that shows when a thread had no CPU, for whatever reason."""


class TimelineLevel(Packed, frozen=True):
    """A device's timeline in equal buckets. A lane is one byte a bucket, 0 to 255 for none to all of it, and never 0
    for more than nothing. `cause` is the place in `cause_ids` of what leads in the bucket's gaps, else 255."""

    buckets: Buckets
    compute: Base64
    communication: Base64
    copies: Base64
    idle: Base64
    cause: Base64

    def columns(self) -> Iterable[PackedColumn]:
        """The lanes, one byte a bucket."""
        lanes = (self.compute, self.communication, self.copies, self.idle, self.cause)
        return [PackedColumn(text, self.buckets, 1) for text in lanes]


class TimelineThread(Record, frozen=True):
    """A host thread with lanes of its own. `launches`: gaps of the device end with its work; else it is one of those
    that ended a wait. `lanes_of` is the key of the device whose timeline holds its lanes, None for this one."""

    pid: Number
    tid: Number
    name: ThreadName | None
    launches: bool
    lanes_of: OwnText | None = None


class TimelineLane(Packed, frozen=True):
    """One lane of a device or of a thread.

    `kind`: `stream`, `causes`, `steps`, `graphs`, `host_functions`; of threads `phases`, `start`, `nvtx`, `openacc` and
    `openmp` (of nesting `depth`), `mpi`, `api`, `os`, `off_cpu`. `thread` is an
    index into `threads`, None for the device's own.

    `levels` are the shares of time in buckets as in TimelineLevel, finest first, with as many buckets as the coarsest
    levels of the device. `starts`, `lengths`, `names` and `kinds` hold `count` exact slices by start. `starts` are
    differences, the first from `start_ns`, for a thread from the start of `host_span`. `names` are indices into the
    names of the timeline. `kinds` of a stream are 0 compute, 1 communication, 2 copies and memory sets; of causes
    indices into `cause_ids`. A column without information is empty.

    Of a stream `amounts` are bytes for copies and sets, blocks of the grid for kernels; `blocks_of` are threads per
    block. 0 is unknown. `launches` leads to the calls: 0 for none, else 1 more than the step from the last known one,
    2n for n rows on, 2n - 1 for n rows back. They count the rows of the `api` lanes of all `threads`, in order, from 0.
    """

    kind: OwnText
    label: OwnText
    thread: Number | None
    depth: Index
    levels: list[Base64]
    count: Count
    starts: Base64
    lengths: Base64
    names: Base64
    kinds: Base64
    amounts: Base64 = ""
    blocks_of: Base64 = ""
    launches: Base64 = ""

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """The packed columns of exact slices, the starts first."""
        return (self.starts, self.lengths, self.names, self.kinds, self.amounts, self.blocks_of, self.launches)

    def columns(self) -> Iterable[PackedColumn]:
        """The columns of exact slices that say anything; the levels are as long as their text allows."""
        return [
            *(PackedColumn(text, self.count, 8) for text in self.slice_columns if text),
            *(PackedColumn(text, 1, MOST_BUCKETS) for text in self.levels),
        ]


class TimelineLevels(Packed, frozen=True):
    """A device's timeline, finest level first: from its first to its last operation, or only a narrowed window.

    Lanes of streams hold every operation that touches `exact_operations`, those of threads every row that touches
    `exact_host`. Elsewhere they hold only the longest NVTX ranges. Lanes of threads cover `host_span`, None for the
    time of the device. A thread that serves several devices has its lanes in the timeline of the first one, over the
    time of all of them. `threads_left_out` counts further threads that launched. `names` is a packed JSON array.
    """

    start_ns: Moment
    end_ns: Moment
    cause_ids: list[CauseId]
    levels: Annotated[list[TimelineLevel], Meta(min_length=1)]
    encoding: OwnText = "base64(zlib(uint8))"
    names: PackedNames = ""
    threads: list[TimelineThread] = []
    threads_left_out: Count = 0
    lanes: list[TimelineLane] = []
    exact_operations: list[tuple[Moment, Moment]] = []
    exact_host: list[tuple[Moment, Moment]] = []
    host_span: tuple[Moment, Moment] | None = None
    lane_encoding: OwnText = "base64(zlib(planes: the lowest byte of every number, then the next one)); names: UTF-8"

    def columns(self) -> Iterable[PackedColumn]:
        """The names; levels and lanes yield their own."""
        return [PackedColumn(self.names, 1, MOST_NAMES_BYTES)] if self.names else []
