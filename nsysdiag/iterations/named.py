"""NVTX ranges by their names: steps, parts of a model, and what repeats on the host; the passes of a short capture."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, contains, union
from nsysdiag.arrays.nesting import levels, outermost
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.rows import RowsOf, picked
from nsysdiag.iterations.loop import FEWEST, Loop
from nsysdiag.names import pseudonym

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
    return _is_whole(name.lower(), _WHOLE_STEP)


def _is_whole(name: str, word: re.Pattern[str]) -> bool:
    return word.search(name) is not None and _PART_OF_STEP.search(name) is None


_EPOCH = re.compile(r"(?<![a-z])epochs?(?![a-z])")
_IN_EPOCHS = re.compile(r"(?<![a-z])(step|iter|iteration|batch)(es|s)?(?![a-z])")


def is_epoch(name: str) -> bool:
    """Whether a range is called an epoch, which usually holds many steps."""
    return _EPOCH.search(name.lower()) is not None


def is_step_of_epochs(name: str) -> bool:
    """Whether a range inside epochs is called a step: `batch #` is one there, `micro_batch #` is a part of one."""
    return _is_whole(name.lower(), _IN_EPOCHS)


def family_of(name: str) -> str:
    """A name without its numbers: `execute_context_1(888_1)` is `execute_context_#(#)`, however long the list is."""
    return _LIST.sub("#", _COUNTER.sub("#", name))


_STEM = re.compile(r"[^#(\[:]*")
_OF_ENGINES = re.compile(r"execute_|step$")


def stem_of(word: str) -> str:
    """What the kinds of a step of an engine have in common, with a star: `step*` for `step[DECODE bs=#]`. Empty if
    that does not say that it is a step, or is all of the name."""
    found = _STEM.match(word)
    stem = found[0].rstrip(" _") if found is not None else ""
    return f"{stem}*" if stem != word and (is_step(stem) or _OF_ENGINES.search(stem.lower())) else ""


class Kinds(Struct, frozen=True):
    """For each name of a range: the code of the name without its counters, and whether it is that of an operator.
    `part` is the code of the name with its counters if these number parts of a model, else -1; `number` is the
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
        codes = np.array(code, dtype=np.int32)
        parts: dict[str, int] = {}
        part = [
            parts.setdefault(_DETAILS.sub("", name), len(parts)) if modules[at] else -1
            for at, name in zip(code, ranges.names, strict=True)
        ]
        numbered = np.array(part, dtype=np.int32)
        found = (_NUMBER.search(name) for name in ranges.names)
        number = np.array([int(each[0]) if each else -1 for each in found], dtype=np.int64)
        return cls(codes, operator[codes] & (numbered < 0), numbered, number, list(words), list(parts))


def _numbers(word: str) -> bool:
    """Whether the first counter of a name, `#`, is that of a part of a model: `blocks.#`, `layer_#`."""
    name = word.replace("#", "0").lower()
    return _MODULE.search(name) is not None and _STEP.search(name) is None


MOST_LEVELS = 4
"""Levels of nested ranges of a thread, the outermost first, on which steps are looked for. All deeper ranges are one
more level, in which only a part of a step may repeat. Each level costs a look at its ranges."""


class ThreadRanges(Struct, frozen=True):
    """The ranges of a thread, in order of time, with the level of each and its `name`, for which `kinds` has codes."""

    spans: Intervals
    level: IntArray
    name: IntArray
    kinds: Kinds

    @classmethod
    def of(cls, rows: RangeRows, at: IntArray, kinds: Kinds) -> ThreadRanges:
        """Those at these places in `rows`."""
        at = at if ascending(rows.start[at]) else at[np.argsort(rows.start[at], kind="stable")]
        mine = picked(at)
        spans = Intervals(rows.start[mine], np.minimum(rows.end[mine], np.iinfo(np.int64).max // 2))
        return cls(spans, levels(spans, MOST_LEVELS + 1), rows.name[mine], kinds)

    def at(self, level: int) -> IntArray:
        """The places of those of a level."""
        return np.flatnonzero(self.level == level)

    def code(self, at: IntArray) -> IntArray:
        """The codes of the names of some."""
        return self.kinds.code[self.name[at]]

    def part(self, at: IntArray) -> IntArray:
        """The same of the names with their counters, as in `kinds`."""
        return self.kinds.part[self.name[at]]

    def number(self, at: IntArray) -> IntArray:
        """The first numbers in the names of some."""
        return self.kinds.number[self.name[at]]


# NVTX ranges of a trace without GPU activity: what repeats on the host, and what takes its time.

MOST_RANGES = 3
"""Ranges that are named if the trace has no GPU activity, those with most time. More of them only lengthen a
sentence."""
LEAST_SHARE = 0.1
"""Of the time: a range that takes less is not named."""
LEAST_COVERED = 0.6
"""Of the time between the first start and the last end: if outermost ranges take less, little repeats."""


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
    """What repeats on the thread whose outermost ranges take most time; None if nothing repeats."""
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
    """What repeats among ranges of one thread; None if that covers too little of the time."""
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
    """The name that ranges share: with its digits if these don't count."""
    first = int(rows[0])
    return names[first] if np.all(rows == first) else kinds.words[int(kinds.code[first])]


# The passes of a capture that holds one step of a program, or a few: too few for a loop.
#
# ```
# thread    [ProfilerStep#6                             ]       one range around the launches: one pass
# device        [L][L][L][L][L][L][L][L][head]                  what repeats are its layers
# ```

LEAST_LAUNCHED = 0.8
"""Of the launches in the file: ranges that hold less are not the passes."""
_CALLED_STEP = re.compile(r"profilerstep|execute_|step\[")
"""What PyTorch, vLLM and SGLang call their steps."""
_LAYER = re.compile(r"nn\.Module: (\w*(?:Layer|Block))_(\d{1,6})")
_LONGER = re.compile(r"epoch|request")
"""What holds many steps."""


class Passes(Struct, frozen=True):
    """The time of each pass on the device, from its first operation to its last one. `steps`: the ranges around them
    are called steps. `layers` is how many the model has in each, 0 if nothing names them."""

    spans: Intervals
    steps: bool
    layers: int = 0

    def of_layers(self, loop: Loop) -> bool:
        """Whether a loop comes as often in each pass as the model has layers, or pairs of two kinds of these. The first
        and the last may be another one's."""
        at = np.searchsorted(self.spans.start, loop.starts, side="right") - 1
        inside = int(((at >= 0) & (loop.starts < self.spans.end[at])).sum()) / len(self.spans)
        return self.layers > 0 and any(abs(inside - self.layers / each) <= 1 for each in (1, 2))


def layers_named(names: Iterable[str]) -> int:
    """How many instances of one class of layers the names of Python functions number: `nn.Module: DecoderLayer_23`."""
    found: dict[str, set[int]] = {}
    for name in names:
        if (match := _LAYER.fullmatch(name)) is not None:
            found.setdefault(match[1], set()).add(int(match[2]))
    return max((len(numbers) for numbers in found.values()), default=0)


class _Ranges(Struct, frozen=True):
    """Ranges of one name on one level of a thread, and the rank of the choice: the lowest is used."""

    spans: Intervals
    steps: bool
    level: int


def passes_of(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, whole: Intervals) -> Passes | None:
    """Those of the outermost ranges that hold nearly all launches, called steps if any are. None without such, or if
    they are not few."""
    launched = device.running & (device.launch >= 0) & contains(whole, device.operations.start)
    if not launched.any():
        return None
    issued = calls.start[device.launch[launched]]
    found = [each for each in _families(ranges) if contains(union(each.spans), issued).mean() >= LEAST_LAUNCHED]
    best = min(found, key=lambda each: (not each.steps, each.level), default=None)
    if best is None or len(best.spans) >= FEWEST:
        return None
    return passes_in(device, calls, best.spans, whole, steps=best.steps)


def passes_in(
    device: DeviceTimeline, calls: CallRows, spans: Intervals, whole: Intervals, *, steps: bool
) -> Passes | None:
    """Those of ranges, if these do not overlap: each from the first operation that is launched in it to the last."""
    rows = np.flatnonzero(device.running & (device.launch >= 0) & contains(whole, device.operations.start))
    issued = calls.start[device.launch[rows]]
    found = []
    for begin, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
        mine = rows[(issued >= begin) & (issued < end)]
        if len(mine):
            found.append((int(device.operations.start[mine].min()), int(device.operations.end[mine].max())))
    made = Intervals.of(found)
    apart = len(found) > 0 and bool((made.end[:-1] <= made.start[1:]).all())
    return Passes(made, steps=steps) if apart else None


def _families(ranges: NvtxRanges) -> list[_Ranges]:
    """The ranges of one name, counters aside, on one of the outer levels of a thread. Operators, parts of a model and
    calls of libraries are left out."""
    kinds, rows = Kinds.of(ranges), ranges.rows
    mine = ~kinds.operator[rows.name] & (kinds.part[rows.name] < 0) & ~rows.communication & ~rows.mpi
    rows = rows.take(mine & (rows.end > rows.start))
    of_thread = RowsOf(rows.thread)
    found: list[_Ranges] = []
    for thread in of_thread.values():
        its = ThreadRanges.of(rows, of_thread[thread], kinds)
        for level in range(MOST_LEVELS):
            at = its.at(level)
            of_word = RowsOf(its.code(at))
            words = ((_is_step(kinds.words[word]), at[of_word[word]]) for word in of_word.values())
            found += [_Ranges(its.spans[mine], steps, level) for steps, mine in words]
    return found


def _is_step(name: str) -> bool:
    lower = name.lower()
    return _CALLED_STEP.search(lower) is not None or (is_step(name) and _LONGER.search(lower) is None)
