"""The numbers of a device that a budget can be about, by their dotted paths in the JSON of a report.

```
idle_ns                       a field of the device             idle_share         idle_ns / window_ns
ledger.sync                   a cause                           ledger.sync_share  ledger.sync / window_ns
launch.launch_bound.count     a field of a record in it         findings.high      findings of the report
gpu_metrics.sm_active         the mean of a counter in the window, or another mean of it: gpu_metrics.sm_active.gaps
judged.idle_share             of the time that the diagnosis is about: a state, a bottleneck (judged.input_share) or a
                              cause
diagnosis.share               the share of that time of the bottleneck in the headline
```

They follow from the types of the model: a new field is a new name, and its markers say its unit and whether it adds up.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache

from msgspec import Struct

from nsysdiag.bottlenecks import BOTTLENECK_IDS
from nsysdiag.causes import CAUSES
from nsysdiag.events.gpu_metric_names import METRICS, MetricUnit
from nsysdiag.fields import NO_BUDGET, SUM, NumberUnit, fields_of, leaves
from nsysdiag.record import Record
from nsysdiag.report import DeviceReport
from nsysdiag.time.facts import STATES

NS, SHARE, COUNT = "ns", "share", "count"
FINDINGS, LENGTH, GPU_METRICS = "findings", "length", "gpu_metrics"
JUDGED, DIAGNOSIS = "judged", "diagnosis"
OF_DIAGNOSIS = ("share", "unknown_share")
LEVELS = ("high", "medium", "low", "info", "all")
LEDGERS = ("ledger", "root_ledger")
MEANS = ("window", "kernels", "compute", "gaps", "idle", "lowest", "highest")
_UNITS = dict.fromkeys(NumberUnit, COUNT) | {NumberUnit.NS: NS, NumberUnit.SHARE: SHARE}
"""What budgets write behind a number of a unit: times and shares have units, all else has none."""


class Measure(Struct, frozen=True):
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
    def of_report(self) -> bool:
        """Is it a number of the whole report?"""
        return self.path[0] in (FINDINGS, DIAGNOSIS)

    @property
    def of_judged_time(self) -> bool:
        """Is it a share of the time that the diagnosis is about?"""
        return self.path[0] == JUDGED

    @property
    def cause(self) -> str | None:
        """The cause of idle time that it is about, None where it is about something else."""
        if self.of_judged_time:
            return self.path[1] if self.path[1] in CAUSES else None
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
    found = {each.name: each for each in (*_numbers(DeviceReport), *_by_key())}
    shares = {}
    for each in found.values():
        name = f"{each.name.removesuffix('_ns')}_share"
        if each.unit == NS and each.adds_up and each.name != "window_ns" and name not in found:
            shares[name] = Measure(name, each.path, SHARE, False, of_window=True)
    return found | shares | {each.name: each for each in _of_judged_time()}


def _of_judged_time() -> Iterator[Measure]:
    """States, bottlenecks and causes of gaps, as shares of the time that the diagnosis is about."""
    causes = [cause.id for cause in CAUSES.values() if cause.side != "root"]
    for name in dict.fromkeys((*STATES, *BOTTLENECK_IDS, *causes)):
        yield Measure(f"{JUDGED}.{name}_share", (JUDGED, name), SHARE, False)
    for name in OF_DIAGNOSIS:
        yield Measure(f"{DIAGNOSIS}.{name}", (DIAGNOSIS, name), SHARE, False)


def nearest(name: str) -> str | None:
    """The name that was probably meant, None where none is like it."""
    known = measures()
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return close[0]
    ends = [each for each in known if each.split(".")[-1] in (name, f"{name}_ns")]
    return min(ends, key=len) if ends else None


def _numbers(record: type[Record], path: tuple[str, ...] = ()) -> Iterator[Measure]:
    """The numbers among the fields of a record, and of the records in it, that are figures of the device. Raises
    TypeError for one whose type does not say its unit."""
    for name, hint in fields_of(record).items():
        for leaf in leaves(hint, deep=False):
            if NO_BUDGET in leaf.markers or leaf.unit is NumberUnit.NUMBER:
                continue
            if isinstance(leaf.kind, type) and issubclass(leaf.kind, Record):
                yield from _numbers(leaf.kind, (*path, name))
            elif leaf.kind in (int, float):
                if leaf.unit is None:
                    raise TypeError(
                        f"{record.__name__}.{name}: its type must say its unit, see nsysdiag.fields.NumberUnit"
                    )
                yield _measure((*path, name), _UNITS[leaf.unit], adds_up=SUM in leaf.markers)


def _by_key() -> Iterator[Measure]:
    """What stands under names of its own: causes, counters, findings."""
    of_gaps = [cause.id for cause in CAUSES.values() if cause.side != "root"]
    for ledger, causes in zip(LEDGERS, (of_gaps, CAUSES), strict=True):
        yield from (_measure((ledger, cause), NS, adds_up=True) for cause in causes)
    yield from (_measure(("launch", "launch_bound", "causes", cause), NS, adds_up=True) for cause in of_gaps)
    yield _measure(("sync_drained", "gaps"), COUNT, adds_up=True)
    yield _measure(("sync_drained", "ns"), NS, adds_up=True)
    for metric, each in METRICS.items():
        unit = SHARE if each.unit is MetricUnit.SHARE else COUNT
        yield from (_measure((GPU_METRICS, metric, mean), unit) for mean in MEANS)
        yield Measure(f"{GPU_METRICS}.{metric}", (GPU_METRICS, metric, MEANS[0]), unit, False)
    yield from (_measure((FINDINGS, level), COUNT) for level in LEVELS)


def _measure(path: tuple[str, ...], unit: str, *, adds_up: bool = False) -> Measure:
    return Measure(".".join(path), path, unit, adds_up)
