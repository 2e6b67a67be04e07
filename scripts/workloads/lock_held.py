"""The launching thread wants a lock that another thread holds while it computes."""

from __future__ import annotations

import threading

from device import MS, open_device
from waitlog import Log, compute, run, steps

STEPS = 20
WORK_NS = 2 * MS
HELD_SECONDS = 0.008


def hold(log: Log, lock: threading.Lock, go: threading.Semaphore, held: threading.Semaphore) -> None:
    """The other thread: takes the lock, says so, computes, lets go."""
    log.role("holder")
    for _ in range(STEPS):
        go.acquire()
        with lock:
            held.release()
            with log.does("compute"):
                compute(HELD_SECONDS)
            log.wake("Lock.release")


def body(log: Log) -> None:
    """Work, wait for it, let the other thread take the lock, ask for it."""
    device = open_device(log)
    lock, go, held = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
    holder = threading.Thread(target=hold, args=(log, lock, go, held))
    holder.start()
    for _ in steps(log, STEPS):
        device.work(WORK_NS)
        device.synchronize()
        go.release()
        held.acquire()
        with log.injected("lock_wait"), log.wait("Lock.acquire", "holder"):
            lock.acquire()
        lock.release()
    holder.join()


if __name__ == "__main__":
    run(body)
