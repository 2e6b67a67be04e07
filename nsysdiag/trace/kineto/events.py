"""The events of a trace of the PyTorch profiler: what is read of its JSON, with times in ns, and of which process each
is."""

from __future__ import annotations

import gzip
import re
import zlib
from bisect import bisect
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from nsysdiag.limits import KINETO_BYTES, KINETO_RATIO
from nsysdiag.messages import InputError, printable
from nsysdiag.trace.format import GZIP_MAGIC, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Timed = tuple["Event", int, int]
    Calls = dict[int, Timed]
    """By process, the call that has a correlation id."""
    Stream = tuple[str, str, str, int]


MOST_US = 1 << 52
"""Later times are none: in ns they would not fit into 64 bits. The epoch's are under 2^51."""
_MIB = 1 << 20
BYTES_OF_AN_EVENT = 20
"""An event with a name, a time and a length has three times as many; so a file of empty ones fills no memory."""
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
RANGES = ("user_annotation", "cpu_op")
_READ = (*WORK, *CALLS, *RANGES, "cuda_sync", "python_function", "overhead")
_DONE = ("X", "B")
"""The phases of events that take time."""
_CATEGORIES = {
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "runtime": "cuda_runtime",
    "driver": "cuda_driver",
    "operator": "cpu_op",
}
"""What older versions called them, in lower case."""


# Fields may hold anything, and are checked as they are used.


class Args(Struct, frozen=True):
    """What an event says besides its name and time."""

    correlation: Any = None
    device: Any = None
    context: Any = None
    stream: Any = None
    grid: Any = None
    block: Any = None
    bytes: Any = None
    name: Any = None
    registers: Any = field(default=None, name="registers per thread")
    shared: Any = field(default=None, name="shared memory")
    node: Any = field(default=None, name="graph node id")
    kind: Any = field(default=None, name="cuda_sync_kind")
    copy: Any = field(default=None, name="kind")
    event: Any = field(default=None, name="wait_on_cuda_event_id")


NO_ARGS = Args()


class Event(Struct, frozen=True):
    """An event; `ts` and `dur` are in µs."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Args | None = None


class KinetoTrace(Struct, frozen=True):
    """The whole file."""

    events: list[Event] = field(name="traceEvents")
    devices: list[dict[str, Any]] | None = field(default=None, name="deviceProperties")
    base_ns: Any = field(default=None, name="baseTimeNanoseconds")
    other: Any = field(default=None, name="otherData")
    distributed: Any = field(default=None, name="distributedInfo")
    record_shapes: Any = None
    with_stack: Any = None
    profile_memory: Any = None
    with_flops: Any = None
    with_modules: Any = None
    cupti_version: Any = None
    cuda_runtime_version: Any = None
    roctracer_version: Any = None
    hip_runtime_version: Any = None

    @property
    def recorder(self) -> str:
        """`PyTorch profiler (CUPTI 28, CUDA 12.9)`: who wrote it, and the versions that it says."""
        cuda, hip = number(self.cuda_runtime_version, 0), number(self.hip_runtime_version, 0)
        tracer = self.roctracer_version
        known = [
            f"CUPTI {number(self.cupti_version)}" if number(self.cupti_version, 0) > 0 else "",
            f"CUDA {cuda // 1_000}.{cuda % 1_000 // 10}" if cuda > 0 else "",
            f"roctracer {tracer}" if isinstance(tracer, int | float) else "",
            f"HIP {hip // 10_000_000}.{hip // 100_000 % 100}" if hip > 0 else "",
        ]
        versions = ", ".join(filter(None, known))
        return f"PyTorch profiler ({versions})" if versions else "PyTorch profiler"


def read_trace(path: Path) -> KinetoTrace:
    """The trace. Raises InputError if it is damaged or larger than what is read, and MemoryError."""
    size = path.stat().st_size
    most = min(KINETO_BYTES, max(KINETO_RATIO * size, _MIB))
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            what = f"has more than {most:,} bytes of JSON, the most that is read of such a file"
            raise refused(path, what, "profile fewer steps, without record_shapes and with_stack")
        if BYTES_OF_AN_EVENT * data.count(b"{") > len(data) + _MIB:
            raise refused(path, "is not a trace of the PyTorch profiler: its events are empty", None)
        found = Decoder(KinetoTrace | list[Event]).decode(_closed(data))
    except (DecodeError, UnicodeDecodeError, EOFError, zlib.error, OSError) as error:
        what = f"is a damaged trace of the PyTorch profiler: {printable(error)}"
        raise refused(path, what, "copy it again, or export it again") from error
    trace = KinetoTrace(found) if isinstance(found, list) else found
    _check_kind(trace, path)
    return trace


def _closed(data: bytes) -> bytes:
    """An array of events may lack its end, as viewers allow."""
    whole = data[:_MIB].lstrip()[:1] == b"{" or data[-_MIB:].rstrip().endswith(b"]")
    return data if whole else data.rstrip().rstrip(b",") + b"]"


def _check_kind(trace: KinetoTrace, path: Path) -> None:
    """Raises InputError for what is in the same format but not of the profiler."""
    if isinstance(trace.other, dict) and trace.other.get("generator") == "nsysdiag":
        raise refused(path, "is a timeline that nsysdiag wrote", "name the trace that it was made of")
    kinds = {category_of(event) for event in trace.events if event.ph in _DONE}
    if kinds and kinds.isdisjoint((*_READ, "trace")):
        what = "has events for a trace viewer, but none as the PyTorch profiler writes them"
        raise refused(path, what, 'an event of a kernel has "cat": "kernel"; JAX and TensorFlow: use nsys')


def number(value: Any, default: int = -1) -> int:
    """A whole number that fits into SQLite; the profiler has written some as text."""
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return whole if abs(whole) < 1 << 62 else default


def correlation_of(event: Event) -> int:
    """The id that a CUDA call and its operations share, 0 for none."""
    return number((event.args or NO_ARGS).correlation, 0)


def category_of(event: Event) -> str:
    """What kind of event it is, as today's profiler calls it."""
    name = event.cat.lower() if isinstance(event.cat, str) else ""
    return _CATEGORIES.get(name, name)


def by_category(events: Iterable[Event]) -> dict[str, list[tuple[Event, int, int]]]:
    """The complete events that are read, with their start and end in ns."""
    chosen = [event for event in events if event.ph == "X" and category_of(event) in _READ]
    start, length = (_nanoseconds([getattr(event, name) for event in chosen]) for name in ("ts", "dur"))
    found: dict[str, list[tuple[Event, int, int]]] = {}
    for event, begin, ns in zip(chosen, start.tolist(), length.tolist(), strict=True):
        if begin >= 0 and ns >= 0:
            found.setdefault(category_of(event), []).append((event, begin, begin + ns))
    return found


def first_ns(events: Iterable[Event]) -> int:
    """When the first event begins, of those that a viewer draws and that have a time."""
    start = _nanoseconds(event.ts for event in events if event.ph != "M")
    return int(start[start > 0].min(initial=MOST_US * 1_000))


def _as_number(value: Any) -> float:
    """A time, which some tools write as text; -1 for what is none."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else -1
    except ValueError:
        return -1


def _nanoseconds(values: Iterable[Any]) -> npt.NDArray[np.int64]:
    """Times in µs as whole ns, -1 for what is not a time."""
    numbers = (_as_number(value) for value in values)
    known = [value if 0 <= value < MOST_US else -0.001 for value in numbers]
    return np.rint(np.array(known, dtype=np.float64) * 1_000).astype(np.int64)


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
    of_ranks = rank_of(trace)
    if of_ranks is not None:
        rank, ranks = of_ranks
        yield f"the trace is of rank {rank:,} of {ranks:,}: what the other ranks did is not in it"
    options = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
    used = [name for name in options if number(getattr(trace, name), 0) > 0]
    if used:
        yield f"recorded with {', '.join(used)}: this makes the host slower, and idle time of the GPU longer"


def rank_of(trace: KinetoTrace) -> tuple[int, int] | None:
    """Which rank the trace is of, and of how many; None if it is the only one, or says nothing of it."""
    distributed = trace.distributed if isinstance(trace.distributed, dict) else {}
    ranks = number(distributed.get("world_size"), 1)
    return (number(distributed.get("rank"), 0), ranks) if ranks > 1 else None


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


# The process of each operation. The profiler writes a file a process, whose operations do not name it. Tools that join
# files keep the processes of calls; correlation ids and numbers of devices may be the same in all.
#
# ```
# stream of device 0    |kernel 7|  |kernel 8|  |kernel 9|      7 and 9: process A alone has such a call before them
# calls of A            [7]   [8]   [9]                         8: A too, as B has other streams
# calls of B                  [8]                               a call launches one operation: another 8 is of B
# in the file           A A A A A A A  B B B B B B              or, where the parts are apart, in whose it is
# ```

GPU_SIDE = (*WORK, "cuda_sync")
MOST_UNDECIDED = 0.01
"""Of all operations: with more that may be of any process, what each process did is unknown."""


def process_of(event: Event) -> int:
    """The process of a CPU event; 24 bits, as exports have."""
    return number(event.pid, 1) & 0xFFFFFF


class Owners:
    """Which process made each operation, and by which call. `processes` are those that make CUDA calls, that with most
    events first; a file without calls is of one. Raises InputError if that is unknown."""

    def __init__(self, events: Mapping[str, list[Timed]], every: Sequence[Event]) -> None:
        self._calls: dict[int, Calls] = {}
        for call in (each for name in CALLS for each in events.get(name, ())):
            self._calls.setdefault(correlation_of(call[0]), {})[process_of(call[0])] = call
        count = Counter(process_of(event) for name in (*CALLS, *RANGES) for event, _, _ in events.get(name, ()))
        calling = {process for calls in self._calls.values() for process in calls}
        found = [process for process, _ in count.most_common()]
        self.processes: list[int] = [each for each in found if each in calling] or found[:1] or [1]
        self._of: dict[int, int] = {}
        if len(self.processes) > 1:
            self._assign([each for name in GPU_SIDE for each in events.get(name, ())], every)

    def of(self, event: Event) -> int:
        """The process that launched an operation; that with most events where nothing tells."""
        return self._of.get(id(event), self.processes[0])

    def call(self, event: Event) -> Event | None:
        """The call that launched an operation."""
        found = self._calls.get(correlation_of(event), {}).get(self.of(event))
        return found[0] if found else None

    def _assign(self, operations: list[Timed], every: Sequence[Event]) -> None:
        left = self._by_calls(operations)
        of_stream: dict[Stream, set[int]] = {}
        for event, _, _ in operations:
            if id(event) in self._of:
                of_stream.setdefault(_stream(event), set()).add(self._of[id(event)])
        known = set().union(*of_stream.values())
        owners = self._by_parts(left, every)
        undecided = 0
        for event, possible in left:
            users = of_stream.get(_stream(event), set()) & possible
            owner = owners.get(id(event))
            if owner is None and len(users) == 1 and known >= possible:
                (owner,) = users
            undecided += owner is None
            self._of[id(event)] = self.processes[0] if owner is None else owner
        if undecided > MOST_UNDECIDED * len(operations):
            count = f"{undecided:,} of {len(operations):,} operations may be of any"
            raise InputError(
                f"the trace joins {len(self.processes)} processes, and {count}",
                hint="give the file of each process: nsysdiag ranks FILE FILE ...",
            )

    def _by_calls(self, operations: list[Timed]) -> list[tuple[Event, set[int]]]:
        """Operations before which one process alone has such a call that launched no other; and what is left, with the
        processes that it may be of. The call of a graph launches several."""
        alike: dict[tuple[int, bool], list[tuple[Event, set[int]]]] = {}
        for event, _, end in operations:
            key = (correlation_of(event), category_of(event) in WORK)
            before = {process for process, (_, start, _) in self._calls.get(key[0], {}).items() if start <= end}
            alike.setdefault(key, []).append((event, before))
        left: list[tuple[Event, set[int]]] = []
        for (correlation, _), group in alike.items():
            calls = self._calls.get(correlation, {})
            free = {process for process, (call, _, _) in calls.items() if "Graph" not in str(call.name)}
            rest = group
            while sure := [(event, owner) for event, possible in rest if len(possible) == 1 for owner in possible]:
                self._of |= {id(event): owner for event, owner in sure}
                used = free.intersection(owner for _, owner in sure)
                rest = [(event, possible - used) for event, possible in rest if len(possible) != 1]
            left += [(event, possible or set(self.processes)) for event, possible in rest]
        return left

    def _by_parts(self, left: list[tuple[Event, set[int]]], every: Sequence[Event]) -> dict[int, int]:
        """By operation, in whose part of the file it is; none where parts are mixed, or contradict the calls."""
        place = {id(event): at for at, event in enumerate(every)}
        begin: dict[int, int] = {}
        end: dict[int, int] = {}
        for at, event in enumerate(every):
            if event.ph == "X" and category_of(event) in (*CALLS, *RANGES):
                begin.setdefault(process_of(event), at)
                end[process_of(event)] = at
        order = sorted(self.processes, key=begin.__getitem__)
        begins = [begin[process] for process in order]
        found = {id(event): order[max(bisect(begins, place[id(event)]) - 1, 0)] for event, _ in left}
        fits = all(found[id(event)] in possible for event, possible in left)
        apart = all(end[one] < begin[other] for one, other in pairwise(order))
        return found if fits and apart and set(found.values()) == set(order) else {}


def _stream(event: Event) -> Stream:
    args = event.args or NO_ARGS
    return str(event.pid), str(args.device), str(args.context), number(args.stream, number(event.tid, 0))
