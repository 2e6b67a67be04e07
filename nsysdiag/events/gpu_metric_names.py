"""The GPU metrics that are understood, by the names that they bear on different chips and in versions of nsys.

To add a metric, add it to `METRICS`. A name is compared without its unit, letter case and doubled spaces:

```
SMs Active [Throughput %]      sms active            %       newer versions
SM Active                      sm active                     older ones, where the unit goes without saying
GPC Clock Frequency [MHz]      gpc clock frequency   mhz
Compute Warps in Flight [Avg]  compute warps in flight  avg  another quantity: not read
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class MetricUnit(StrEnum):
    """What the values of a metric are once they are read: a share from 0 to 1, or cycles a second."""

    SHARE = "share"
    HERTZ = "Hz"


class Combine(StrEnum):
    """How several rows of the same moment become one value: parts of a whole add up; of units that work side by side
    the busiest counts, which is the least that their time together can be."""

    ADD = "add"
    LARGEST = "largest"


class MetricKind(Struct, frozen=True):
    """`names` are alternatives, the first that a trace has in full is read; the parts of an alternative are combined.
    Each part is a pattern for whole names. `joined` metrics are averaged over ranges, kernels and iterations too."""

    id: str
    title: str
    names: tuple[tuple[str, ...], ...]
    unit: MetricUnit = MetricUnit.SHARE
    combine: Combine = Combine.ADD
    joined: bool = False


def _of(*names: str) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names)


def _link(direction: str) -> tuple[tuple[str, ...], ...]:
    """What NVLink carries for the program; packet headers ("protocol data") are none of it."""
    user = (f"nvlink {direction} requests user data", f"nvlink {direction} responses user data")
    return (user, (f"nvlink {direction} throughput",), (f"nvlink {direction} bandwidth",))


METRICS: dict[str, MetricKind] = {
    metric.id: metric
    for metric in (
        MetricKind("sm_active", "SM active", _of("sms? active"), joined=True),
        MetricKind("sm_issue", "SM issue", _of("sm issue( active)?"), joined=True),
        MetricKind("tensor_active", "Tensor active", _of("tensor active( / fp16 active)?"), joined=True),
        MetricKind("warps_in_flight", "Compute warps in flight", _of("compute warps in flight")),
        MetricKind("unallocated_warps", "Unallocated warps in active SMs", _of("unallocated warps in active sms")),
        MetricKind("gr_active", "Graphics and compute engine active", _of("gr active", "gpu active")),
        MetricKind(
            "dram_read",
            "DRAM read",
            _of("dram read (bandwidth|throughput)", "gpu memory read (bandwidth|throughput)"),
            joined=True,
        ),
        MetricKind(
            "dram_write",
            "DRAM write",
            _of("dram write (bandwidth|throughput)", "gpu memory write (bandwidth|throughput)"),
            joined=True,
        ),
        MetricKind(
            "pcie_rx", "PCIe received", _of("pcie rx (throughput|bandwidth)", "pcie read (bandwidth|throughput)")
        ),
        MetricKind("pcie_tx", "PCIe sent", _of("pcie tx (throughput|bandwidth)", "pcie write (bandwidth|throughput)")),
        MetricKind("nvlink_rx", "NVLink received", _link("rx"), joined=True),
        MetricKind("nvlink_tx", "NVLink sent", _link("tx"), joined=True),
        MetricKind(
            "copy_engine",
            "Busiest copy engine",
            _of(r"(a?sync )?copy engine active( \d+)?"),
            combine=Combine.LARGEST,
        ),
        MetricKind("gpc_clock", "GPC clock", _of("gpc clock frequency"), unit=MetricUnit.HERTZ),
        MetricKind("sys_clock", "SYS clock", _of("sys clock frequency"), unit=MetricUnit.HERTZ),
    )
}
"""Every metric by its id, in the order in which they are shown."""

_UNITS = {MetricUnit.SHARE: ("", "%", "throughput %"), MetricUnit.HERTZ: ("", "hz", "mhz")}
LONGEST = 200  # characters: no metric has such a name
_NAME = re.compile(r"(?P<base>.*?)(\[(?P<unit>[^\]]*)\])?", re.DOTALL)


def matched(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that each metric is made of, by the id of the metric; metrics that none of the names means are left
    out. Equal names count once."""
    known = {name: _split(name) for name in sorted(set(names)) if len(name) <= LONGEST}
    found = {metric.id: _names_of(metric, known) for metric in METRICS.values()}
    return {metric: chosen for metric, chosen in found.items() if chosen}


def is_metric(name: str) -> bool:
    """Whether a name, with its unit, is that of a metric or of a part of one."""
    if len(name) > LONGEST:
        return False
    known = {name: _split(name)}
    parts = ((metric, part) for metric in METRICS.values() for alternative in metric.names for part in alternative)
    return any(_meant(part, _UNITS[metric.unit], known) for metric, part in parts)


def _names_of(metric: MetricKind, known: dict[str, tuple[str, str]]) -> list[str]:
    for alternative in metric.names:
        parts = [_meant(pattern, _UNITS[metric.unit], known) for pattern in alternative]
        if all(parts):
            # Of two names for one part, such as with and without a unit, both would be counted: the first is taken.
            several = metric.combine is Combine.LARGEST
            return [name for part in parts for name in (part if several else part[:1])]
    return []


def _meant(pattern: str, units: tuple[str, ...], known: dict[str, tuple[str, str]]) -> list[str]:
    return [name for name, (base, unit) in known.items() if unit in units and re.fullmatch(pattern, base)]


def _split(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit: both in small letters, with single spaces."""
    match = _NAME.fullmatch(" ".join(name.split()).casefold())
    assert match is not None
    return match["base"].strip(), (match["unit"] or "").strip()
