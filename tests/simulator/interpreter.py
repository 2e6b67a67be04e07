"""The lock of the Python interpreter: one thread holds it, and those that wait ask for it again every 5 ms.

    busy  [== computes ==================|signal][cond_wait][timedwait ....
    main  [timedwait 5 ms ][timedwait ...........][== runs ==

A row of a waiting thread ends by itself after 5 ms and says so in nothing but its length. The holder lets go at the
next chance after that, signals, and waits until the other has taken the lock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US, Signal
from tests.simulator.host import Block, Run
from tests.simulator.os_calls import ENTRY

if TYPE_CHECKING:
    from tests.simulator.host import Body
    from tests.simulator.os_calls import OsThread

SWITCH = 5 * MS
CHECK = 100 * US
"""How long a holder may run before it sees that another thread wants the lock."""
SEEN_EVERY = 3
"""Most signals take less than the microsecond from which on calls are recorded."""


class Gil:
    """Held by one thread at a time; `compute` runs Python code under it, as a holder, letting go when asked."""

    def __init__(self) -> None:
        self._held = False
        self._asked = False
        self._waiting: deque[Signal] = deque()
        self._taken = Signal()
        self._releases = 0

    def acquire(self, t: OsThread) -> Body:
        """Take the lock, waiting for it where another thread holds it."""
        if not self._held:
            self._held = True
            return
        handed = Signal()
        self._waiting.append(handed)
        while not handed.fired:
            with t.inside("os", "pthread_cond_timedwait", "lock_wait", label="GIL"):
                yield Run(ENTRY)
                yield Block(_at_most(t, handed, SWITCH))
                yield Run(t.returning())
            self._asked = self._asked or not handed.fired
        self._taken.fire(t)

    def release(self, t: OsThread) -> Body:
        """Let go of the lock; the thread that has waited longest has it at once."""
        if not self._waiting:
            self._held = False
            return
        self._releases += 1
        self._asked, self._taken = False, Signal()
        with t.inside("os", "pthread_cond_signal", ""):
            yield Run(500)
            self._waiting.popleft().fire(t)
            yield Run(1_500 if self._releases % SEEN_EVERY == 0 else 300)

    def compute(self, t: OsThread, ns: int, symbol: str = "_PyEval_EvalFrameDefault") -> Body:
        """Run Python code for this long."""
        for start in range(0, ns, CHECK):
            yield from t.compute(min(CHECK, ns - start), symbol)
            if self._asked and self._waiting:
                yield from self.release(t)
                taken = self._taken
                with t.inside("os", "pthread_cond_wait", "lock_wait", label="GIL"):
                    yield Run(ENTRY)
                    yield Block(taken)
                    yield Run(t.returning())
                yield from self.acquire(t)


def _at_most(t: OsThread, signal: Signal, ns: int) -> Signal:
    """Fires with the signal or after this time, whichever is first."""
    first = Signal()
    timer = t.clock.at(t.clock.now + ns, first.fire)

    def arrived() -> None:
        timer.cancelled = True
        if not first.fired:
            first.fire(signal.by)

    signal.then(arrived)
    return first
