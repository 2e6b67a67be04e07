"""How a trace of the PyTorch profiler was recorded: its rank, its options, its GPUs and the profiler's own time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsysdiag.trace.kineto.events import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsysdiag.trace.kineto.events import KinetoTrace

OVERHEAD = {
    "driver compiler": 2,
    "buffer flush": 3,
    "activity buffer request": 3,
    "instrumentation": 4,
    "resource": 5,
    "runtime triggered module loading": 6,
    "lazy function loading": 7,
    "command buffer full": 8,
}
"""CUPTI's numbers of overhead, by the names that the profiler writes in lower case."""
_AMD = re.compile(r"_ISA(9\d\d)(?:_|$)")
"""In names of kernels of Tensile: the GPU that they were built for, gfx942."""


def notes(trace: KinetoTrace) -> Iterator[str]:
    """What a reader must know of the capture."""
    distributed = trace.distributed if isinstance(trace.distributed, dict) else {}
    ranks = number(distributed.get("world_size"), 1)
    if ranks > 1:
        rank = number(distributed.get("rank"), 0)
        yield f"the trace is of rank {rank:,} of {ranks:,}: what the other ranks did is not in it"
    options = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
    used = [name for name in options if number(getattr(trace, name), 0) > 0]
    if used:
        yield f"recorded with {', '.join(used)}: this makes the host slower, and idle time of the GPU longer"


def devices(trace: KinetoTrace, used: Iterable[int], kernels: Iterable[str]) -> list[dict[str, Any]]:
    """The properties of the GPUs in use. On AMD GPUs operations have other numbers: one GPU alone is that one."""
    known, numbers = trace.devices or [], sorted(used)
    own = [each for each in known if number(each.get("id")) in numbers]
    if not own and len(known) == len(numbers) == 1:
        own = [{**known[0], "id": numbers[0]}]
    return [{**each, "name": each.get("name") or _inferred(each, kernels)} for each in own]


def _inferred(properties: dict[str, Any], kernels: Iterable[str]) -> str:
    """What a GPU without a name is, by its width of warps and the names of its kernels."""
    builds = {found[1] for name in kernels if (found := _AMD.search(name))}
    if number(properties.get("warpSize")) != 64 and not builds:
        return ""
    model = f" (gfx{builds.pop()}, inferred)" if len(builds) == 1 else " (inferred)"
    units = number(properties.get("numSms"), 0)
    return f"AMD GPU with {units} CUs{model}" if units > 0 else f"AMD GPU{model}"
