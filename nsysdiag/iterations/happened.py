"""What happens in a loop, by name: the operations of a device, and what the threads that launch them call."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.arrays.nesting import outermost
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, distinct, distinct_values
from nsysdiag.iterations.loop import FEWEST, Called, Loop, loop_of, pauses
from nsysdiag.iterations.replays import Replays, with_lost
from nsysdiag.names import pseudonym
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind

# Names of ranges: what they are without their counters, and which count the parts of a model.

# A uuid, a long hexadecimal number, or digits.
_COUNTER = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{8,})(?![0-9a-z])|\d+"
)
_NUMBER = re.compile(r"(?<!\d)\d{1,18}(?!\d)")
_LIST = re.compile(r"#(?:[_,; ]+#)+(?=[)\]])")
# What frameworks write around every operator: one may well be as long as a step, and is none.
OPERATOR = re.compile(r"(aten|autograd|c10d?|torch|prims)::|.*, (seq|op_id|sizes) = ")
_DETAILS = re.compile(r", (seq|op_id|sizes) = .*")
_STEP = re.compile(
    r"(?<![a-z])(step|iter|iters|iteration|epoch|batch|minibatch|frame|token|sample|request|query|cycle)s?\W*\d"
)
_PART = r"(layer|block|resblock|module|feature|expert|head|model|net|backbone|encoder|decoder|transformer)s?"
# blocks.3, layers[12], layer_12, Layer 12, (h.3.attn), encoder.layers.0
_MODULE = re.compile(
    rf"(?<![a-z]){_PART}[ _.\[-]?\d+|(?<![a-z])h\.\d+|[a-z_]\w*\.[a-z_]\w*\.\d+(?!\w)|[a-z_]\w*\.\d+\.[a-z_]"
)


_WHOLE_STEP = re.compile(r"(?<![a-z])(step|iter|iteration|epoch|frame|request)s?(?![a-z])")
_PART_OF_STEP = re.compile(r"micro|mini|sub|inner|accum|layer|block|sweep|solve|stage|forward|backward|optimi|loss")


def is_step(name: str) -> bool:
    """Whether a range is called a whole step: `train_step #`, no `micro_step #`, no `optimizer.step`."""
    lower = name.lower()
    return _WHOLE_STEP.search(lower) is not None and _PART_OF_STEP.search(lower) is None


def family_of(name: str) -> str:
    """A name without its numbers: `execute_context_1(888_1)` is `execute_context_#(#)`, however long the list is."""
    return _LIST.sub("#", _COUNTER.sub("#", name))


_STEM = re.compile(r"[^#(\[:]*")
_OF_ENGINES = re.compile(r"execute_|step$")


def stem_of(word: str) -> str:
    """What the kinds of a step of an engine have in common, with a star: `step*` for `step[DECODE bs=#]`. Empty where
    that does not say that it is a step, or is all of the name."""
    found = _STEM.match(word)
    stem = found[0].rstrip(" _") if found is not None else ""
    return f"{stem}*" if stem != word and (is_step(stem) or _OF_ENGINES.search(stem.lower())) else ""


class Kinds(Struct, frozen=True):
    """For each name of a range: the code of the name without its counters, and whether it is that of an operator.
    `part` is the code of the name with its counters where these number parts of a model, else -1; `number` is the
    first number in the name, -1 without one."""

    code: IntArray
    operator: BoolArray
    part: IntArray
    number: IntArray
    words: list[str]
    parts: list[str]

    @classmethod
    def of(cls, ranges: NvtxRanges) -> Kinds:
        """The kinds of the names of `ranges`."""
        words: dict[str, int] = {}
        code = [words.setdefault(pseudonym(name) or family_of(name), len(words)) for name in ranges.names]
        operator = np.array([OPERATOR.match(word) is not None for word in words], dtype=np.bool_)
        modules = np.array([_numbers(word) for word in words], dtype=np.bool_)
        codes = np.array(code, dtype=np.int64)
        parts: dict[str, int] = {}
        part = [
            parts.setdefault(_DETAILS.sub("", name), len(parts)) if modules[at] else -1
            for at, name in zip(code, ranges.names, strict=True)
        ]
        numbered = np.array(part, dtype=np.int64)
        number = np.array([_number(name) for name in ranges.names], dtype=np.int64)
        return cls(codes, operator[codes] & (numbered < 0), numbered, number, list(words), list(parts))


def _number(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[0]) if found is not None else -1


def _numbers(word: str) -> bool:
    """Whether the first counter of a name, `#`, is that of a part of a model: `blocks.#`, `layer_#`."""
    name = word.replace("#", "0").lower()
    return _MODULE.search(name) is not None and _STEP.search(name) is None


UPDATES = re.compile(
    r"adam|sgd|momentum|multi_?tensor|optimi[sz]er|lamb_|lamb<|rmsprop|adagrad|adafactor|"
    r"apply_?grad|update_?(weight|param)|(weight|param(eter)?)s?_?update",
    re.IGNORECASE,
)
"""Kernels that update the weights of a model."""

ATTENTION = re.compile(r"^(?!.*(bwd|bw_|_bw|backward|grad))(.*flash|.*fmha|.*attention|.*attn|.*sdpa)", re.IGNORECASE)
"""Kernels of a layer's attention, as one runs it forward."""

NETWORKS = re.compile(
    r"flash|fmha|attention|attn|sdpa|softmax|gemm|nvjet|matmul|cutlass|(layer|group|rms|batch)_?norm|RowwiseMoments|"
    r"^ln_|^bn_|conv(?!er)|relu|gelu|silu|swish|dropout|embedding",
    re.IGNORECASE,
)
"""Kernels of the layers of a network."""
WAITS = re.compile(r"Synchronize")
"""CUDA calls that wait for the device."""

HOST = 1 << 40
"""Codes from here on are of calls of the host, twice that of ranges."""


class Happened(Struct, frozen=True):
    """What shows levels of a device, in order of time: its operations, and the calls and ranges of the threads that
    launch them. `code` is that of the name. Operations have their time on the device, the others on the host. Nodes of
    graphs that the trace lost are there, and take no time."""

    time: IntArray
    end: IntArray
    code: IntArray
    on_host: BoolArray
    uploads: frozenset[int]
    downloads: frozenset[int]
    updates: frozenset[int]
    networks: frozenset[int]
    attention: frozenset[int]
    waits: frozenset[int]
    kernels: frozenset[int]
    issued_at: IntArray
    operations: IntArray

    @property
    def issued_early(self) -> IntArray:
        """The copies from the host whose calls are known. Another stream may run them long before the kernels that
        were launched after them: the order of the calls is that of the program."""
        of_host = np.isin(self.code[: len(self.end)], list(self.uploads))
        return np.flatnonzero(of_host & (self.issued_at[self.operations] >= 0))

    def loop_from(self, called: Called, starts: IntArray, end: int) -> Loop:
        """The loop of repeats that take any time, from the first of `starts` to the `end`: it is left where the device
        is idle for far longer than a repeat takes."""
        until, length = np.maximum.accumulate(self.end), np.diff(starts)
        own_end = until[np.searchsorted(self.time[: len(until)], np.append(starts[1:], end)) - 1]
        away = pauses(starts[1:] - own_end[:-1], float(np.median(length)), int(length.sum())) if len(length) else length
        return loop_of(called, starts, away > 0, own_end, end)

    @classmethod
    def of(
        cls,
        device: DeviceTimeline,
        calls: CallRows,
        ranges: NvtxRanges,
        kinds: Kinds,
        strings: Strings,
        replays: Replays,
        called: Sequence[str] = (),
    ) -> Happened:
        """`called` are the names of the calls; without them no wait is known."""
        operations = device.operations
        rows, alike = with_lost(np.flatnonzero(device.running & ~operations.migration), replays)
        codes = _codes(device)
        names, code = distinct(codes[alike])
        first = alike[np.unique(code, return_index=True)[1]]
        category, copied = operations.category[first], operations.copy_kind[first]
        kernel = np.isin(category, (Category.KERNEL, Category.GRAPH))
        named = np.flatnonzero((category == Category.KERNEL) & (operations.name[first] >= 0))
        texts = strings.texts(operations.name[first[named]])
        matched = {
            kind: frozenset(int(names[at]) for at, text in zip(named.tolist(), texts, strict=True) if kind.search(text))
            for kind in (UPDATES, NETWORKS, ATTENTION)
        }
        host_time, host_code = _on_host(device, calls, ranges, kinds, rows)
        return cls(
            time=np.append(operations.start[rows], host_time),
            end=np.where(alike == rows, operations.end[rows], operations.start[rows]),
            code=np.append(codes[alike], host_code),
            on_host=np.append(np.zeros(len(rows), np.bool_), np.ones(len(host_time), np.bool_)),
            uploads=frozenset(names[copied == CopyKind.HOST_TO_DEVICE].tolist()),
            downloads=frozenset(names[copied == CopyKind.DEVICE_TO_HOST].tolist()),
            updates=matched[UPDATES],
            networks=matched[NETWORKS],
            attention=matched[ATTENTION],
            waits=frozenset(HOST + at for at, name in enumerate(called) if WAITS.search(name)),
            kernels=frozenset(names[kernel].tolist()),
            issued_at=np.where(device.launch >= 0, calls.start[device.launch], -1) if len(calls) else device.launch,
            operations=rows,
        )


def _codes(device: DeviceTimeline) -> IntArray:
    """What operations of one name have in common."""
    operations = device.operations
    category = operations.category.astype(np.int64)
    detail = np.where(category == Category.MEMCPY, operations.copy_kind, operations.name)
    detail = np.where(category == Category.GRAPH, operations.graph, detail)
    detail = np.where(category == Category.MEMSET, 0, detail)
    return (category << 34) + detail.astype(np.int64) + 1


def _on_host(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, kinds: Kinds, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """The calls that launch nothing, and the ranges, of the threads that launch the operations."""
    launch = device.launch[rows]
    launch = launch[launch >= 0]
    threads = distinct_values(calls.thread[launch]) if len(launch) else np.empty(0, np.int64)
    others = np.flatnonzero(np.isin(calls.thread, threads))
    # The driver's row of a launch is inside that of the runtime, with the same id.
    others = others[~np.isin(calls.correlation[others], calls.correlation[launch])]
    named = np.isin(ranges.rows.thread, threads) & ~kinds.operator[ranges.rows.name] & ~ranges.rows.communication
    # What is called as often as kernels are launched, such as a query, shows no step.
    called = np.bincount(calls.name[others], minlength=1)
    others = others[(called <= len(rows) // 2)[calls.name[others]]]
    time = np.append(calls.start[others], ranges.rows.start[named])
    code = np.append(HOST + calls.name[others].astype(np.int64), 2 * HOST + kinds.code[ranges.rows.name[named]])
    return time, code


def category_of(code: IntArray) -> IntArray:
    """The category of operations."""
    return code >> 34


def anchor_of(code: int) -> int:
    """The string id of the name of a kernel; -1 for graphs."""
    return (code & (1 << 34) - 1) - 1 if code >> 34 == Category.KERNEL else -1


def code_of(called: Called) -> int:
    """The code of a kernel that repeats; -1 for graphs and ranges."""
    return (Category.KERNEL << 34) + called.anchor + 1 if called.anchor >= 0 else -1


# NVTX ranges of a trace without GPU activity: what repeats on the host, and what takes its time.

MOST_RANGES = 3
LEAST_SHARE = 0.1
"""Of the time: a range that takes less is not named."""
LEAST_COVERED = 0.6
"""Of the time between the first start and the last end: where outermost ranges take less, little repeats."""


class HostRange(Struct, frozen=True):
    """Ranges of one name, its counters as #: how many, and their share of the time."""

    name: str
    count: int
    share: float


class HostLoop(Struct, frozen=True):
    """Outermost ranges that repeat on one thread (a globalTid), longest first; `period_ns` is the median time from the
    start of one of the first kind to the start of the next."""

    period_ns: int
    ranges: list[HostRange]
    thread: int = -1


def host_loop(ranges: NvtxRanges) -> HostLoop | None:
    """What repeats on the thread whose outermost ranges take most time; None where nothing repeats."""
    kinds = Kinds.of(ranges)
    rows = ranges.rows
    own = ~kinds.operator[rows.name] & ~rows.communication & ~rows.mpi
    rows = rows.take(own & (rows.start >= 0) & (rows.end > rows.start))
    of_thread = RowsOf(rows.thread)
    found: list[tuple[int, HostLoop]] = []
    for thread in of_thread.values():
        mine = rows.take(of_thread[thread])
        outer = mine.take(outermost(Intervals(mine.start, mine.end)))
        loop = _repeating(outer, kinds, ranges.names)
        if loop is not None:
            found.append((int((outer.end - outer.start).sum()), replace(loop, thread=int(thread))))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _repeating(rows: RangeRows, kinds: Kinds, names: list[str]) -> HostLoop | None:
    """What repeats among ranges of one thread; None where that covers too little of the time."""
    span = int(rows.end.max() - rows.start.min())
    _, of_kind = distinct(kinds.code[rows.name])
    count = np.bincount(of_kind)
    time = np.bincount(of_kind, weights=(rows.end - rows.start).astype(np.float64))
    repeats = np.flatnonzero(count >= FEWEST)
    if time[repeats].sum() < LEAST_COVERED * span:
        return None
    order = repeats[np.argsort(-time[repeats], kind="stable")][:MOST_RANGES]
    longest = order[0]
    shown = [at for at in order if at == longest or time[at] >= LEAST_SHARE * span]
    found = [
        HostRange(_name(rows.name[of_kind == at], names, kinds), int(count[at]), float(time[at] / span)) for at in shown
    ]
    return HostLoop(int(np.median(np.diff(np.sort(rows.start[of_kind == longest])))), found)


def _name(rows: IntArray, names: list[str], kinds: Kinds) -> str:
    """The name that ranges share: with its digits where these don't count."""
    first = int(rows[0])
    return names[first] if np.all(rows == first) else kinds.words[int(kinds.code[first])]
