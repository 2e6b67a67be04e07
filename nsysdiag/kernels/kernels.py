"""Kernels by name: counts and times. For those with most time also the launch shape, the use of the chip, and the ncu
command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import group_durations, group_totals, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, coverage, shared_ns, stretches, union
from nsysdiag.counters.facts import KernelMetrics
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.events.rows import picked
from nsysdiag.fields import Sentence
from nsysdiag.kernels.facts import FamilyKernel, FamilyTime, KernelRow, TopKernel
from nsysdiag.kernels.kinds import (
    FAMILIES,
    KernelFamily,
    KernelKind,
    NamedTime,
    families_of,
    family_of,
    kind_of_kernel,
    kinds_of,
    kinds_of_names,
    titles_of,
)
from nsysdiag.kernels.limits import residency, shape_of
from nsysdiag.kernels.names import NamedKernels, named_kernels, normal_kernel, whole_names
from nsysdiag.record import records
from nsysdiag.typed import say

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


MOST = 5
"""Kernel names that `top_kernels` returns unless it is asked for another number."""
GRAPHS = "CUDA graphs"
"""The name of all graphs that were recorded as a whole, without their kernels."""
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
QUOTABLE = re.compile(r"[^'\x00-\x1f\x7f]+")
"""What a shell takes between single quotes as it is."""
_SHAPE = (
    *("shapes", "blocks", "threads", "registers", "shared_bytes"),
    *("blocks_per_sm", "waves", "sm_share", "resident_share", "limit"),
)


def kernel_rows(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> list[KernelRow]:
    """One row for each kernel name among the operations `inside`, largest total first. Zero-length kernels count."""
    operations = device.operations
    rows = picked((operations.category == Category.KERNEL) & inside)
    names, name = distinct(operations.name[rows])
    short_of = np.zeros(len(names), dtype=np.int64)
    short_of[name] = operations.short_name[rows]
    groups = group_durations(name * 2 + device.communication[rows], operations.end[rows] - operations.start[rows])
    named = groups.code // 2
    return records(
        KernelRow,
        name=strings.whole(names[named]),
        short_name=strings.texts(short_of[named]),
        communication=groups.code % 2 == 1,
        **groups.columns,
    )


def top_kernels(
    device: DeviceTimeline,
    parts: Intervals,
    whole_ns: int,
    shapes: LaunchShapes,
    strings: Strings,
    measured: Sequence[KernelMetrics] = (),
    most: int = MOST,
) -> list[TopKernel]:
    """The kernel names with most time in `parts`, a set of time, at most `most`, longest first; equivalent instances
    of a template are one name. Shares are of `whole_ns`. Communication is left out. Graphs that were recorded as a
    whole are one entry. `measured` are GPU metrics of kernels by name. None if no kernel has a length."""
    operations = device.operations
    inside = runs_in(device, parts) & ~device.communication
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside)
    code, names = named_kernels(device, rows, strings).normal()
    totals = group_totals(code, operations.end[rows] - operations.start[rows])
    found = residency(shapes, device.gpu)
    kernels = _whole_graphs(device, inside, parts, whole_ns)
    for each, total in zip(totals.code[:most].tolist(), totals.total[:most].tolist(), strict=True):
        if not total:
            continue
        mine = rows[code == each]
        kernel = _kernel(device, names[each], mine, strings, kernel_share(device, mine, parts, whole_ns))
        shape = shape_of(device, mine, shapes, found, kernel.short_name)
        if shape is not None:
            kernel = structs.replace(kernel, **{field: getattr(shape, field) for field in _SHAPE})
        kernels.append(_with_metrics(kernel, measured))
    return sorted(kernels, key=lambda kernel: -kernel.total_ns)[:most]


def runs_in(device: DeviceTimeline, parts: Intervals) -> BoolArray:
    """Whether each operation runs, or without a length begins, inside `parts`, a set of time."""
    operations = device.operations
    if len(parts) == 1:
        from_here, until = parts.start[0], parts.end[0]
        return (operations.start < until) & ((operations.end > from_here) | (operations.start >= from_here))
    first, found = np.append(parts.start, np.iinfo(np.int64).max), np.empty(len(operations), dtype=np.bool_)
    for part in stretches(len(found)):
        start, end = operations.start[part], operations.end[part]
        # The first of the parts that ends behind the start is the only one to look at.
        begins = first[np.searchsorted(parts.end, start, side="right")]
        found[part] = (begins <= start) | (begins < end)
    return found


def kernel_share(device: DeviceTimeline, rows: IntArray, parts: Intervals, whole_ns: int) -> float:
    """The time inside `parts`, a set of time, in which any of the operations at `rows` ran, as a share of `whole_ns`:
    each ns counts once, and what runs outside of `parts` does not count. 0 if `whole_ns` is 0."""
    spans = Intervals(device.operations.start, device.operations.end)
    return round(shared_ns(parts, spans, rows) / max(whole_ns, 1), 6)


def _whole_graphs(device: DeviceTimeline, inside: BoolArray, parts: Intervals, whole_ns: int) -> list[TopKernel]:
    """One entry for all graphs whose kernels were not recorded."""
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.GRAPH) & inside & device.running)
    total = int((operations.end[rows] - operations.start[rows]).sum())
    if not total:
        return []
    share = kernel_share(device, rows, parts, whole_ns)
    return [
        TopKernel(
            name=GRAPHS,
            short_name=GRAPHS,
            family="graphs",
            share=share,
            count=len(rows),
            total_ns=total,
            mean_ns=total // len(rows),
            ncu="",
        )
    ]


def kinds_in(device: DeviceTimeline, parts: Intervals, whole_ns: int, strings: Strings, most: int) -> list[KernelKind]:
    """What the kernels that run in `parts`, a set of time, are: at most `most` kinds, that with most time first. Shares
    are of `whole_ns`."""
    operations = device.operations
    inside = runs_in(device, parts) & ~device.communication
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside)
    found = named_kernels(device, rows, strings)
    ns = sum_of_each(found.code, operations.end[rows] - operations.start[rows], len(found.whole))
    every = zip(kinds_of_names(found), map(normal_kernel, found.whole), ns.tolist(), strict=True)
    named = list(starmap(NamedTime, every))
    kinds = []
    for each in kinds_of(named)[:most]:
        mine = np.array([each.holds(name) for name in named], dtype=np.bool_)
        kinds.append(structs.replace(each, share=kernel_share(device, rows[mine[found.code]], parts, whole_ns)))
    return kinds


def _kernel(device: DeviceTimeline, name: str, rows: IntArray, strings: Strings, share: float) -> TopKernel:
    total = int((device.operations.end[rows] - device.operations.start[rows]).sum())
    middle = int(rows[len(rows) // 2])
    short = strings.text(int(device.operations.short_name[middle]))
    family = KernelFamily(int(families_of(device, rows[:1], strings)[0]))
    skip = launches_before(device, middle)
    return TopKernel(
        name=name,
        short_name=short,
        family=family.label,
        kind=kind_of_kernel(family, strings.texts(whole_names(device, rows[:1]))[0]),
        share=share,
        count=len(rows),
        total_ns=total,
        mean_ns=total // len(rows),
        ncu=ncu_command(short, skip),
        ncu_skip=skip,
    )


def launches_before(device: DeviceTimeline, row: int) -> int:
    """How many kernels of the same function the process ran on this device before the one at `row`."""
    operations = device.operations
    same = (operations.category == Category.KERNEL) & (operations.short_name == operations.short_name[row])
    same &= (operations.process == operations.process[row]) & (operations.start < operations.start[row])
    return int(np.count_nonzero(same))


def ncu_command(short_name: str, skip: int) -> Sentence:
    """The Nsight Compute command that profiles one launch of a function after `skip` others. By default, ncu compares
    only the name of the function, without template arguments and parameters (--kernel-name-base function). A name that
    a shell would change is left out."""
    name: Sentence = typed.kernel(short_name)
    if not PLAIN_NAME.fullmatch(short_name):
        name = say("'{}'", name) if QUOTABLE.fullmatch(short_name) else ""
    chosen = say("--kernel-name {} ", name) if name else ""
    return say("ncu --set full {}--launch-skip {} --launch-count 1 PROGRAM", chosen, skip)


def _with_metrics(kernel: TopKernel, measured: Sequence[KernelMetrics]) -> TopKernel:
    """The same with GPU metrics measured while it ran, if counters were sampled; for several instances of a template
    those of the one with most time."""
    rows = [each for each in measured if normal_kernel(each.name) == kernel.name]
    if not rows:
        return kernel
    row = max(rows, key=lambda each: (each.gpu_ns, each.name))
    memory = [each for each in (row.means.get("dram_read"), row.means.get("dram_write")) if each is not None]
    return structs.replace(
        kernel,
        sm_active=row.means.get("sm_active"),
        tensor_active=row.means.get("tensor_active"),
        dram_active=min(sum(memory), 1.0) if memory else None,
        measured_whole=row.whole,
    )


# The time of kernels by family: matrix products by precision and path, attention, norms, elementwise and so on.

MOST_KERNELS = 3
"""Of a family that are named."""


class FamilyRows(Struct, frozen=True):
    """The `rows` of kernels and whole graphs, the codes of their names and families, and what the codes stand for."""

    rows: IntArray
    name: IntArray
    names: list[str]
    family: IntArray
    titles: list[str]

    @classmethod
    def of(cls, device: DeviceTimeline, parts: Intervals, strings: Strings) -> FamilyRows:
        """Those that run in `parts`, a set of time."""
        rows = _kernels_and_graphs(device, parts)
        return cls(rows, *_named(device, rows, strings))

    def of_family(self, title: str) -> IntArray:
        """The rows of one family."""
        return self.rows[self.family == self.titles.index(title)]


def family_times(
    device: DeviceTimeline, every: FamilyRows, parts: Intervals, whole_ns: int, steps: Intervals
) -> list[FamilyTime]:
    """The families of the kernels that run in `parts`, a set of time, that with most time first. Shares are of
    `whole_ns`. `steps` are disjoint; those that are not whole in `parts` do not count."""
    operations, rows, name, family = device.operations, every.rows, every.name, every.family
    ns = operations.end[rows] - operations.start[rows]
    whole = steps[coverage(parts, steps) == steps.end - steps.start]
    in_step = contains(union(whole), operations.start[rows])
    found = []
    for code in distinct_values(family).tolist():
        mine = np.flatnonzero(family == code)
        by_name, stepped = group_totals(name[mine], ns[mine]), mine[in_step[mine]]
        found.append(
            FamilyTime(
                family=every.titles[code],
                count=len(mine),
                total_ns=int(ns[mine].sum()),
                share=kernel_share(device, rows[mine], parts, whole_ns),
                names=len(by_name.code),
                step_count=round(len(stepped) / len(whole), 3) if len(whole) else None,
                step_ns=int(ns[stepped].sum()) // len(whole) if len(whole) else None,
                kernels=records(
                    FamilyKernel,
                    name=[every.names[each] for each in by_name.code[:MOST_KERNELS].tolist()],
                    count=by_name.count[:MOST_KERNELS],
                    total_ns=by_name.total[:MOST_KERNELS],
                ),
            )
        )
    return sorted(found, key=lambda each: (-each.total_ns, each.family))


def _kernels_and_graphs(device: DeviceTimeline, parts: Intervals) -> IntArray:
    category = device.operations.category
    graph = (category == Category.GRAPH) & device.running
    return np.flatnonzero(((category == Category.KERNEL) | graph) & runs_in(device, parts))


def _named(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str], IntArray, list[str]]:
    """The codes of the normal name and of the family of each operation at `rows`, and what the codes stand for."""
    graph, communicates = device.operations.category[rows] == Category.GRAPH, device.communication[rows]
    whole = np.where(graph, -1, whole_names(device, rows).astype(np.int64))
    keys, key = distinct(2 * whole + communicates)
    short = np.zeros(len(keys), dtype=np.int64)
    short[key] = device.operations.short_name[rows]
    found = NamedKernels(key, strings.texts(np.maximum(keys // 2, 0)), strings.texts(short))
    family = np.where(keys % 2, int(KernelFamily.COMMUNICATION), found.each(family_of, FAMILIES))
    names: dict[str, int] = {}
    titles: dict[str, int] = {}
    of_name, of_family = [], []
    for at, text, title in zip(keys.tolist(), found.whole, titles_of(family, found.whole), strict=True):
        of_name.append(names.setdefault(GRAPHS if at < 0 else normal_kernel(text), len(names)))
        of_family.append(titles.setdefault(GRAPHS if at < 0 else title, len(titles)))
    coded = [np.array(each, dtype=np.int32).take(key) if len(key) else key for each in (of_name, of_family)]
    return coded[0], list(names), coded[1], list(titles)
