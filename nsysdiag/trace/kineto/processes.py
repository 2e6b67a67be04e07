"""The process of each operation. The profiler writes a file a process, whose operations do not name it. Tools that join
files keep the processes of calls; correlation ids and numbers of devices may be the same in all.

```
stream of device 0    |kernel 7|  |kernel 8|  |kernel 9|      7 and 9: process A alone has such a call before them
calls of A            [7]   [8]   [9]                         8: A too, as B has other streams
calls of B                  [8]                               a call launches one operation: another 8 is of B
in the file           A A A A A A A  B B B B B B              or, where the parts are apart, in whose it is
```
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from nsysdiag.messages import InputError
from nsysdiag.trace.kineto.events import CALLS, NO_ARGS, RANGES, WORK, Event, category_of, correlation_of, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Timed = tuple[Event, int, int]
    Calls = dict[int, Timed]
    """By process, the call that has a correlation id."""
    Stream = tuple[str, str, str, int]

GPU_SIDE = (*WORK, "cuda_sync")
MOST_UNDECIDED = 0.01
"""Of all operations: with more that may be of any process, what each process did is unknown."""


def process_of(event: Event) -> int:
    """The process of a CPU event; 24 bits, as exports have."""
    return number(event.pid, 1) & 0xFFFFFF


class Owners:
    """Which process made each operation, and by which call. `processes` are those that make CUDA calls, that with most
    events first; a file without calls is of one. Raises InputError where that is unknown."""

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
