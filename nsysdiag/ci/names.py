"""The numbers of a device that a budget can be about, by their dotted paths in the JSON of a report.

```
idle_ns                       a field of the device             idle_share         idle_ns / window_ns
ledger.sync                   a cause                           ledger.sync_share  ledger.sync / window_ns
launch.bubbles.count          a field of a record in it         findings.high      findings of the report
gpu_metrics.sm_active         the mean of a counter in the window, or another mean of it: gpu_metrics.sm_active.gaps
```

They follow from the types of the model: a new field is a new name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from msgspec import inspect

from nsysdiag.causes import CAUSES
from nsysdiag.events.gpu_metric_names import METRICS, Unit
from nsysdiag.report import DeviceReport

NS, SHARE, COUNT = "ns", "share", "count"
FINDINGS, LENGTH, GPU_METRICS = "findings", "length", "gpu_metrics"
LEVELS = ("high", "medium", "low", "info", "all")
LEDGERS = ("ledger", "root_ledger")
MEANS = ("window", "kernels", "compute", "gaps", "idle", "lowest", "highest")

_SHARES = {"coverage", "efficiency", "limit", "lowest", "highest", "sm_active_running", "resident_running"} | {
    "sm_active_at_most",
    "sm_active_computing",
}
_NO_SUM = re.compile(
    r"(p\d+|median|mean|max|min|worst|best|floor|launch_latency|start|end|edge|outside|peak|period|step|per)(_.*)?"
)
_SUMS = re.compile(
    r"(count|gap_count|collapse_count|pageable_count|pinned_count|calls|called|launches|.*_ops|found_device_idle|nodes|untraced|bytes|copies|blocking|allocations"
    r"|frees|(allocated|freed|pageable|pinned)_bytes|migrations|moves|.*faults|gpu_fault_groups|gaps"
    r"|kernel|memcpy|memset|graph|zero_length|malformed)"
)
_LEFT_OUT = {"packed", "buckets", "median_index", "labels", "root_labels", "gpu_fault_access", "gaps_packed", "gpu"}


@dataclass(frozen=True, slots=True)
class Measure:
    """What a name means: the field at `path`, divided by the window where `of_window`. `unit`: ns, share or count.
    `adds_up` says that it is a sum over the window, which can be divided by it and by iterations."""

    name: str
    path: tuple[str, ...]
    unit: str
    adds_up: bool
    of_window: bool = False

    @property
    def is_findings(self) -> bool:
        """Is it a count of findings, which are of the whole report?"""
        return self.path[0] == FINDINGS

    @property
    def cause(self) -> str | None:
        """The cause of idle time that it is about, None where it is about something else."""
        return self.path[-1] if self.in_ledger or "causes" in self.path else None

    @property
    def in_ledger(self) -> bool:
        """Is it a cause's part of all idle time?"""
        return self.path[0] in LEDGERS

    @property
    def counter(self) -> str | None:
        """The counter of the GPU that it is a mean of, None where it is none."""
        return self.path[1] if self.path[0] == GPU_METRICS and self.path[1] in METRICS else None


@cache
def measures() -> dict[str, Measure]:
    """All of them by name. A share that the device holds itself comes before one of the window."""
    found = {".".join(path): _measure(path) for path in [*_paths(), *_others()]}
    found |= {f"{GPU_METRICS}.{metric}": _measure((GPU_METRICS, metric, MEANS[0]), short=True) for metric in METRICS}
    shares = {}
    for each in found.values():
        name = f"{each.name.removesuffix('_ns')}_share"
        if each.unit == NS and each.adds_up and each.name != "window_ns" and name not in found:
            shares[name] = Measure(name, each.path, SHARE, False, of_window=True)
    return found | shares


def nearest(name: str) -> str | None:
    """The name that was probably meant, None where none is like it."""
    known = measures()
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return close[0]
    ends = [each for each in known if each.split(".")[-1] in (name, f"{name}_ns")]
    return min(ends, key=len) if ends else None


def _paths() -> list[tuple[str, ...]]:
    """The numbers among the fields of a device, and of the records in it."""
    found: list[tuple[str, ...]] = []

    def visit(kind: inspect.Type, path: tuple[str, ...]) -> None:
        if path and path[-1] in _LEFT_OUT:
            return
        if isinstance(kind, inspect.UnionType):
            for each in kind.types:
                visit(each, path)
        elif isinstance(kind, inspect.StructType):
            for field in kind.fields:
                visit(field.type, (*path, field.name))
        elif isinstance(kind, inspect.IntType | inspect.FloatType):
            found.append(path)

    visit(inspect.type_info(DeviceReport), ())
    return found


def _others() -> list[tuple[str, ...]]:
    """What stands under names of its own: causes, counters, findings."""
    causes = [
        (ledger, cause.id)
        for cause in CAUSES.values()
        for ledger in LEDGERS
        if ledger == "root_ledger" or cause.side != "root"
    ]
    bubbles = [("launch", "bubbles", "causes", cause.id) for cause in CAUSES.values() if cause.side != "root"]
    counters = [(GPU_METRICS, metric, mean) for metric in METRICS for mean in MEANS]
    drained = [("sync_drained", "gaps"), ("sync_drained", "ns")]
    return [*causes, *bubbles, *counters, *drained, *((FINDINGS, level) for level in LEVELS)]


def _measure(path: tuple[str, ...], *, short: bool = False) -> Measure:
    unit = _unit(path)
    return Measure(".".join(path[:-1] if short else path), path, unit, _adds_up(path, unit))


def _unit(path: tuple[str, ...]) -> str:
    last = path[-1]
    if path[0] == GPU_METRICS and path[1] in METRICS:
        return SHARE if METRICS[path[1]].unit is Unit.SHARE else COUNT
    if last.endswith("_ns") or last == "ns" or path[0] in LEDGERS or "causes" in path:
        return NS
    return SHARE if last.endswith("_share") or last in _SHARES else COUNT


def _adds_up(path: tuple[str, ...], unit: str) -> bool:
    """Is it a sum over the time of the window? Medians, levels and moments are not, nor what is of iterations."""
    if path[0] in ("iterations", "window", FINDINGS) or path[:2] == ("memory", "growth") or path == ("sm_count",):
        return False
    if path[0] in LEDGERS or "causes" in path:
        return True
    if unit == NS:
        return _NO_SUM.fullmatch(path[-1]) is None
    return unit == COUNT and path[0] not in ("cost", GPU_METRICS) and _SUMS.fullmatch(path[-1]) is not None
