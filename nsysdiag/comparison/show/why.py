"""Why a step is slower or faster, in words: the three largest changes of its parts, each with what happened.

```
Synchronization +22.6 ms: more waiting, 14.3 → 36.9 ms; stream waits 3.10 → 25.2 ms
Kernels -8.10 ms: fused: 3 elementwise kernels gone, 1 new (triton_poi_fused_add_0), 12.1 → 4.00 ms
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.bottlenecks import OF_WORK
from nsysdiag.comparison.facts import LAUNCHES, Comparison, DeviceComparison, FamilyChange, PartChange, Reason
from nsysdiag.comparison.show.views import least, title
from nsysdiag.comparison.show.words import unit_name
from nsysdiag.diagnosis.entries import label
from nsysdiag.document.blocks import Block, Heading, Lines, Name, Part
from nsysdiag.document.names import brief
from nsysdiag.units import format_ns, format_signed_ns, format_two_ns, uncapitalized

if TYPE_CHECKING:
    from nsysdiag.document.view import Causes

MOST_FAMILIES, MOST_CAUSES = 2, 2
WORTH_NAMING = 0.2
"""Of the change of the first family: one that changed less is not named."""
MORE_CALLS = 0.02
"""Of the launches: a smaller difference is none."""
GRAPHS = "kernels in CUDA graphs were recorded as wholes, so they are not compared by name"
TITLES = {"improved": "Why it is faster", "regressed": "Why it is slower"}
FAMILIES = {
    "products": "matrix product",
    "attention": "attention",
    "elementwise": "elementwise",
    "communication": "communication",
}
OF_KERNELS = ("kernels", "parallelism")


def why(comparison: Comparison, causes: Causes) -> list[Block]:
    """Nothing where nothing changed, or with a prediction, whose parts are in a table."""
    job = comparison.job
    device = next((each for each in comparison.devices if job is not None and each.key == job.device_after), None)
    if job is None or device is None or not job.why:
        return []
    lines = [_line(each, device, causes) for each in job.why]
    return [Heading(TITLES.get(job.verdict, "What changed most")), Lines(lines)]


def _label(reason: Reason, causes: Causes) -> str:
    return title(reason.cause, causes) if reason.cause else label(reason.bottleneck)


def _line(reason: Reason, device: DeviceComparison, causes: Causes) -> list[Part]:
    """The change and what happened."""
    if reason.bottleneck in OF_KERNELS:
        said = _kernels(reason, device)
    elif reason.bottleneck in OF_WORK.values():
        said = [_more(reason, "time that kernels do not hide")]
    else:
        said = [_waiting(reason, device, causes)]
    return [f"{_label(reason, causes)} {format_signed_ns(reason.change_ns)}: ", *said]


def _more(reason: Reason, what: str) -> str:
    return f"{'more' if reason.change_ns > 0 else 'less'} {what}, {_two(reason.before_ns, reason.after_ns)}"


def _two(before: int, after: int) -> str:
    if before and after:
        return format_two_ns(before, after, " → ")
    return f"{format_ns(before)} → none" if before else f"none → {format_ns(after)}"


def _waiting(reason: Reason, device: DeviceComparison, causes: Causes) -> str:
    """More or less waiting; of launches how many more; then the causes that changed with it."""
    own = _label(reason, causes)
    rows = [row for row in reason.causes if title(row.id, causes) != own][:MOST_CAUSES]
    said = _launches(device) if reason.bottleneck == "launch" else ""
    return "; ".join([said or _more(reason, "waiting"), *(_cause(row, least(device), causes) for row in rows)])


def _launches(device: DeviceComparison) -> str:
    """How many more or fewer launches a step has; empty where that is unknown or about the same."""
    calls = next((row for row in device.work if row.id == LAUNCHES), None)
    if calls is None or abs(calls.after - calls.before) <= MORE_CALLS * calls.before:
        return ""
    which = "more" if calls.after > calls.before else "fewer"
    return f"{which} launches, {calls.before:,.4g} → {calls.after:,.4g} a {unit_name(device.unit)}"


def _cause(row: PartChange, tiny: float, causes: Causes) -> str:
    """`file reads 16.2 ms, gone`."""
    name = uncapitalized(title(row.id, causes))
    before, after = row.change.before_ns, row.change.after_ns
    if after < tiny <= before:
        return f"{name} is gone"
    return f"{name} is new" if before < tiny <= after else f"{name} {_two(before, after)}"


def _kernels(reason: Reason, device: DeviceComparison) -> list[Part]:
    """What became of the family that changed most, and of the next, which may have taken its work."""
    grew = reason.change_ns > 0
    found = [each for each in device.families if (each.change_ns > 0) == grew][:1]
    if not found:
        graphs = any(row.id == "graph" for row in device.workload)
        return [_more(reason, "time in them"), f"; {GRAPHS}" if graphs else ""]
    large = WORTH_NAMING * abs(found[0].change_ns)
    found += [each for each in device.families if each is not found[0] and abs(each.change_ns) >= large]
    said: list[Part] = []
    for each in found[:MOST_FAMILIES]:
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
