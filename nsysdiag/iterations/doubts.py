"""What the work of repeats shows: several steps in each, a longer loop around them, or no loop at all.

Steps take turns with kernels of other names, as those of a solver with two buffers: a repeat may be several.

```
launches    |graph A   |graph B   |graph A   |graph B   |
found       |                     |                     |       two steps, or four
```
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import median_of
from nsysdiag.arrays.intervals import BoolArray, IntArray, nearest_before
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, combinations
from nsysdiag.iterations.begins import REGULAR, with_the_first
from nsysdiag.iterations.begins import Sequence as Operations
from nsysdiag.iterations.counts import MOST_TOKENS, RepeatCounts
from nsysdiag.iterations.happened import Happened, NameKinds
from nsysdiag.iterations.loop import NVTX, REPEAT, STEP, Inner, Loop, loop_of, through
from nsysdiag.iterations.outer import LONGEST_EVEN, Special, judged
from nsysdiag.trace.enums import CopyKind

MOST_PARTS = 4
"""Parts of a repeat, alike, that may be the steps: two to so many are tried. Of six or eight parts, the halves are
alike too; a repeat of five or seven is not doubted."""
AS_LONG = 1.25
"""Parts are alike if none takes so many times as long as another."""
_KERNEL, _LAUNCH = -1, -2
"""Codes of any kernel, and of any launch of a graph: below 0, as codes of names begin with 0."""


def perhaps_several(loop: Loop, happened: Happened) -> Loop:
    """The loop, in doubt if each repeat has several parts alike, but for the names of their kernels. Each part
    launches a graph, or reads something back: kernels in a row are not steps without either."""
    if loop.source == NVTX or not loop.certain or loop.inner is not None:
        return loop
    time, downloads = happened.start, np.flatnonzero(happened.names.download)
    borders = np.searchsorted(time, loop.starts)
    size = np.diff(borders)
    usual = int(np.median(size)) if len(size) else 0
    same = np.flatnonzero(size == usual)
    if not usual or len(same) < REGULAR * len(size):
        return loop
    first = borders[same]
    kinds = _kinds(first[len(first) // 2] + np.arange(usual), happened)
    for parts in (parts for parts in range(2, MOST_PARTS + 1) if usual % parts == 0):
        each = kinds.reshape(parts, -1)
        if (each != each[0]).any() or not np.isin(each[0], [_LAUNCH, *downloads]).any():
            continue
        begins = time[first[:, None] + each.shape[1] * np.arange(parts)]
        length = np.median(np.diff(np.column_stack((begins, loop.starts[same + 1]))), axis=0)
        if length.max() <= AS_LONG * length.min():
            return replace(loop, inner=Inner(loop.called, parts, int(np.median(length))), certain=False)
    return loop


def _kinds(rows: IntArray, happened: Happened) -> IntArray:
    """What operations are, whatever their names: kernels, launches of graphs, or copies by their direction."""
    code, replays, operations = happened.code[rows], happened.replays, happened.operations[rows]
    graph = happened.device.operations.category[operations] == Category.GRAPH
    begins = np.isin(operations, replays.rows[replays.first]) | graph
    return np.where(begins, _LAUNCH, np.where(happened.names.kernel[code], _KERNEL, code))


# What the trace shows of the device alone: repeats do the same work, or what they do comes again by chance. What comes
# in some of them only, from time to time, may be the end of a longer step.
#
# ```
# repeats     |a b c|a b c|a b c|a b c C|a b c|a b c|a b c|a b c|a b c C|     C is a `c` of a larger launch
# ```

SAME, IN_MOST = 0.8, 0.8
"""Repeats are alike if so many of their operations are the usual ones, and if so many repeats are that."""
FEWEST_REGULAR, FEW_REPEATS = 3, 10
"""Kernels that come equally often in most repeats: so many show a loop, whatever else varies; not of few repeats."""
FEWEST_OUTER, LEAST_EACH = 3, 4
"""So many times something comes at every fourth repeat or less often."""
FEWEST_SKIPS = 2
"""So many repeats hold several steps: a single one may be where the loop was left. Of runs of equal length, one of two
may be a step and one that stopped early; longer ones are an evaluation."""
SEVERAL, LEAST_BEGUN, MOST_OF_THEM = 2, 0.2, 0.5
"""Threads, or launches of graphs that left nothing else; of the repeats, those that each begins; and those with work of
several. Threads of a pool that take turns launch whole repeats."""
ATTENDS, A_NUMBER = 2, 64
"""So often does a layer attend, to its own sequence and to another one; and bytes of a few numbers, such as a length.
Models have more layers, and what a step takes for all of them is larger; more would doubt steps of small models."""
MOST_CELLS = 8_000_000
"""Counts of operations by repeat: of more, those of the most frequent operations are looked at."""


def as_shown(loop: Loop, happened: Happened, *, evaluates: bool) -> Loop:
    """The loop, in doubt if its repeats may be one by chance, or parts of longer steps. Those from one wait of the
    host to the next have been judged by these waits. `evaluates`: some steps are longer by an evaluation; repeats that
    take input or update weights are steps then."""
    if loop.source == NVTX or loop.called.label or loop.kind != STEP or not loop.certain or len(loop) < 2:
        return loop
    found = RepeatCounts.of(happened, loop.starts, int(loop.ends[-1]), host=True)
    if not _shown(found) or (float(_same(found).mean()) < IN_MOST and _of_several_threads(loop, happened)):
        return replace(loop, certain=False)
    if _perhaps_a_layer(found, happened):
        return replace(loop, certain=False)
    if evaluates and found.usually(found.names.upload | found.names.update):
        return loop
    if (shorter := _of_each_answer(loop, found, happened)) is not None:
        return shorter.in_doubt(loop)
    longer = _longer(loop, found, happened)
    return loop if longer is None else loop.in_doubt(longer)


def perhaps_launches(loop: Loop, hidden: IntArray) -> Loop:
    """The loop, in doubt if its repeats hold several launches of graphs of which the trace has nothing else: each may
    be a step. `hidden` are their times in ns, ascending."""
    times = np.diff(np.searchsorted(hidden, loop.starts))
    several = len(times) > 0 and float(np.median(times)) >= SEVERAL
    named = loop.source == NVTX or loop.called.label or loop.kind != STEP
    return replace(loop, certain=False) if several and not named else loop


def _of_several_threads(loop: Loop, happened: Happened) -> bool:
    """Whether several threads begin repeats, and launch work in most of them: repeats hold parts of several steps then.

    ```
    thread 1    |a a a u   |a a a u    |a a a u       each third `a`: a part of one batch, and a part of the other
    thread 2      |a a a u    |a a a u   |a a a u
    found       |     |    |    |    |    |    |
    ```
    """
    calls, launch = happened.api.rows, happened.device.launch[happened.operations]
    known = launch >= 0
    if len(calls.threads) < SEVERAL or not known.any():
        return False
    thread, time = calls.thread_place[launch[known]], happened.start[known]
    begun = np.bincount(thread[np.minimum(np.searchsorted(time, loop.starts), len(time) - 1)])
    if np.count_nonzero(begun >= LEAST_BEGUN * len(loop)) < SEVERAL:
        return False
    pairs = distinct_values(joint(nearest_before(loop.starts, time), thread, len(calls.threads)))
    threads = np.bincount(pairs[pairs >= 0] // len(calls.threads), minlength=len(loop))
    return float((threads >= SEVERAL).mean()) >= MOST_OF_THEM


def _shown(found: RepeatCounts) -> bool:
    """Whether repeats exchange data with the host, or update weights, or do the same, several operations: else they may
    be one by chance."""
    whole = found.size - (found.size > FEWEST_OUTER)  # the last one may be cut
    alike = found.with_usual(whole) / whole >= IN_MOST
    names, often = found.names, (found.usual > 0) & alike
    if (often & (names.exchanged | names.update)).any():
        return True
    if found.size >= FEW_REPEATS and np.count_nonzero(often & names.kernel) >= FEWEST_REGULAR:
        return True
    several = float(np.median(found.operations)) > 1
    return several and float(_same(found)[:whole].mean()) >= IN_MOST


def _perhaps_a_layer(found: RepeatCounts, happened: Happened) -> bool:
    """Whether each repeat attends as often as one layer does, and gets no more of the host than a number: a step takes
    its input, gives a result or updates weights.

    ```
    repeats     |8 B a n m|8 B a n m|8 B a n m|8 B a n m|      layers of a slice that upload a length each
    ```
    """
    names, operations = found.names, happened.device.operations
    attends = found.usually(names.kernel & names.attention)
    if not 0 < attends <= ATTENDS or found.usually(names.download | names.update) or not found.usually(names.upload):
        return False
    uploads = operations.size[happened.operations[happened.names.upload[happened.code]]]
    return float(np.median(uploads)) <= A_NUMBER


def _same(found: RepeatCounts) -> BoolArray:
    """Which repeats have mostly the usual operations, as often."""
    either = found.operations + found.usually(~found.names.host) - found.as_usual
    return found.as_usual >= SAME * either


# Steps that stop early, as the host finds in what it reads back, or of several kinds: a loop of what some leave out has
# fewer repeats.
#
# ```
# device      |u f d b a |u f d |u f d b a |u f d b a |u f d |u f d |u f d b a |       b and a are left out
# found       |          |                 |          |                        |       by a: in doubt
# device      |u f d u j s d |u f d u j s d |u f s d |u f s d |u f d u j s d |         some have no second u, nor j
# found            |              |                                |                   by j: in doubt
# ```


def _of_each_answer(loop: Loop, found: RepeatCounts, happened: Happened) -> Loop | None:
    """The loop of what comes again as often as the host waits or reads back. None unless some repeats have several such
    answers, at no regular distance, and take more input. Runs of equal length are an evaluation. The last repeat may be
    cut."""
    names, varies = found.names, (found.least > 0) & (found.least < found.most)
    answers = found.counts(np.flatnonzero((names.download | names.wait) & varies))[:, :-1]
    if not len(answers) or not names.upload.any():
        return None
    times = answers[answers.sum(axis=1).argmin()]
    at = np.flatnonzero(times > times.min())
    if len(at) < FEWEST_SKIPS or _evaluates(at, times):
        return None
    if (again := _as_often(found, times)) is None:
        return None
    kernel, each = again
    starts = happened.start[happened.code == names.code[kernel]]
    return through(loop.called, starts[starts >= loop.starts[0]][::each], happened.last)


def _as_often(found: RepeatCounts, times: IntArray) -> tuple[int, int] | None:
    """The place of a kernel that comes as often as answers, or once more for so many more of these; and how often in a
    step. Repeats with more `times` of answers must take more input."""
    more, takes = times > times.min(), found.total(found.names.upload)[:-1]
    names = np.flatnonzero(found.names.kernel & (found.least > 0))
    count = found.counts(names)[:, :-1]
    each = count[:, times.argmin()] // times.min()
    if takes[more].min() > takes[~more].max():
        alike = np.flatnonzero((count == each[:, None] * times).all(axis=1))
        if len(alike):
            return int(names[alike[0]]), int(each[alike[0]])
    rows = zip(names.tolist(), count, strict=True)
    once = (name for name, row in rows if _once_more(row, times) and _takes_more(row, takes))
    return next(((name, int(found.least[name])) for name in once), None)


def _once_more(count: IntArray, times: IntArray) -> bool:
    """Whether something comes as often as in the fewest, and again for each so many more `times` of answers."""
    again, rest = np.divmod(count - count.min(), count.min())
    more = times - times.min()
    each = int(more.max()) // max(int(again.max()), 1)
    return not rest.any() and each > 0 and bool((more == each * again).all())


def _takes_more(count: IntArray, takes: IntArray) -> bool:
    """Whether repeats with more of something take as much input more as any step does at least, for each; and so much
    more than the others in all. How much a step takes may vary."""
    again = count // count.min() - 1
    more, usual = takes - takes.min(), takes[again == 0].mean()
    return bool((more >= again).all()) and bool(takes[again > 0].sum() >= (usual + again[again > 0]).sum())


def _evaluates(at: IntArray, times: IntArray) -> bool:
    """Whether the repeats `at` these places come at one distance between more others, or have equally many answers,
    more than twice as many as others. Two places alone have one distance by chance."""
    distance = np.diff(at)
    rare = len(distance) > 1 and 2 * len(at) < len(times)
    regular = rare and float((distance == np.median(distance)).mean()) >= REGULAR
    return regular or bool(times[at].min() == times[at].max() > FEWEST_SKIPS * times.min())


def _longer(loop: Loop, found: RepeatCounts, happened: Happened) -> Loop | None:
    """The loop from behind one repeat with more work to the next such, if the trace does not show that these repeats
    are the steps."""
    rarer = (special for special in _rarer(loop, found, happened) if judged(special, found) != (False, True))
    special = min(rarer, key=lambda each: (not each.exact, len(each.at)), default=None)
    if special is None:
        return None
    starts = np.append(loop.starts[:1], loop.starts[special.at + 1])
    return loop_of(loop.called, starts, np.zeros(len(starts) - 1, np.bool_), None, int(loop.ends[-1]))


def _rarer(loop: Loop, found: RepeatCounts, happened: Happened) -> list[Special]:
    """What comes more often than usual in some repeats, all over the time of the loop: operations of one name and one
    size of the launch; and any others if there are fewer operations."""
    usual = np.zeros(len(happened.names), np.int64)
    usual[found.names.code] = found.usual
    device, place = happened.device, nearest_before(loop.starts, happened.start)
    rows = np.flatnonzero((place >= 0) & (place < len(loop) - 1) & ~loop.open[place])
    code, shape = happened.code[rows], device.operations.shape[happened.operations[rows]]
    of_key = RowsOf(combinations(code, shape)[0])
    streams = len(distinct_values(device.stream_code[happened.operations[rows]]))

    def special(mine: IntArray, sign: int, code: int) -> Special | None:
        count = sign * np.bincount(place[rows[mine]], minlength=len(loop) - 1)
        names = happened.names.take(np.array([code]))
        return _at_times(_more_than_usual(count, shifts=streams > 1), len(count), names, usual[[code]])

    most = min(MOST_TOKENS, MOST_CELLS // len(loop))
    longest = sorted(of_key.values(), key=lambda each: -len(of_key[each]))[:most]
    every = [special(of_key[key], 1, int(code[of_key[key][0]])) for key in longest]
    return [each for each in (special(np.arange(len(rows)), -1, -1), *every) if each is not None]


def _more_than_usual(count: IntArray, *, shifts: bool) -> IntArray:
    """The first of each run of repeats that have more of something than usual. Of several streams, a repeat next to
    one that lacks it has not: operations `shifts` a little, and begin earlier or later."""
    more = count - median_of(count)
    lack = np.minimum(more, 0) if shifts else np.zeros_like(more)
    extra: BoolArray = more + np.append(0, lack[:-1]) + np.append(lack[1:], 0) > 0
    return np.flatnonzero(extra & ~np.append(False, extra[:-1]))


def _at_times(at: IntArray, size: int, names: NameKinds, usually: IntArray) -> Special | None:
    """None if they are few, or often, or not all over the time."""
    if len(at) < FEWEST_OUTER or LEAST_EACH * len(at) > size:
        return None
    distance = np.diff(at)
    each = int(np.median(distance))
    longest = LONGEST_EVEN * each
    if max(int(at[0]), int(distance.max()), size - 1 - int(at[-1])) > longest:
        return None
    regular = float((distance == each).mean()) >= REGULAR
    return Special(at, each, regular, names, np.ones(1, np.int64), usually)


# Repeats that are not steps: layers of one pass, and what comes again by chance.

# Repeats that are the layers of one pass, or may be: nothing in them shows that the program's loop closes.
#
# ```
# a loop       |copy a b c      |copy a b c      |copy a b c      |      each repeat takes input, waits or updates
# a pass       |copy|a b c|a b c|a b c|a b c|a b c|a b c|head|copy|      what repeats is of the device alone
# ```
#
# A solver that checks nothing looks like the second: a trace does not tell them apart, and none of both is assumed.

FEW, FEWEST_SIZES = 20, 3
"""Fewer repeats are few. The stages of a network have so many sizes of launches."""
MOST_EXCHANGES = 4
"""A pass takes its input once and gives its result once, each in a few copies."""
MOST_LAYERS = 200
"""The deepest models have some 120 layers in a pass; a solver takes thousands of steps."""
FEWEST_OTHERS = 4
"""Kernels in a repeat, of which none comes as often in most others."""
FEWEST_KERNELS, FEWEST_LAYERS = 2, 4
"""A layer has several kernels. So many repeats of several kernels in one are its layers; fewer may be a layer's own."""
OFTEN = 0.8
"""Of the repeats: what comes in so many of them belongs to the loop."""
CLEARED = 1 << 20
"""Bytes that are set: gradients are as large as their weights, the counters of a split product far smaller."""
LEAST_PAUSE, PAUSES = 0.1, 3
"""Of the length of a repeat, and times the next longer one: idle time at one place that is longer is the host's own
work of each step. A host that is slower than the device leaves it idle before each kernel."""
ALIKE = 0.5
"""Of the repeats have equally many operations, so that their places can be compared."""

_TOUCHES = re.compile(r"Synchronize|Memcpy(?!\w*Peer)")
_ATTENTION = re.compile(r"flash|fmha|attention|attn|sdpa|softmax", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|gemv|nvjet|matmul|cutlass|triton_(tem|mm)", re.IGNORECASE)
_NORM = re.compile(r"(layer|group|rms)_?norm|RowwiseMoments|^ln_", re.IGNORECASE)


def parts_of_one_pass(loop: Loop, happened: Happened) -> bool:
    """Whether a few repeats begin with launches of several sizes, each size in a row, and have no copies from and to
    the host: the stages of a network, not its passes."""
    if loop.called.range or len(loop) >= FEW:
        return False
    operations = happened.device.operations
    shape = operations.shape[np.searchsorted(operations.start, loop.starts)]
    sizes = len(distinct_values(shape))
    if sizes < FEWEST_SIZES or np.count_nonzero(np.diff(shape)) >= sizes:
        return False
    found = RepeatCounts.of(happened, loop.starts)
    return not found.usually(found.names.exchanged)


def by_chance(loop: Loop, happened: Happened) -> bool:
    """Whether repeats have nothing in common but the kernel that they begin with, though each has many others: one of
    many names may well come at about the same distance."""
    if loop.called.range:
        return False
    found = RepeatCounts.of(happened, loop.starts)
    usual = np.maximum(found.medians(np.arange(found.size - 1)), 1)
    alike = found.repeats_with(found.whole & (found.times == usual[found.name]))
    common = found.names.kernel & (alike / (found.size - 1) >= OFTEN)
    others = found.total(found.names.kernel & ~common)[:-1]
    return int(common.sum()) < FEWEST_KERNELS and float(np.median(others)) >= FEWEST_OTHERS


def perhaps_layers(loop: Loop, happened: Happened) -> Loop:
    """The loop as repeats that may be layers of one pass, if they touch nothing of the host and update nothing."""
    if loop.called.range or loop.kind != STEP or not loop.certain or len(loop) >= MOST_LAYERS:
        return loop
    device = happened.device
    if np.count_nonzero(_with_host(device) & (_place(loop, device.operations.start) >= 0)) > MOST_EXCHANGES:
        return loop
    found = RepeatCounts.of(happened, loop.starts, int(loop.ends[-1]))
    names, count = found.names, found.usually(found.names.kernel)
    kernels = names.anchor[names.kernel & (found.usual > 0)].tolist()
    parts = 0 if loop.inner is None else loop.inner.per_iteration
    if parts >= FEWEST_LAYERS and count >= parts * FEWEST_KERNELS:
        return loop
    if len(kernels) < FEWEST_KERNELS or closes(loop, happened, found):
        return loop
    model = _of_a_model([happened.strings.text(each) for each in kernels])
    made = replace(with_the_first(loop, happened), kind=REPEAT, certain=False, kernels=count, model=model)
    return replace(made, layers=(1,) * layers) if (layers := _layers_in(loop, happened)) > 1 else made


def closes(loop: Loop, happened: Happened, found: RepeatCounts) -> bool:
    """Whether most repeats exchange data with the host, wait, update something, launch all that the program captured,
    or leave the device idle at one place: the loop of the program closes in each."""
    device = happened.device
    return (
        exchanges(found)
        or _clears(loop, device)
        or _replays(loop, device)
        or _calls(loop, happened)
        or _pauses(loop, happened)
    )


def exchanges(found: RepeatCounts) -> bool:
    """Whether most repeats exchange data with the host, wait, or update something."""
    return found.usually(found.names.exchanged | found.names.update) > 0


def _layers_in(loop: Loop, happened: Happened) -> int:
    """How many layers of a model are in each repeat: as many as attend, with other kernels between. 0 if not known.

    ```
    repeats     |a n m q A n m q|a n m q A n m q|      two kinds of attention in turn: two layers in each
    ```
    """
    found = Operations.of(loop, happened) if happened.names.attention.any() else None
    return 0 if found is None else len(found.attends(happened))


def _of_a_model(kernels: list[str]) -> bool:
    """Whether these are the kernels of a transformer's layer."""
    attention, product, norm = (any(map(each.search, kernels)) for each in (_ATTENTION, _PRODUCT, _NORM))
    return attention or (product and norm)


def _with_host(device: DeviceTimeline) -> BoolArray:
    """Which operations are copies from or to the host."""
    return np.isin(device.operations.copy_kind, (CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST))


def _in_most(loop: Loop, place: IntArray) -> bool:
    """Whether most repeats are among the places in the loop."""
    within = place[(place >= 0) & (place < len(loop))]
    return len(distinct_values(within)) >= OFTEN * len(loop)


def _place(loop: Loop, start: IntArray) -> IntArray:
    """In which repeat each time is."""
    place = np.searchsorted(loop.starts, start, side="right") - 1
    return np.where(start < loop.ends[-1], place, -1)


def _clears(loop: Loop, device: DeviceTimeline) -> bool:
    """Whether much memory is set in most repeats, as gradients are."""
    operations = device.operations
    return _in_most(
        loop, _place(loop, operations.start[(operations.category == Category.MEMSET) & (operations.size >= CLEARED)])
    )


def _replays(loop: Loop, device: DeviceTimeline) -> bool:
    """Whether all kernels are in graphs, launched in each repeat: what the program captured is its step."""
    operations = device.operations
    category, place = operations.category, _place(loop, operations.start)
    work = (place >= 0) & device.running & ((category == Category.KERNEL) | (category == Category.GRAPH))
    in_graph = work & ((category == Category.GRAPH) | (operations.graph_node >= 0))
    if np.count_nonzero(in_graph) < np.count_nonzero(work):
        return False
    _, first = np.unique(operations.correlation[in_graph], return_index=True)
    return _in_most(loop, place[in_graph][first])


def _calls(loop: Loop, happened: Happened) -> bool:
    """Whether the launching threads copy from or to the host in most repeats, for this device or another, or wait. Or
    they record an event that no stream waits for, as a timer does. Copies may run long before the repeat that needs
    them."""
    device, calls, names = happened.device, happened.api.rows, happened.api.names
    issued = device.launch[np.searchsorted(device.operations.start, loop.starts)]
    if not len(calls) or (issued < 0).any():
        return False
    launched = device.launch[device.launch >= 0]
    mine = np.isin(calls.thread, distinct_values(calls.thread[issued]))
    mine[launched] = False
    mine &= ~np.isin(calls.correlation, calls.correlation[launched])  # the driver's rows of these launches
    starts = np.maximum.accumulate(calls.start[issued])

    def in_most(times: IntArray) -> bool:
        return _in_most(loop, np.searchsorted(starts, times, side="right") - 1)

    def often(wanted: Sequence[bool]) -> bool:
        return in_most(calls.start[mine & np.array(wanted, np.bool_)[calls.name]])

    if in_most(calls.start[device.launch[_with_host(device) & (device.launch >= 0)]]):
        return True
    if often([bool(_TOUCHES.search(name)) for name in names]):
        return True
    return often(["EventRecord" in name for name in names]) and not often(["WaitEvent" in name for name in names])


def _pauses(loop: Loop, happened: Happened) -> bool:
    """Whether a device is idle at one place of each repeat for long, and hardly at others."""
    start, end = happened.start, happened.end
    borders = np.searchsorted(start, loop.starts)
    size = np.diff(borders)
    usual = int(np.median(size))
    same: BoolArray = size == usual
    if usual < FEWEST_KERNELS or np.count_nonzero(same) < ALIKE * len(size):
        return False
    until = np.maximum.accumulate(end)
    rows = borders[:-1][same][:, None] + 1 + np.arange(usual)
    idle = np.sort(np.median(np.maximum(start[rows] - until[rows - 1], 0), axis=0))
    length = float(np.median(np.diff(loop.starts)))
    return bool(idle[-1] >= LEAST_PAUSE * length and idle[-1] >= PAUSES * idle[-2])
