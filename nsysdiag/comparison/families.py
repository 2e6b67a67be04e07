"""Kernels by family before and after: fused, renamed, replaced, new, gone, slower, or run more often.

```
before   elementwise_kernel 4, vectorized_… 4, layer_norm 4      12 runs, 12.1 ms
after    triton_poi_fused_add_0 4                                 4 runs,  4.0 ms     fused
```
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.comparison.facts import Change, FamilyChange, KernelChange, Unit
from nsysdiag.comparison.matching import ADDED, BOTH, GONE
from nsysdiag.comparison.units import ITERATIONS
from nsysdiag.comparison.waterfall import DECIDED, LEAST_CHANGE, UNKNOWN
from nsysdiag.kernels.kinds import BOUND_BY_MEMORY, KernelFamily, family_of

OF_A_STEP = 0.5
"""Kernels that run less often than this for a unit of work are of start-up, not of the step."""
FEWER, SAME_TIME = 0.9, 0.05
"""Shares: so many of the runs are fewer; times that are no further apart are the same."""


def family_changes(kernels: Sequence[KernelChange], unit: Unit) -> list[FamilyChange]:
    """What became of each family, the largest change first; of kernels on both sides those alone that changed beyond
    chance. Elementwise kernels and reductions are one family: compilers fuse them with each other."""
    least = OF_A_STEP if unit.kind == ITERATIONS else 0.0
    groups: dict[str, list[KernelChange]] = {}
    for row in kernels:
        if max(row.count_before, row.count_after) >= least:
            groups.setdefault(_family(row), []).append(row)
    lone = {family: [row for row in rows if row.status != BOTH] for family, rows in groups.items()}
    more = {family: sum(row.count_after - row.count_before for row in rows) for family, rows in lone.items()}
    found = []
    for family, rows in groups.items():
        both = [row for row in rows if row.status == BOTH and _counts(row.change)]
        elsewhere = sum(max(each, 0.0) for other, each in more.items() if other != family)
        found += [_change(family, each, elsewhere) for each in (lone[family], both) if each]
    return sorted(found, key=lambda each: (-abs(each.change_ns), each.family, each.how))


def _counts(change: Change) -> bool:
    """Beyond chance, or large enough where chance is unknown."""
    return change.verdict in DECIDED or (change.verdict == UNKNOWN and abs(change.change_ns) > change.least_ns)


def _family(row: KernelChange) -> str:
    if row.communication:
        return KernelFamily.COMMUNICATION.label
    family = family_of(row.name, row.short_name)
    if family == KernelFamily.PRODUCT_FP32:  # one that tensor cores compute now is still a product
        family = KernelFamily.PRODUCT
    return (KernelFamily.ELEMENTWISE if family in BOUND_BY_MEMORY else family).label


def _change(family: str, rows: Sequence[KernelChange], elsewhere: float) -> FamilyChange:
    """`elsewhere`: how many runs of new kernels other families have, which may be these under other names."""
    left, right = ([row for row in rows if row.status != gone] for gone in (ADDED, GONE))
    counts = sum(row.count_before for row in left), sum(row.count_after for row in right)
    times = sum(row.change.before_ns for row in left), sum(row.change.after_ns for row in right)
    return FamilyChange(
        family=family,
        how=_how(
            counts,
            times,
            both=rows[0].status == BOTH,
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
