"""The window split four ways: compute, exposed communication, exposed copies, idle."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals, intersect, subtract, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category


class WindowSplit(Struct, frozen=True):
    """Nanoseconds; compute + exposed_comm + exposed_copy + idle = window, exactly. `kernels` is the time in which any
    kernel or graph ran, `kernel_ns` its length; `busy` is the set of all work, `parts` those of compute, exposed
    communication, exposed copies."""

    window_ns: int
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    overlapped_comm_ns: int
    kernel_ns: int
    kernels: Intervals
    busy: Intervals
    parts: tuple[Intervals, Intervals, Intervals]

    @property
    def busy_ns(self) -> int:
        return self.compute_ns + self.exposed_comm_ns + self.exposed_copy_ns

    @property
    def idle_ns(self) -> int:
        return self.window_ns - self.busy_ns


def split_window(device: DeviceTimeline, parts: Intervals) -> WindowSplit:
    """Time inside the set `parts` by what the device did; where several things ran at once, compute hides
    communication, and both hide copies."""
    operations = device.operations
    spans = Intervals(operations.start, operations.end)
    computes = (operations.category == Category.KERNEL) & ~device.communication
    computes |= operations.category == Category.GRAPH
    compute = intersect(parts, union(spans[computes]))
    communication = intersect(parts, union(spans[device.communication]))
    both = union(compute, communication)
    busy = intersect(parts, union(spans))
    return WindowSplit(
        window_ns=parts.total(),
        compute_ns=compute.total(),
        exposed_comm_ns=both.total() - compute.total(),
        exposed_copy_ns=busy.total() - both.total(),
        overlapped_comm_ns=compute.total() + communication.total() - both.total(),
        kernel_ns=both.total(),
        kernels=both,
        busy=busy,
        parts=(compute, _beside(both, compute), _beside(busy, both)),
    )


def _beside(whole: Intervals, part: Intervals) -> Intervals:
    """The set `whole` without its subset `part`."""
    return Intervals.empty() if whole.total() == part.total() else subtract(whole, part)
