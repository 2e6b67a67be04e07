"""The C library's own condition variables, as C++ programs use them: a thread signals or broadcasts to the main thread.

The calls go through ctypes, which lets go of the interpreter's lock meanwhile. In turn the waker sleeps and computes,
and in turn the main thread waits with and without a time limit.
"""

from __future__ import annotations

import ctypes
import threading
import time

from waitlog import Log, annotate, compute, run

STEPS = 48
BUSY_SECONDS = 0.008
LIMIT_SECONDS = 5
LIBRARY = ctypes.CDLL(None)


class TimeSpec(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Condition:
    """A pthread mutex and condition variable, and the count that they guard."""

    def __init__(self) -> None:
        # All zeros is what PTHREAD_MUTEX_INITIALIZER and PTHREAD_COND_INITIALIZER are on Linux.
        self.mutex, self.variable = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
        self.count = 0

    def add(self, *, broadcast: bool) -> None:
        """One more; wake one waiter or all."""
        LIBRARY.pthread_mutex_lock(self.mutex)
        self.count += 1
        LIBRARY.pthread_mutex_unlock(self.mutex)
        if broadcast:
            LIBRARY.pthread_cond_broadcast(self.variable)
        else:
            LIBRARY.pthread_cond_signal(self.variable)

    def wait_for(self, count: int, *, limit: bool) -> None:
        """Until the count is there."""
        until = TimeSpec(int(time.time()) + LIMIT_SECONDS, 0)
        LIBRARY.pthread_mutex_lock(self.mutex)
        while self.count < count:
            if limit:
                LIBRARY.pthread_cond_timedwait(self.variable, self.mutex, ctypes.byref(until))
            else:
                LIBRARY.pthread_cond_wait(self.variable, self.mutex)
        LIBRARY.pthread_mutex_unlock(self.mutex)


def work(log: Log, go: threading.Semaphore, done: Condition) -> None:
    """The waker: sleep or compute, then wake the main thread."""
    log.role("worker")
    for step in range(STEPS):
        go.acquire()
        if step % 2 == 0:
            with log.does("sleep"):
                time.sleep(BUSY_SECONDS)
        else:
            with log.does("compute"):
                compute(BUSY_SECONDS)
        broadcast = step % 4 >= 2
        log.wake("pthread_cond_broadcast" if broadcast else "pthread_cond_signal")
        done.add(broadcast=broadcast)


def body(log: Log) -> None:
    """Ask for work, wait for it, compute."""
    done, go = Condition(), threading.Semaphore(0)
    worker = threading.Thread(target=work, args=(log, go, done))
    worker.start()
    for step in range(STEPS):
        limit = step % 8 >= 4
        with annotate("step"):
            go.release()
            with log.wait("pthread_cond_timedwait" if limit else "pthread_cond_wait", "worker"):
                done.wait_for(step + 1, limit=limit)
            compute(0.001)
    worker.join()


if __name__ == "__main__":
    run(body)
