"""The critical path as plain data. Times are nanoseconds of all replayed steps together."""

from __future__ import annotations

from nsysdiag.fields import CauseId, Count, Ns, OwnText
from nsysdiag.record import Record


class PathPart(Record, frozen=True):
    """Time of the path: work of a GPU, or what a thread or a GPU did otherwise, by `cause`; that is empty for work.
    `bottleneck` is what such time is charged to, `name` the same in words."""

    name: OwnText
    bottleneck: OwnText
    cause: CauseId
    ns: Ns


class PathWork(Record, frozen=True):
    """Operations of one kind: a family of kernels, a kind of collective, a direction of copies.
    `bottleneck` is the one of such work. `total_ns` is summed over streams; `path_ns` of it is on the path."""

    bottleneck: OwnText
    name: OwnText
    count: Count
    total_ns: Ns
    path_ns: Ns


class CriticalPath(Record, frozen=True):
    """The longest chain of dependencies that ends with the last of the replayed steps, or with the window (`per`).

    The `parts` add up to `total_ns`, the length of the `steps` together. `device` is the GPU with most of the path's
    work. `work` is all that it did in these steps, on the path or off it, most time first. Work off the path may take
    less time, and no step gets shorter."""

    per: OwnText
    steps: Count
    total_ns: Ns
    device: OwnText
    parts: list[PathPart]
    work: list[PathWork]
