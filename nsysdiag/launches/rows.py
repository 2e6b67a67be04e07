"""The tables about launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document.columns import Column, columns, of_devices
from nsysdiag.document.packed import unpack_series
from nsysdiag.document.words import path_label
from nsysdiag.report import ApiRow, Distribution, GraphRow, LaunchBoundPhase, QueueDrains

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

DISTRIBUTIONS = {
    "kernel": "Kernel",
    "call": "Launch call of a kernel",
    "interval": "From one launch to the next",
    "to_start": "From the call to the start of a kernel",
    "queue_delay": "In the queue",
}
"""What the distributions of a device are of, by the name of the field."""


class _Named(NamedTuple):
    """A distribution, by the name of its field."""

    what: str
    times: Distribution


class _Bucket(NamedTuple):
    """How far the host ran ahead in one bucket of time."""

    start_ns: int
    end_ns: int
    lowest_depth: int
    mean_depth: float
    highest_depth: int


def distributions(device: DeviceReport) -> list[tuple[str, Distribution]]:
    """Those that the device has, by the name of the field."""
    found = [(name, getattr(device.launch, name)) for name in DISTRIBUTIONS]
    return [(name, each) for name, each in found if each is not None]


def _depths(device: DeviceReport) -> Iterator[_Bucket]:
    if device.launch.queue_depth is not None:
        series = unpack_series(device.launch.queue_depth)
        depths = (series.edges[:-1], series.edges[1:], series.lowest, series.mean, series.highest)
        yield from map(_Bucket._make, zip(*(each.tolist() for each in depths), strict=True))


_PERCENTILES = "count total_ns p5_ns p25_ns p50_ns p75_ns p95_ns p99_ns max_ns"
TABLES = (
    of_devices("api", columns(ApiRow), lambda device: device.launch.api),
    of_devices(
        "launches",
        columns(_Named, "what " + " ".join(f"{name}=times.{name}" for name in _PERCENTILES.split())),
        lambda device: map(_Named._make, distributions(device)),
    ),
    of_devices("queue_depth", columns(_Bucket), _depths),
    of_devices(
        "queue_drains",
        columns(QueueDrains, "call cause count idle_ns median_depth"),
        lambda device: device.launch.queue_depth.drains if device.launch.queue_depth else (),
    ),
    of_devices(
        "launch_bound",
        (
            *columns(LaunchBoundPhase, "start_ns end_ns"),
            Column[LaunchBoundPhase]("length_ns", "integer", lambda row: row.end_ns - row.start_ns),
            *columns(LaunchBoundPhase, "launches busy_ns idle_ns median_interval_ns median_work_ns"),
            Column[LaunchBoundPhase]("nvtx", "text", lambda row: path_label(row.nvtx)),
        ),
        lambda device: device.launch.launch_bound.rows if device.launch.launch_bound else (),
    ),
    of_devices(
        "graphs",
        columns(GraphRow),
        lambda device: device.launch.graphs.rows if device.launch.graphs else (),
    ),
)
