"""Why a step is slower or faster: the three largest changes of its parts, each with what happened.

```
Synchronization +22.6 ms: more waiting; stream waits 3.10 → 25.7 ms
Kernels -8.10 ms: fused, 3 elementwise kernels gone, 1 new (triton_poi_fused_add_0): 12.1 → 4.00 ms
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.causes import CAUSES
from nsysdiag.comparison.facts import LAUNCHES
from nsysdiag.comparison.job import LEAST_TOP, MOST_TOP, OF_KERNELS
from nsysdiag.comparison.show.views import title
from nsysdiag.comparison.waterfall import LEAST_CHANGE, LEAST_OF_LENGTH
from nsysdiag.diagnosis.entries import label
from nsysdiag.document.blocks import Block, Heading, Lines, Name, Part
from nsysdiag.document.names import brief
from nsysdiag.units import format_ns, format_signed_ns, format_two_ns, uncapitalized

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Comparison, DeviceComparison, FamilyChange, JobComparison, PartChange
    from nsysdiag.document.view import Causes

MOST_FAMILIES, MOST_CAUSES = 2, 2
PART = 1.1
"""A cause that changed by more of its bottleneck's change is charged to others as well."""
GRAPHS = "kernels in CUDA graphs were recorded as wholes, so they are not compared by name"
TITLES = {"improved": "Why it is faster", "regressed": "Why it is slower"}
FAMILIES = {
    "products": "matrix product",
    "attention": "attention",
    "elementwise": "elementwise",
    "communication": "communication",
}


class Reason(Struct, frozen=True):
    """A part of the step that changed: a bottleneck, or a cause where the time is not charged to bottlenecks."""

    title: str
    bottleneck: str
    causes: list[PartChange]
    before_ns: int
    after_ns: int

    @property
    def change_ns(self) -> int:
        """What it adds."""
        return self.after_ns - self.before_ns


def why(comparison: Comparison, causes: Causes) -> list[Block]:
    """Nothing where nothing changed, or with a prediction, whose parts are in a table."""
    job = comparison.job
    if job is None or job.verdict == "same":
        return []
    device = next((each for each in comparison.devices if each.key == job.device_after), None)
    if device is None or not (reasons := _reasons(job, device, causes)):
        return []
    return [
        Heading(TITLES.get(job.verdict, "What changed most")),
        Lines([_line(each, device, causes) for each in reasons]),
    ]


def _reasons(job: JobComparison, device: DeviceComparison, causes: Causes) -> list[Reason]:
    """The largest changes, those that the headline may name."""
    found = [
        Reason(label(row.bottleneck), row.bottleneck, _causes_of(row.bottleneck, device), row.before_ns, row.after_ns)
        for row in job.account
    ] or [
        Reason(title(row.id, causes), _bottleneck_of(row.id), [], row.change.before_ns, row.change.after_ns)
        for row in job.top
    ]
    found.sort(key=lambda each: (-abs(each.change_ns), each.bottleneck))
    most = max((abs(each.change_ns) for each in found), default=0)
    step = max(job.step.before_ns, job.step.after_ns)
    least = max(LEAST_OF_LENGTH * step, LEAST_TOP * most)
    return [each for each in found if abs(each.change_ns) >= least][:MOST_TOP]


def _bottleneck_of(id: str) -> str:
    return OF_WORK.get(id) or (CAUSES[id].bottleneck if id in CAUSES else "")


def _causes_of(bottleneck: str, device: DeviceComparison) -> list[PartChange]:
    """The root causes whose time is this bottleneck's, those that changed most first."""
    rows = [row for row in device.root_ledger if _bottleneck_of(row.id) == bottleneck]
    return sorted(rows, key=lambda row: (-abs(row.change.change_ns), row.id))


def _line(reason: Reason, device: DeviceComparison, causes: Causes) -> list[Part]:
    """The change and what happened."""
    if reason.bottleneck in OF_KERNELS:
        said = _kernels(reason, device)
    elif reason.bottleneck in OF_WORK.values():
        said = [_more(reason, "time that kernels do not hide")]
    else:
        said = [_waiting(reason, device, causes)]
    return [f"{reason.title} {format_signed_ns(reason.change_ns)}: ", *said]


def _more(reason: Reason, what: str) -> str:
    return f"{'more' if reason.change_ns > 0 else 'less'} {what}, {_two(reason.before_ns, reason.after_ns)}"


def _two(before: int, after: int) -> str:
    if before and after:
        return format_two_ns(before, after, " → ")
    return f"{format_ns(before)} → none" if before else f"none → {format_ns(after)}"


def _waiting(reason: Reason, device: DeviceComparison, causes: Causes) -> str:
    """More or less waiting; of launches how many more; then the causes that changed with it."""
    least = LEAST_OF_LENGTH * max(device.length.before_ns, device.length.after_ns)
    rows = [row for row in reason.causes if _is_part(row, reason, least) and title(row.id, causes) != reason.title]
    said = _launches(device) if reason.bottleneck == "launch" else ""
    return "; ".join([said or _more(reason, "waiting"), *(_cause(row, least, causes) for row in rows[:MOST_CAUSES])])


def _is_part(row: PartChange, reason: Reason, least: float) -> bool:
    """Whether the change of a cause is some of that of its bottleneck, to which other time may be charged as well."""
    change = row.change.change_ns if reason.change_ns > 0 else -row.change.change_ns
    return least <= change <= PART * abs(reason.change_ns)


def _launches(device: DeviceComparison) -> str:
    """How many more or fewer launches a step has; empty where that is unknown or about the same."""
    calls = next((row for row in device.work if row.id == LAUNCHES), None)
    if calls is None or abs(calls.after - calls.before) <= LEAST_CHANGE * calls.before:
        return ""
    which = "more" if calls.after > calls.before else "fewer"
    return f"{which} launches, {calls.before:,.4g} → {calls.after:,.4g} a step"


def _cause(row: PartChange, least: float, causes: Causes) -> str:
    """`file reads 16.2 ms, gone`."""
    name = uncapitalized(title(row.id, causes))
    before, after = row.change.before_ns, row.change.after_ns
    if after < least <= before:
        return f"{name} is gone"
    return f"{name} is new" if before < least <= after else f"{name} {_two(before, after)}"


def _kernels(reason: Reason, device: DeviceComparison) -> list[Part]:
    """What became of the families that changed most."""
    grew = reason.change_ns > 0
    found = [each for each in device.families if (each.change_ns > 0) == grew][:MOST_FAMILIES]
    if not found:
        graphs = any(row.id == "graph" for row in device.workload)
        return [_more(reason, "time in them"), f"; {GRAPHS}" if graphs else ""]
    said: list[Part] = []
    for each in found:
        said += [*(["; "] if said else []), *_family(each)]
    return said


def _family(change: FamilyChange) -> list[Part]:
    """`fused: 3 elementwise kernels gone, 1 new (triton_poi_fused_add_0), 12.1 → 4.00 ms`."""
    kind = FAMILIES.get(change.family, "")
    times = f", {_two(change.before_ns, change.after_ns)}"
    if change.how in ("renamed", "replaced") and change.names_before == change.names_after == 1:
        return [Name(brief(change.name_before)), f" {change.how}, now ", Name(brief(change.name_after)), times]
    if change.how in ("fused", "renamed", "replaced"):
        gone = f"{change.how}: {_counted(change.names_before, kind)} gone, {change.names_after:,} new ("
        return [gone, Name(brief(change.name_after)), f"){times}"]
    names = change.names_after if change.how == "added" else change.names_before
    name = Name(brief(change.name_after if change.how == "added" else change.name_before))
    if change.how in ("added", "gone"):
        word = "new" if change.how == "added" else "gone"
        return [f"{_counted(names, kind)} {word} (", name, f"){times}"]
    runs = f", {change.count_before:,.4g} → {change.count_after:,.4g} runs" if change.how in ("more", "fewer") else ""
    what = f"{change.how} runs of " if runs else f"{change.how}: "
    return [f"{what}{_counted(names, kind)} (", *([name] if names == 1 else ["mostly ", name]), f"){runs}{times}"]


def _counted(names: int, kind: str) -> str:
    return f"{names:,} {f'{kind} ' if kind else ''}{'kernel' if names == 1 else 'kernels'}"
