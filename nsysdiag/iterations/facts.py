"""Iterations as plain data, and a step with the profiler and without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from nsysdiag.fields import (
    COUNT,
    NO_BUDGET,
    POSITIVE,
    Base64,
    CauseId,
    Count,
    Index,
    IterationName,
    KernelName,
    Moment,
    Ns,
    NsByCause,
    Number,
    OwnText,
    Ratio,
    Sentence,
    Share,
    TotalNs,
    WhyNone,
)
from nsysdiag.record import Packed, PackedColumn, Record


class StepReference(Record, frozen=True):
    """How long a step takes without the profiler, as the user measured it (`reference_ns`), and with it: the median
    steady step of `device`, the slowest one (`measured_ns`). `factor` is measured / reference: how much the profiler
    distorts, if both are of the same steps on the same machine; `sentence` says so."""

    reference_ns: Ns
    measured_ns: Ns
    device: OwnText
    factor: Ratio
    sentence: Sentence


class Iteration(Record, frozen=True):
    """One iteration on the device: [start_ns, end_ns). Its work and its ledger add up to its length."""

    index: Index
    start_ns: Moment
    end_ns: Moment
    steady: bool
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    ledger: NsByCause


class SlowIteration(Record, frozen=True):
    """An iteration longer than the median one by `extra_ns`; `more` is what it has more of: causes, kinds of work."""

    index: Index
    extra_ns: TotalNs
    more: dict[OwnText, TotalNs]


class IterationsPacked(Packed, frozen=True):
    """The steady iterations in order, compact: `count` entries, each the sum over `each` consecutive iterations (1
    unless there are very many; the last few may then be left out).

    `lengths` is their time, which `work` (compute, exposed_comm, exposed_copy) and `ledger` (by cause) add up to;
    `root_ledger` is the same idle time by root cause. `ops` counts the operations that begin in each. `kernels` holds
    the time of kernels by name, for the first rows of the device's `kernels`, one entry each; `signatures` that of gap
    groups, for the first rows of its `signatures`. `copied` is the bytes moved by copies that begin in it; empty if
    unknown, and in older reports. The first entry begins at `first_ns`, and `apart` is the time from the end of the one
    before to each, 0 for the first; None and empty if an entry is several iterations, and in older reports. Numbers
    from 0 up, each column as planes of bytes: the lowest byte of every number, then the next one of each, as many as
    the largest needs.
    """

    count: Count
    each: Annotated[int, COUNT, POSITIVE]
    lengths: Base64
    work: dict[OwnText, Base64]
    ledger: dict[CauseId, Base64]
    root_ledger: dict[CauseId, Base64]
    ops: dict[OwnText, Base64]
    kernels: list[Base64]
    signatures: list[Base64] = []
    copied: Base64 = ""
    first_ns: Moment | None = None
    apart: Base64 = ""
    encoding: OwnText = "base64(zlib(planes of bytes))"

    def columns(self) -> Iterable[PackedColumn]:
        """All columns, each of `count` numbers."""
        named = (self.work, self.ledger, self.root_ledger, self.ops)
        texts = [
            self.lengths,
            *(text for text in (self.copied, self.apart) if text),
            *(text for columns in named for text in columns.values()),
            *self.kernels,
            *self.signatures,
        ]
        return [PackedColumn(text, self.count, 8) for text in texts]


class InnerLoop(Record, frozen=True):
    """A shorter period inside iterations: what comes `per_iteration` times in each, `median_ns` from one to the next.
    Its name is that of an NVTX range or of an operation, by `source`, as for iterations."""

    source: OwnText
    name: IterationName
    per_iteration: Count
    median_ns: Ns


class IterationKind(Record, frozen=True):
    """Iterations that spend most of their time in this kernel, or in CUDA graphs recorded as a whole: how many of the
    steady ones, their median and their total time."""

    name: KernelName
    count: Count
    median_ns: Ns
    total_ns: TotalNs


class ServingBatch(Record, frozen=True):
    """Steps of one size: of so many `requests`, or of one CUDA graph (its number in the trace) if these are not
    known."""

    requests: Count | None
    graph: Number | None
    count: Count
    median_ns: Ns


class ServingPhase(Record, frozen=True):
    """The steady steps of a server that do the same: `phase` is `prefill`, `decode`, `mixed` or `unnamed`.

    `shown_by` is what says so: `nvtx`, ranges of the engine; `attention`, kernels that serve one phase; `graphs`,
    replays of CUDA graphs next to steps without them; empty for unnamed steps. `share` is of the time of all steady
    steps. `tokens` is the median of a step, None if no range says it. `idle` is the idle time of these steps by
    bottleneck, `batches` their lengths by size, empty if there is one size or none is known."""

    phase: OwnText
    shown_by: OwnText
    count: Count
    median_ns: Ns
    total_ns: TotalNs
    share: Share
    tokens: Count | None
    idle: dict[OwnText, TotalNs]
    batches: list[ServingBatch] = []


class IterationReport(Record, frozen=True):
    """Iterations found by `source`: `nvtx`, ranges of this name, or `anchor`, an operation that repeats.

    Percentiles are over the steady ones; `left_out` are warm-up, graph captures and iterations without an end. `rows`
    holds at most 200 of them, the longest; `packed` all steady ones. `slow` holds at most ten; `slow_count` and
    `slow_extra_ns` are of all slow ones; `slow_period` is their distance in iterations, None if irregular. `kind` is
    `step`; `layer` for the repeating parts of a model in one pass, `repeat` for what may be such: these are not packed.
    `closed`: the program's own loop surely closes in each. `inner` is the shorter period in them, None if none was
    found; `levels` are all of them, from that one on. `certain` is False if the trace does not show which are the
    steps and which their parts; then `outer`, if any, is a longer period that may be the step: so many iterations are
    in each, and its median length. With neither that nor `inner`, several iterations may be a step. `kinds` of
    iterations take turns, as prefill and decode in a server, the most frequent first; empty if all do the same work.
    Only those of the first kind are slow. `layers` of a model in each are of several kinds: how many of each; else
    empty. A `name` of ranges has # for their numbers, and a star behind what several kinds of a step have in common.
    `serving` are the steps of an inference server by phase, that with most time first; empty if none shows.
    """

    source: OwnText
    name: IterationName
    count: Count
    steady: Count
    left_out: list[Index]
    p50_ns: Ns
    p95_ns: Ns
    worst_ns: Ns
    median_index: Index
    rows: list[Iteration]
    slow: list[SlowIteration]
    packed: Annotated[IterationsPacked | None, NO_BUDGET] = None
    slow_count: Count = 0
    slow_extra_ns: TotalNs = 0
    slow_period: Annotated[Count | None, WhyNone("slow iterations come at no regular distance")] = None
    kind: OwnText = "step"
    closed: bool = True
    inner: Annotated[InnerLoop | None, NO_BUDGET] = None
    levels: Annotated[list[InnerLoop], NO_BUDGET] = []
    outer: Annotated[InnerLoop | None, NO_BUDGET] = None
    kinds: Annotated[list[IterationKind], NO_BUDGET] = []
    certain: bool = True
    layers: Annotated[list[Count], NO_BUDGET] = []
    serving: Annotated[list[ServingPhase], NO_BUDGET] = []
