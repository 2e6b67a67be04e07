"""A second thread for what does not depend on what the first is working on."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread, local
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")
Of = TypeVar("Of")


class _Depth(local):
    """How many works this thread is in."""

    works = 0


_depth = _Depth()


class Deferred(Generic[T]):
    """Work that is done once, by the thread that comes first: the second one, or one that asks for the result."""

    def __init__(
        self, work: Callable[[], T], queue: SimpleQueue[ref[Deferred[Any]] | None] | None = None, *, long: bool = False
    ) -> None:
        """`queue` holds other works: who waits for this one does them meanwhile, but for `long` ones."""
        self.long = long
        self._work: Callable[[], T] | None = work
        self._queue = queue
        self._lock = Lock()
        self._made: list[T] = []
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Do the work if no thread has begun it: the second thread goes on to the next one."""
        if self._lock.acquire(blocking=False):
            try:
                self._do()
            finally:
                self._lock.release()

    def _do(self) -> None:
        if self._work is None:
            return
        _depth.works += 1
        try:
            self._made.append(self._work())
        except BaseException as error:
            self._error = error
        _depth.works -= 1
        self._work = None  # and what it refers to

    def result(self) -> T:
        """What the work made, once it is done. Raises what it raised."""
        self._help()
        with self._lock:
            self._do()
        if self._error is not None:
            raise self._error
        return self._made[0]

    def _help(self) -> None:
        """While another thread does this, do what comes next. Not inside other work: for that one the other thread may
        have to wait."""
        while self._queue is not None and self._lock.locked() and not _depth.works:
            other = _short(self._queue)
            if other is None:
                return
            if not isinstance(error := _begin(other), Exception | None):  # a signal to this thread
                raise error


def _short(queue: SimpleQueue[ref[Deferred[Any]] | None]) -> ref[Deferred[Any]] | None:
    """The next work that is not long, None for none; long ones come last then."""
    for _ in range(queue.qsize()):
        with suppress(Empty):
            task = queue.get_nowait()
            known = None if task is None else task()
            if known is not None and not known.long:
                return task
            if task is None or known is not None:
                queue.put(task)
    return None


def _begin(task: ref[Deferred[Any]] | None) -> BaseException | None:
    """Only what something still refers to: a result that was asked for meanwhile, and released, would take memory.
    Returns what the work raised."""
    known = None if task is None else task()
    if known is None:
        return None
    known.begin()
    return known._error


class Background:
    """Does deferred work on a second thread, in order. NumPy releases the GIL in its loops over large arrays; of small
    ones two threads wait for each other more than they gain, so that each result is made when it is asked for.

    ```
    caller  [classify][roots       ][signatures][launches]...
    beside  [iterations][counters           ][utilization]
    ```
    """

    def __init__(self, *, small: bool = False) -> None:
        self._queue: SimpleQueue[ref[Deferred[Any]] | None] = SimpleQueue()
        self._thread = None if small else Thread(target=self._run, name="nsysdiag-beside", daemon=True)

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            _begin(task)

    def begin(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> Deferred[T]:
        """Begin this once what was begun before is done, or when its result is asked for. It may ask for
        results of what was begun before it or by it, never of what waits for it."""
        return self._begin(partial(work, *args, **named), long=False)

    def begin_long(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> Deferred[T]:
        """The same for work that the caller does not do while it waits for a shorter one: it would be late with what
        depends on that."""
        return self._begin(partial(work, *args, **named), long=True)

    def _begin(self, work: Callable[[], T], *, long: bool) -> Deferred[T]:
        if self._thread is None:
            return Deferred(work)
        task = Deferred(work, self._queue, long=long)
        self._queue.put(ref(task))
        return task

    def each(self, work: Callable[[Of], T], given: list[Of]) -> list[T]:
        """The work on all that is given, which is released: the second thread does the first ones, the caller the last
        ones. The very last is never left to that thread, which would then do all that it begins itself."""
        if not given:
            return []
        tasks = [self.begin(work, one) for one in given[:-1]]
        del given[:-1]
        made = [work(given.pop())]
        return [*made, *(each.result() for each in reversed(tasks))][::-1]

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Begin no more, and wait for what runs."""
        if self._thread is not None:
            with suppress(Empty):
                while True:
                    self._queue.get_nowait()
            self._queue.put(None)
            self._thread.join()


ALONE = Background(small=True)
"""Does all work in the thread that asks."""
