"""The virtual clock: events in time order, signals that fire once, CPU cores that one thread holds at a time."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

US = 1_000
MS = 1_000_000


class Timer:
    """One event in the future; a cancelled one does nothing."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.cancelled = False


class Clock:
    """Nanoseconds; `run` takes events in time order, equal times in the order they were asked for."""

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()

    def at(self, time: int, action: Callable[[], None]) -> Timer:
        if time < self.now:
            raise ValueError(f"{time} is in the past of {self.now}")
        timer = Timer(action)
        heapq.heappush(self._heap, (time, next(self._numbers), timer))
        return timer

    def run(self) -> None:
        while self._heap:
            self.now, _, timer = heapq.heappop(self._heap)
            if not timer.cancelled:
                timer.action()


class Signal:
    """Fires once; whoever comes later is called at once. `by` is the thread that fired it, if one did."""

    def __init__(self) -> None:
        self.fired = False
        self.by: Runner | None = None
        self._waiting: list[Callable[[], None]] = []

    def then(self, action: Callable[[], None]) -> None:
        if self.fired:
            action()
        else:
            self._waiting.append(action)

    def fire(self, by: Runner | None = None) -> None:
        self.fired = True
        self.by = by
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()


class Runner(Protocol):
    """What a core needs to know of a thread."""

    @property
    def preemptible(self) -> bool: ...
    def granted(self) -> None: ...
    def preempted(self) -> None: ...


class Core:
    """A CPU core: threads hold it in turn, `quantum` ns at most while others wait."""

    def __init__(self, clock: Clock, number: int, quantum: int = 4 * MS) -> None:
        self.number = number
        self._clock = clock
        self._quantum = quantum
        self._owner: Runner | None = None
        self._since = 0
        self._waiting: deque[Runner] = deque()
        self._armed = False

    def request(self, thread: Runner) -> None:
        if self._owner is None:
            self._grant(thread)
        else:
            self._waiting.append(thread)
            self._arm()

    def release(self) -> None:
        self._owner = None
        if self._waiting:
            self._grant(self._waiting.popleft())

    def _grant(self, thread: Runner) -> None:
        self._owner = thread
        self._since = self._clock.now
        if self._waiting:
            self._arm()
        thread.granted()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._clock.at(max(self._clock.now, self._since + self._quantum), self._expire)

    def _expire(self) -> None:
        self._armed = False
        if self._owner is None or not self._waiting:
            return
        if self._clock.now < self._since + self._quantum:
            self._arm()
        elif self._owner.preemptible:
            self._owner.preempted()
            self._waiting.append(self._owner)
            self._grant(self._waiting.popleft())
        else:
            self._since = self._clock.now
            self._arm()
