"""The time of kernels by family: matrix products by precision and path, attention, norms, elementwise and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import group_totals
from nsysdiag.arrays.intervals import IntArray, Intervals, contains, coverage, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.kernels.facts import FamilyKernel, FamilyTime
from nsysdiag.kernels.kernels import GRAPHS, kernel_share, runs_in
from nsysdiag.kernels.kinds import KernelFamily, family_of, family_title
from nsysdiag.kernels.names import normal_kernel, whole_names

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings

MOST_KERNELS = 3
"""Of a family that are named."""


def family_times(
    device: DeviceTimeline, parts: Intervals, whole_ns: int, steps: Intervals, strings: Strings
) -> list[FamilyTime]:
    """The families of the kernels that run in `parts`, a set of time, that with most time first. Shares are of
    `whole_ns`. `steps` are disjoint; those that are not whole in `parts` do not count."""
    operations = device.operations
    kernel, graph = (operations.category == each for each in (Category.KERNEL, Category.GRAPH))
    rows = np.flatnonzero((kernel | (graph & device.running)) & runs_in(device, parts))
    name, names, family, titles = _named(device, rows, strings)
    ns = operations.end[rows] - operations.start[rows]
    whole = steps[coverage(parts, steps) == steps.end - steps.start]
    in_step = contains(union(whole), operations.start[rows])
    found = []
    for code in np.unique(family).tolist():
        mine = np.flatnonzero(family == code)
        by_name, stepped = group_totals(name[mine], ns[mine]), mine[in_step[mine]]
        longest = zip(
            *(each[:MOST_KERNELS].tolist() for each in (by_name.code, by_name.count, by_name.total)), strict=True
        )
        found.append(
            FamilyTime(
                family=titles[code],
                count=len(mine),
                total_ns=int(ns[mine].sum()),
                share=kernel_share(device, rows[mine], parts, whole_ns),
                names=len(by_name.code),
                step_count=round(len(stepped) / len(whole), 3) if len(whole) else None,
                step_ns=int(ns[stepped].sum()) // len(whole) if len(whole) else None,
                kernels=[FamilyKernel(name=names[at], count=count, total_ns=total) for at, count, total in longest],
            )
        )
    return sorted(found, key=lambda each: (-each.total_ns, each.family))


def _named(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str], IntArray, list[str]]:
    """The codes of the normal name and of the family of each operation at `rows`, and what the codes stand for."""
    graph, communicates = device.operations.category[rows] == Category.GRAPH, device.communication[rows]
    whole = np.where(graph, -1, whole_names(device, rows).astype(np.int64))
    keys, key = distinct(2 * whole + communicates)
    short = np.zeros(len(keys), dtype=np.int64)
    short[key] = device.operations.short_name[rows]
    texts = strings.texts(np.maximum(keys // 2, 0))
    names: dict[str, int] = {}
    titles: dict[str, int] = {}
    of_name, of_family = [], []
    for at, text, short_text in zip(keys.tolist(), texts, strings.texts(short), strict=True):
        kind = KernelFamily.COMMUNICATION if at % 2 else family_of(text, short_text)
        title = GRAPHS if at < 0 else family_title(kind, text)
        of_name.append(names.setdefault(GRAPHS if at < 0 else normal_kernel(text), len(names)))
        of_family.append(titles.setdefault(title, len(titles)))
    coded = [np.array(each, dtype=np.int64)[key] if len(key) else key for each in (of_name, of_family)]
    return coded[0], list(names), coded[1], list(titles)
