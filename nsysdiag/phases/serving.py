"""Steps of an inference server: which prefill, which decode, which do both, and by what the trace shows it.

```
NVTX        [step[DECODE bs=8]][step[EXTEND bs=1 toks=512]       ]      an engine says what each step is
attention   |d d d d d d d d  |p p p p p p p p                   |      else kernels that serve one phase
launches    |graph            |g p g p g p g p g p g p           |      else graphs next to steps without them
```

What none of these shows is unnamed. A program that trains is not a server, whatever its attention kernels are called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import median_of
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, place_in
from nsysdiag.arrays.matching import of_matches
from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import last_before
from nsysdiag.iterations.by_host import take_turns
from nsysdiag.iterations.facts import ServingBatch, ServingPhase
from nsysdiag.iterations.happened import Replays
from nsysdiag.kernels.names import named_kernels
from nsysdiag.time.table import TimeTable, sums

if TYPE_CHECKING:
    from nsysdiag.events.calls import CallRows
    from nsysdiag.events.nvtx import NvtxRanges
    from nsysdiag.trace.columns import Strings

PHASES = ("prefill", "decode", "mixed", "unnamed")
PREFILL, DECODE, MIXED, UNNAMED = range(4)
SOURCES = ("", "nvtx", "attention", "graphs")
BY_NOTHING, BY_NVTX, BY_ATTENTION, BY_GRAPHS = range(4)
MOST_BATCHES = 12
"""Sizes of steps that a phase lists, those with most steps: a limit on the report. Steps of other sizes count in the
phase alone."""
IN_GRAPHS, NAMED, ALIKE = 0.5, 0.5, 0.25
"""Shares: of a step's time in graphs, or launched in a range, for these to show its phase; of the more frequent kind of
attention kernels, the other kind in a step that does both. Each layer has one of each, and the ends of a step may be
one layer off."""
_UNKNOWN = -1
"""What the trace does not say: numbers of requests, of tokens and of graphs are 0 or more."""


class StepNames(Struct, frozen=True):
    """What a range says of its step: its phase, the requests and the tokens in it, -1 if it does not say."""

    phase: int
    requests: int = _UNKNOWN
    tokens: int = _UNKNOWN


# vLLM:         execute_context_1(512)_generation_8(8), execute_new_1_cached_8
# TensorRT-LLM: [Executor] _forward_step 7: 1 ctx reqs, 512 ctx tokens, 8 gen reqs
# SGLang:       step[DECODE bs=8], step[EXTEND bs=1 toks=512], step[MIXED bs=9 toks=520]
# ATOM:         decode[bs=8 tok=8], prefill[bs=1 tok=512]
_COUNTED = (
    re.compile(r"execute_context_(?P<ctx>\d+)\((?P<ctx_tokens>\d+)\)_generation_(?P<gen>\d+)\((?P<gen_tokens>\d+)\)"),
    re.compile(r"execute_new_(?P<ctx>\d+)_cached_(?P<gen>\d+)"),
    re.compile(r"(?P<ctx>\d+) ctx reqs, ((?P<ctx_tokens>\d+) ctx tokens, )?(?P<gen>\d+) gen reqs"),
)
_MODE = re.compile(r"\bstep\[(?P<mode>[A-Z_]+) bs=(?P<bs>\d+)(.*?\btoks?=(?P<tokens>\d+))?")
_MODE_PLAIN = re.compile(r"^(?P<mode>prefill|decode)\[bs=(?P<bs>\d+)(.*?\btoks?=(?P<tokens>\d+))?")
_MODES = {"EXTEND": PREFILL, "PREFILL": PREFILL, "DECODE": DECODE, "MIXED": MIXED, "TARGET_VERIFY": DECODE}
_PLAIN = re.compile(r"(?<![a-z])(?P<mode>prefill|decode)(?![a-z])(.*?\b(bs|batch(_size)?)[=_ :]+(?P<bs>\d+))?", re.I)


def work_of(name: str) -> StepNames | None:
    """What a range of an engine says of its step; None for any other range."""
    for pattern in _COUNTED:
        if found := pattern.search(name):
            return _counted({key: int(value) for key, value in found.groupdict().items() if value is not None})
    found = _MODE.search(name) or _MODE_PLAIN.search(name)
    phase = _MODES.get(found["mode"].upper()) if found else None
    if found is None or phase is None:
        return None
    decodes = found["mode"].upper() == "DECODE"
    tokens = found["tokens"] or (found["bs"] if decodes else _UNKNOWN)
    return StepNames(phase, int(found["bs"]), int(tokens))


def _counted(number: dict[str, int]) -> StepNames | None:
    prefills, decodes = number["ctx"], number["gen"]
    if not prefills + decodes:
        return None
    phase = MIXED if prefills and decodes else PREFILL if prefills else DECODE
    told = "ctx_tokens" in number or not prefills
    tokens = number.get("ctx_tokens", 0) + number.get("gen_tokens", decodes) if told else _UNKNOWN
    return StepNames(phase, prefills + decodes, tokens)


def named_works(names: Sequence[str]) -> list[StepNames | None]:
    """For each name of a range what it says. Plain words count if both phases are named: images are decoded, too."""
    found = of_matches(work_of, (*_COUNTED, _MODE, _MODE_PLAIN), names)
    if any(found):
        return found
    plain = of_matches(_PLAIN.search, [_PLAIN], names)
    if {each["mode"].lower() for each in plain if each} != {"prefill", "decode"}:
        return found
    return [StepNames(_MODES[each["mode"].upper()], int(each["bs"] or _UNKNOWN)) if each else None for each in plain]


_CODES = range(8)
_OTHER, _DECODES, _PREFILLS, _PERHAPS_DECODES, _PERHAPS_PREFILLS, _EITHER, _CACHE, _TRAINS = _CODES
"""Kernels of attention that decode, that prefill, that may do either but are called after one, and that may do either;
those that write the cache of keys and values, and those of a training."""
# FlashAttention's split kernel runs all attention with a paged cache; FlashInfer's paged prefill kernel decodes, too.
_BY_NAME = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"bwd|backward|multi_tensor_apply|adam|sgd_|dgrad|wgrad", _TRAINS),
        (r"reshape_and_cache|concat_and_cache|store_kv_?cache|append_paged_kv", _CACHE),
        (r"splitkv|num_splits", _PERHAPS_DECODES),
        (r"Batch(Prefill|Attention)WithPaged", _PERHAPS_PREFILLS),
        (
            r"paged_attention|(Batch|Single)Decode|decode_?(mla|attention|attn)|(attention|attn|mla|mha)_?decode"
            r"|masked_multihead|mmha|\bxqa|kernel_mha|_fwd_(grouped_)?kernel_stage[12]|unified_attention_3d"
            r"|fmha\w*(gen|decode)|flash_?mla|ForGeneration",
            _DECODES,
        ),
        (
            r"flash_fwd_kernel|(Batch|Single)Prefill|prefill\w*(attention|attn)|(attention|attn|fmha)\w*(prefill|context|ctx)"
            r"|context_(attention|fmha)|extend_attention|fmha_v2|fmha_cutlassF|_fwd_kernel$",
            _PREFILLS,
        ),
        (r"FlashAttnFwd|unified_attention|fmha|flash_?att|mha_fwd|(?<![A-Za-z])attention|attn", _EITHER),
    )
)


_TELLING = [pattern for pattern, _ in _BY_NAME]


def code_of(name: str, short_name: str = "") -> int:
    """What a kernel says of the phase of its step, a place in `_CODES`."""
    return next((code for pattern, code in _BY_NAME if pattern.search(name) or pattern.search(short_name)), _OTHER)


class ServedSteps(Struct, frozen=True):
    """The phase of each step and what shows it, the requests and tokens in each, and the number of its CUDA graph; -1
    if unknown."""

    phase: IntArray
    source: IntArray
    requests: IntArray
    tokens: IntArray
    graph: IntArray

    @classmethod
    def unnamed(cls, count: int) -> ServedSteps:
        """So many steps of which nothing is known."""
        return cls(*(np.full(count, each) for each in (UNNAMED, BY_NOTHING, _UNKNOWN, _UNKNOWN, _UNKNOWN)))

    def name(self, rows: BoolArray, phase: int, source: int) -> None:
        """Name these steps, but for those that have a name."""
        rows = rows & (self.phase == UNNAMED)
        self.phase[rows], self.source[rows] = phase, source


def served_steps(
    steps: Intervals, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, strings: Strings
) -> ServedSteps | None:
    """The phases of the steps; None if the trace names none: the program is not a server, or shows nothing of it."""
    rows = np.flatnonzero(device.running)
    step = place_in(steps, device.operations.start[rows])
    rows, step = rows[step >= 0], step[step >= 0]
    found = ServedSteps.unnamed(len(steps))
    _by_ranges(found, rows, step, device, calls, ranges)
    if (found.phase == UNNAMED).any():
        _by_kernels(found, rows, step, steps, device, strings)
    if (found.phase == UNNAMED).all():
        return None
    return replace(found, graph=_graphs(rows, step, len(steps), device))


def serving_phases(found: ServedSteps, steps: Intervals, steady: IntArray, time: TimeTable) -> list[ServingPhase]:
    """The `steady` ones of the steps by phase, that with most time first; empty if all of these are unnamed."""
    named = distinct_values(found.phase[steady]).tolist()
    phases = [_phase(at, found, steps, steady, time) for at in named if named != [UNNAMED]]
    return sorted(phases, key=lambda each: (-each.total_ns, each.phase))


def _by_ranges(
    found: ServedSteps, rows: IntArray, step: IntArray, device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges
) -> None:
    """Steps whose work is mostly launched in a range that names its phase."""
    works = named_works(ranges.names)
    told = np.array([work is not None for work in works], np.bool_)
    if not told.any():
        return
    named = ranges.rows.take(told[ranges.rows.name])
    launched = device.launch[rows] >= 0
    rows, step = rows[launched], step[launched]
    launch, moment = device.launch[rows], calls.start[device.launch[rows]]
    inside = last_before(named.thread, named.start, calls.thread[launch], moment)
    inside = np.where(np.append(named.end, 0)[inside] > moment, inside, -1)
    length, count = device.operations.end[rows] - device.operations.start[rows], len(found.phase)
    most, longest = _most_of_each(step, inside, length, count)
    for at in np.flatnonzero((most >= 0) & (longest >= NAMED * np.bincount(step, length, count))).tolist():
        if (work := works[named.name[most[at]]]) is not None:
            found.phase[at], found.source[at] = work.phase, BY_NVTX
            found.requests[at], found.tokens[at] = work.requests, work.tokens


def _most_of_each(step: IntArray, value: IntArray, ns: IntArray, count: int) -> tuple[IntArray, FloatArray]:
    """For each of so many steps the value with most of its time, of equal ones the largest, -1 for none; and that time.
    Values below 0 do not count."""
    held, wide = value >= 0, int(value.max(initial=0)) + 1
    pair, at = np.unique(joint(step[held], value[held], wide), return_inverse=True)
    time, most = np.bincount(at, ns[held], len(pair)), np.full(count, -1)
    order = np.argsort(time, kind="stable")
    most[(pair // wide)[order]] = (pair % wide)[order]
    longest = np.zeros(count)
    longest[(pair // wide)[order]] = time[order]
    return most, longest


def _in_graphs(rows: IntArray, step: IntArray, count: int, device: DeviceTimeline) -> BoolArray:
    """Whether most of the time of each step is in graphs."""
    operations = device.operations
    whole = (operations.category == Category.GRAPH) & (operations.graph >= 0)
    held = whole | ((operations.graph_node > 0) & (device.launch >= 0))
    length = (operations.end - operations.start) * ~device.communication
    inside = np.bincount(step, (length * held)[rows], count)
    return inside >= IN_GRAPHS * np.maximum(np.bincount(step, length[rows], count), 1)


def _graphs(rows: IntArray, step: IntArray, count: int, device: DeviceTimeline) -> IntArray:
    """For each step the number of the graph with most of its time, -1 for none."""
    operations = device.operations
    number = np.full(len(operations.start), -1)
    whole = operations.category == Category.GRAPH
    number[whole] = operations.graph[whole]
    replays = Replays.of(device)
    number[replays.rows] = replays.graph
    number[device.communication] = -1
    return _most_of_each(step, number[rows], operations.end[rows] - operations.start[rows], count)[0]


def _by_kernels(
    found: ServedSteps,
    rows: IntArray,
    step: IntArray,
    steps: Intervals,
    device: DeviceTimeline,
    strings: Strings,
) -> None:
    """Steps by their attention kernels, else by graphs next to steps without them."""
    kernel = device.operations.category[rows] == Category.KERNEL
    code = named_kernels(device, rows[kernel], strings).told(code_of, _TELLING, _OTHER)
    if (code == _TRAINS).any() or (code == _OTHER).all():
        return
    cell = joint(code, step[kernel], len(steps))
    count = np.bincount(cell, minlength=len(_CODES) * len(steps)).reshape(len(_CODES), len(steps))
    decode, prefill = count[_DECODES], count[_PREFILLS]
    # A kernel that may do either shows its phase if other steps have none of it, and attention of the other phase.
    if ((prefill > 0) & (count[_PERHAPS_DECODES] == 0)).any():
        decode = decode + count[_PERHAPS_DECODES]
    if ((count[_DECODES] > 0) & (count[_PERHAPS_PREFILLS] == 0)).any():
        prefill = prefill + count[_PERHAPS_PREFILLS]
    if not decode.any() and not count[_CACHE].any():
        prefill = np.zeros_like(prefill)  # attention of all steps alike: a model without a cache of keys and values
    both = np.minimum(decode, prefill) >= ALIKE * np.maximum(np.maximum(decode, prefill), 1)
    found.name(both & _in_turns(code, step[kernel], np.minimum(decode, prefill)), MIXED, BY_ATTENTION)
    found.name(~both & (decode > prefill), DECODE, BY_ATTENTION)
    found.name(~both & (prefill > decode), PREFILL, BY_ATTENTION)
    attends = (count[_DECODES : _EITHER + 1].sum(axis=0) > 0) & ~both
    _by_graphs(found, _in_graphs(rows, step, len(steps), device) & ~both, attends, steps.end - steps.start)


def _in_turns(code: IntArray, step: IntArray, fewer: IntArray) -> BoolArray:
    """In which steps attention of both phases takes turns, layer by layer. If one follows the other, these are two
    steps that were not found apart. `fewer` is how many kernels each step has of the less frequent phase."""
    attends = np.isin(code, (_DECODES, _PREFILLS, _PERHAPS_DECODES, _PERHAPS_PREFILLS))
    decodes, step = np.isin(code[attends], (_DECODES, _PERHAPS_DECODES)), step[attends]
    changes = np.flatnonzero((decodes[1:] != decodes[:-1]) & (step[1:] == step[:-1])) + 1
    return np.bincount(step[changes], minlength=len(fewer)) >= fewer


def _by_graphs(found: ServedSteps, in_graphs: BoolArray, attends: BoolArray, length: IntArray) -> None:
    """Steps that nothing names, in turns: replays of graphs decode, and longer ones with attention outside of graphs
    prefill."""
    replayed, eager = in_graphs & (found.phase != PREFILL), ~in_graphs & attends & (found.phase != DECODE)
    if not (replayed.any() and eager.any()) or not take_turns(np.where(in_graphs, 1, 2)):
        return
    if median_of(length[eager]) > median_of(length[replayed]):
        found.name(replayed, DECODE, BY_GRAPHS)
        found.name(eager, PREFILL, BY_GRAPHS)


def _phase(at: int, found: ServedSteps, steps: Intervals, steady: IntArray, time: TimeTable) -> ServingPhase:
    rows = steady[found.phase[steady] == at]
    every, length = steps.end - steps.start, (steps.end - steps.start)[rows]
    idle = time.slice >= 0
    sorts = sums(time.spans[idle], time.bottleneck[idle], len(BOTTLENECK_IDS), steps[rows]).sum(axis=1)
    sources = np.bincount(found.source[rows], minlength=len(SOURCES))
    return ServingPhase(
        phase=PHASES[at],
        shown_by=SOURCES[int(sources.argmax())],
        count=len(rows),
        median_ns=median_of(length),
        total_ns=int(length.sum()),
        share=round(float(length.sum() / max(every[steady].sum(), 1)), 6),
        tokens=_median_known(found.tokens[rows]),
        idle={name: int(ns) for name, ns in zip(BOTTLENECK_IDS, sorts.tolist(), strict=True) if ns},
        batches=_batches(found.requests[rows], found.graph[rows], length),
    )


def _median_known(values: IntArray) -> int | None:
    """The median of what is known; None if most steps have none."""
    told = values[values >= 0]
    return median_of(told) if 2 * len(told) > len(values) else None


def _batches(requests: IntArray, graph: IntArray, length: IntArray) -> list[ServingBatch]:
    """Lengths by the number of requests, or else by graph, as engines have one for each size; empty for one size."""
    told = requests >= 0
    by_requests = 2 * np.count_nonzero(told) > len(told)
    key, known = (requests, told) if by_requests else (graph, graph >= 0)
    sizes, at, count = np.unique(key[known], return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return []
    often = np.sort(np.argsort(-count, kind="stable")[:MOST_BATCHES])
    return [
        ServingBatch(
            requests=int(sizes[each]) if by_requests else None,
            graph=None if by_requests else int(sizes[each]),
            count=int(count[each]),
            median_ns=median_of(length[known][at == each]),
        )
        for each in often.tolist()
    ]
