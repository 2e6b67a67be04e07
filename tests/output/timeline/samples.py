"""A timeline made by hand: small, and with something in every lane.

```
ns from the start    0        1,000,000        2,000,000        3,000,000       4,000,000
stream 7             [=== kernel ===)[........ idle ...........)[= copy =)
causes                               [launch_call)[... sync ....)
NVTX                 [------------------------ step --------------------------)
CUDA calls           [launch)        [-- cudaStreamSynchronize -)
```
"""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
from msgspec import structs

from nsysdiag.arrays.groups import to_planes
from nsysdiag.timeline.facts import TimelineLane, TimelineLevel, TimelineLevels, TimelineThread

BUCKETS = 512
Row = tuple[int, int, int, int]
"""Start and length in ns from the start of the timeline, number of the name, kind."""


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def numbers(values: list[int]) -> str:
    return packed(to_planes(np.array(values, dtype=np.int64))) if values else ""


def lane(
    kind: str,
    rows: list[Row],
    *,
    label: str = "",
    thread: int | None = None,
    depth: int = 0,
    amounts: list[int] | None = None,
    blocks_of: list[int] | None = None,
    launches: list[int] | None = None,
) -> TimelineLane:
    starts = [row[0] for row in rows]
    return TimelineLane(
        kind=kind,
        label=label,
        thread=thread,
        depth=depth,
        levels=[],
        count=len(rows),
        starts=numbers([after - before for before, after in zip([0, *starts], starts, strict=False)]),
        lengths=numbers([row[1] for row in rows]),
        names=numbers([row[2] for row in rows]),
        kinds=numbers([row[3] for row in rows]) if kind in ("stream", "causes") else "",
        amounts=numbers(amounts or []),
        blocks_of=numbers(blocks_of or []),
        launches=numbers(launches or []),
    )


def served(start_ns: int, end_ns: int) -> TimelineLevels:
    """Another device of the same threads, whose lanes are with gpu0."""
    whole = timeline(start_ns, end_ns)
    return structs.replace(
        whole,
        threads=[structs.replace(thread, lanes_of="gpu0") for thread in whole.threads],
        lanes=[each for each in whole.lanes if each.thread is None],
    )


def timeline(
    start_ns: int,
    end_ns: int,
    *,
    names: list[str] | None = None,
    lanes: list[TimelineLane] | None = None,
    thread: str | None = "python",
    stream: str = "stream 7",
    cause_ids: tuple[str, ...] = ("sync", "launch_call"),
) -> TimelineLevels:
    """Half of every bucket is compute, a quarter idle by the first cause; everything is exact."""
    names = names or ["gemm<float>(int)", "memcpy HtoD", "step 0", "cudaLaunchKernel", "cudaStreamSynchronize"]

    def level(buckets: int) -> TimelineLevel:
        return TimelineLevel(
            buckets=buckets,
            compute=packed(bytes([128]) * buckets),
            communication=packed(bytes(buckets)),
            copies=packed(bytes([10]) * buckets),
            idle=packed(bytes([64]) * buckets),
            cause=packed(bytes(buckets)),
        )

    own = [
        lane("stream", [(0, 1_000_000, 0, 0), (2_500_000, 500_000, 1, 2)], label=stream),
        lane("causes", [(1_000_000, 400_000, 3, 1), (1_400_000, 1_100_000, 4, 0)]),
        lane("nvtx", [(0, 4_000_000, 2, 0)], thread=0),
        lane("api", [(0, 100_000, 3, 0), (1_000_000, 1_400_000, 4, 0)], thread=0),
        lane("os", [(1_900_000, 50_000, 4, 0)], thread=1),
    ]
    return TimelineLevels(
        start_ns=start_ns,
        end_ns=end_ns,
        cause_ids=list(cause_ids),
        levels=[level(2 * BUCKETS), level(BUCKETS)],
        names=packed(json.dumps(names).encode()),
        threads=[
            TimelineThread(pid=4200, tid=4242, name=thread, launches=True),
            TimelineThread(pid=4200, tid=4250, name="worker", launches=False),
        ],
        lanes=own if lanes is None else lanes,
        exact_operations=[(start_ns, end_ns)],
        exact_host=[(start_ns, end_ns)],
    )
