"""How much work a step has before and after: kernels, launches, bytes copied, threads of the same kernels. A step with
more work takes longer, and nothing has become slower."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import FloatArray
from nsysdiag.causes.evidence import READ_BACK_BYTES
from nsysdiag.comparison import facts
from nsysdiag.comparison.sides import COMPUTE, COPIED, Capture, column, mean_count, total
from nsysdiag.comparison.significance import LEAST_CHANGE
from nsysdiag.comparison.units import DeviceSides, weighted_median
from nsysdiag.kernels.kinds import BOUND_BY_MEMORY, KernelFamily, family_of
from nsysdiag.units import format_bytes

SAID = {facts.THREADS: "threads of the same kernels"}
LEAST = 0.1
"""The change from which a step has different work. Smaller batches at the end of an epoch, or kernels chosen by size,
change less; another batch size, sequence length or number of layers changes more."""
MOST_OF_IT = 0.5
"""Of the time in kernels of a side: kernels that run as often on both sides must take so much of it. If smaller, a step
with fewer layers passes for one whose kernels were fused."""
FEWEST_NAMES, ALIKE, NEARLY_ALL = 3, 0.2, 0.8
"""The work has another size if the threads of nearly all shared kernels, by time, changed by about the same factor. One
kernel whose threads changed may be tuned: the same work in another grid."""


def work_changes(sides: DeviceSides) -> list[facts.WorkChange]:
    """The work of a step, or of one run, on both sides. Other units are made by the work in them, unless one side does
    more than that. Kernels are left out if graphs were recorded as wholes, bytes if unknown of each step."""
    if sides.unit.kind != facts.ITERATIONS and not sides.unit.same_work:
        return _added(sides)
    both = (sides.before, sides.after)
    found = []
    if not any(total(side, "ops.graph") for side in both) and any(total(side, "ops.kernel") for side in both):
        row = _change(facts.KERNELS, _median(sides.before, "ops.kernel"), _median(sides.after, "ops.kernel"))
        found.append(replace(row, differs=row.differs and not _fused(sides)))
    calls = [mean_count(side, [each.device.launch.calls for each in side]) for side in both]
    if any(calls):
        found.append(
            facts.WorkChange(id=facts.LAUNCHES, before=round(calls[0], 3), after=round(calls[1], 3), differs=False)
        )
    found += [row for row in (_copied(sides), _threads(sides)) if row is not None]
    return found


def _added(sides: DeviceSides) -> list[facts.WorkChange]:
    """The kernels of both sides if one has all that the other has, in as much time, and more: not the same work."""
    if sides.unit.part_of_step:
        return []
    runs = [_runs_of(side) for side in (sides.before, sides.after)]
    row = _change(facts.KERNELS, *(sum(float(count) for count, _ns in side.values()) for side in runs))
    few, many = runs if row.after > row.before else runs[::-1]
    shared = [sum(side[name][1] for name in few.keys() & many.keys()) for side in (few, many)]
    total, more = (sum(ns for _count, ns in side.values()) for side in (few, many))
    added = more - shared[1]
    own = shared[0] >= (1 - LEAST) * total and shared[1] >= shared[0] - LEAST * added
    # What was added may be outside of the phase that is compared.
    inside = abs(_mean(sides.after, COMPUTE) - _mean(sides.before, COMPUTE)) >= added / 2
    return [row] if row.differs and own and inside and added > LEAST * more else []


def _copied(sides: DeviceSides) -> facts.WorkChange | None:
    """The bytes of a step. A host that runs ahead copies for several later steps at once, so a median step may have no
    copy: then the bytes of a step are unknown. Whole windows, which include start-up, must also differ in bytes. A
    read-back more or less, as of a loss, is the same work."""
    both = (sides.before, sides.after)
    steps = [_median(side, COPIED) for side in both]
    windows = []
    for side in both:
        rows = [row for each in side for row in each.device.copies.rows if row.operation != "memset"]
        windows.append(mean_count(side, [row.bytes for row in rows]))
    if not any(steps) or any(not step and window for step, window in zip(steps, windows, strict=True)):
        return None
    found, whole = _change(facts.BYTES, *steps), _change(facts.BYTES, *windows)
    agree = whole.differs and (whole.after > whole.before) == (found.after > found.before)
    agree &= abs(found.after - found.before) > READ_BACK_BYTES
    return replace(found, differs=found.differs and agree)


def _threads(sides: DeviceSides) -> facts.WorkChange | None:
    """The threads of a step in the kernels that both sides run as often; None if these are few, or not most of the
    time, or if the same work may be spread over another number of GPUs. They differ if nearly all of these
    kernels have more threads, or fewer, by about the same factor."""
    if len({len(each.report.devices) for each in (*sides.before, *sides.after)}) > 1:
        return None
    both = [_launched(side) for side in (sides.before, sides.after)]
    names = sorted(name for name in both[0].keys() & both[1].keys() if _as_often(both[0][name], both[1][name]))
    if len(names) < FEWEST_NAMES:
        return None
    count, threads, ns = (np.array([[side[name][at] for name in names] for side in both]) for at in range(3))
    if any(2 * ns[at].sum() < _in_kernels(side) for at, side in enumerate((sides.before, sides.after))):
        return None
    ratio, weight = threads[1] / threads[0], ns.min(axis=0)
    factor = weighted_median(ratio, weight)
    alike = float(weight[np.abs(ratio / factor - 1) <= ALIKE].sum()) >= NEARLY_ALL * float(weight.sum())
    found = _change(facts.THREADS, *(float(each) for each in (count * threads).sum(axis=1)))
    return replace(found, differs=alike and abs(factor - 1) > LEAST)


def _fused(sides: DeviceSides) -> bool:
    """Do nearly all kernels that both sides run, by time, run as often in a step, and are they most of it? Then other
    kernels were fused or split: layers or batches that are gone have none of theirs left."""
    both = [_runs_of(side) for side in (sides.before, sides.after)]
    shared = both[0].keys() & both[1].keys()
    same = [name for name in shared if _as_often(both[0][name], both[1][name])]

    def time(side: dict[str, FloatArray], names: Iterable[str]) -> float:
        return sum(float(side[name][1]) for name in names)

    return all(time(side, same) >= max(NEARLY_ALL * time(side, shared), MOST_OF_IT * time(side, side)) for side in both)


def _runs_of(side: Sequence[Capture]) -> dict[str, FloatArray]:
    """By kernel: how often it runs for a unit of work, and how long."""
    units = max(sum(each.units for each in side), 1e-9)
    found: dict[str, FloatArray] = {}
    for row in (row for each in side for row in each.device.kernels if row.count):
        found.setdefault(row.name, np.zeros(2))[:] += (row.count / units, row.total_ns / units)
    return found


def _launched(side: Sequence[Capture]) -> dict[str, FloatArray]:
    """By kernel: how often it runs in a step, the threads of its median launch, and its ns in all captures.
    Without kernels whose launch shape is unknown."""
    found: dict[str, FloatArray] = {}
    units = max(sum(each.units for each in side), 1e-9)
    for row in (row for each in side for row in each.device.utilization.kernels):
        if row.blocks and row.threads and row.count and row.total_ns:
            seen = found.setdefault(row.name, np.zeros(3))
            seen += (row.count / units, 0, row.total_ns)
            seen[1] = row.blocks * row.threads
    return found


def _in_kernels(side: Sequence[Capture]) -> int:
    """Ns in kernels of the captures that are not communication."""
    return sum(row.total_ns for each in side for row in each.device.kernels if not row.communication)


def _as_often(one: FloatArray, other: FloatArray) -> bool:
    return bool(abs(other[0] / one[0] - 1) <= LEAST)


def goes_with(work: Sequence[facts.WorkChange], length: facts.Change) -> bool:
    """Is the time longer if the work is more, or shorter if it is less? Then the time alone tells nothing."""
    signs = {np.sign(row.after - row.before) for row in work if row.differs}
    return length.verdict in facts.DECIDED and float(np.sign(length.change_ns)) in signs


def _change(id: str, before: float, after: float) -> facts.WorkChange:
    differs = abs(after - before) > LEAST * min(before, after)
    return facts.WorkChange(id=id, before=round(before, 3), after=round(after, 3), differs=differs)


def _mean(side: Sequence[Capture], name: str) -> float:
    return float(np.mean(np.concatenate(column(side, name))))


def _median(side: Sequence[Capture], name: str) -> float:
    return float(np.median(np.concatenate(column(side, name))))


def work_sentence(work: Sequence[facts.WorkChange], unit: facts.Unit) -> str:
    """`Not the same work per step: kernels 120 → 240 (2.0×)`."""
    said = []
    for row in work:
        if row.differs:
            before, after = (_number(row.id, count) for count in (row.before, row.after))
            ratio = f" ({row.after / row.before:.1f}×)" if row.before and row.after else ""
            said.append(f"{SAID.get(row.id, row.id)} {before} → {after}{ratio}")
    return f"Not the same work{' per step' if unit.kind == facts.ITERATIONS else ''}: {', '.join(said)}"


def _number(id: str, count: float) -> str:
    """Whole numbers are written out; of kernels and launches there are parts, as they are means and medians."""
    if id == facts.BYTES:
        return format_bytes(count)
    return f"{count:,.0f}" if id == facts.THREADS else f"{count:,.4g}"


# Kernels by family: fused, renamed, replaced, new, gone, slower, or run more often.

OF_A_STEP = 0.5
"""Kernels that run less often than this for a unit of work are of start-up, not of the step."""
FEWER, SAME_TIME = 0.9, 0.05
"""Shares: so many of the runs are fewer; times that are no further apart are the same."""


def family_changes(kernels: Sequence[facts.KernelChange], unit: facts.Unit) -> list[facts.FamilyChange]:
    """What became of each family, the largest change first; of kernels on both sides those alone that changed beyond
    chance. Elementwise kernels and reductions are one family: compilers fuse them with each other."""
    least = OF_A_STEP if unit.kind == facts.ITERATIONS else 0.0
    groups: dict[str, list[facts.KernelChange]] = {}
    for row in kernels:
        if max(row.count_before, row.count_after) >= least:
            groups.setdefault(_family(row), []).append(row)
    lone = {family: [row for row in rows if row.status != facts.BOTH] for family, rows in groups.items()}
    more = {family: sum(row.count_after - row.count_before for row in rows) for family, rows in lone.items()}
    found = []
    for family, rows in groups.items():
        both = [row for row in rows if row.status == facts.BOTH and _counts(row.change)]
        elsewhere = sum(max(each, 0.0) for other, each in more.items() if other != family)
        found += [_family_change(family, each, elsewhere) for each in (lone[family], both) if each]
    return sorted(found, key=lambda each: (-abs(each.change_ns), each.family, each.how))


def _counts(change: facts.Change) -> bool:
    """Beyond chance, or large enough if chance is unknown."""
    return change.verdict in facts.DECIDED or (
        change.verdict == facts.UNKNOWN and abs(change.change_ns) > change.least_ns
    )


def _family(row: facts.KernelChange) -> str:
    if row.communication:
        return KernelFamily.COMMUNICATION.label
    family = family_of(row.name, row.short_name)
    if family == KernelFamily.PRODUCTS_FP32:  # one that tensor cores compute now is still a product
        family = KernelFamily.PRODUCTS
    return (KernelFamily.ELEMENTWISE if family in BOUND_BY_MEMORY else family).label


def _family_change(family: str, rows: Sequence[facts.KernelChange], elsewhere: float) -> facts.FamilyChange:
    """`elsewhere`: how many runs of new kernels other families have, which may be these under other names."""
    left, right = ([row for row in rows if row.status != gone] for gone in (facts.ADDED, facts.GONE))
    counts = sum(row.count_before for row in left), sum(row.count_after for row in right)
    times = sum(row.change.before_ns for row in left), sum(row.change.after_ns for row in right)
    return facts.FamilyChange(
        family=family,
        how=_how(
            counts,
            times,
            both=rows[0].status == facts.BOTH,
            fused=family == KernelFamily.ELEMENTWISE.label and counts[1] + elsewhere < FEWER * counts[0],
        ),
        names_before=len(left),
        names_after=len(right),
        name_before=max(left, key=lambda row: row.change.before_ns).short_name if left else "",
        name_after=max(right, key=lambda row: row.change.after_ns).short_name if right else "",
        count_before=round(counts[0], 3),
        count_after=round(counts[1], 3),
        before_ns=times[0],
        after_ns=times[1],
        change_ns=times[1] - times[0],
    )


def _how(counts: tuple[float, float], times: tuple[int, int], *, both: bool, fused: bool) -> str:
    """What became of them, by how often they run and how long. Only elementwise kernels are called fused: of others
    fewer runs may be less work."""
    (one, two), (before, after) = counts, times
    if both:
        runs = two / one - 1 if one else 0.0
        if abs(runs) > LEAST_CHANGE and (runs > 0) == (after > before):
            return "more" if runs > 0 else "fewer"
        return "slower" if after > before else "faster"
    if not one or not two:
        return "added" if two else "gone"
    if fused:
        return "fused"
    alike = abs(two - one) <= LEAST_CHANGE * one and abs(after - before) <= SAME_TIME * max(before, after)
    return "renamed" if alike else "replaced"
