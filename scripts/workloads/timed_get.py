"""Waits with a time limit, as data loaders make them: queue.Queue.get and multiprocessing.Queue.get with a timeout.

A thread computes what the one queue gets, a forked child what the other one gets, in turn and on demand.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Callable

from waitlog import Log, annotate, compute, run

STEPS = 40
COMPUTE_SECONDS = 0.010
CONSUME_SECONDS = 0.001
LIMIT_SECONDS = 5
PAYLOAD = bytes(1 << 12)


def produce(log: Log, take: Callable[[], object], put: Callable[[bytes], None], how: str) -> None:
    """Wait to be asked, compute, hand over."""
    for _ in range(STEPS // 2):
        take()
        with log.does("compute"):
            compute(COMPUTE_SECONDS)
        log.wake(how)
        put(PAYLOAD)


def child(log: Log, asked: multiprocessing.Semaphore, pieces: multiprocessing.Queue[bytes]) -> None:
    """The forked producer."""
    log.fork("child")
    produce(log, asked.acquire, pieces.put, "multiprocessing.Queue.put")
    log.role("feeder", tid=pieces._thread.native_id, does="lock")
    log.save()


def thread(log: Log, asked: threading.Semaphore, pieces: queue.Queue[bytes]) -> None:
    """The producer thread."""
    log.role("producer")
    produce(log, asked.acquire, pieces.put, "queue.put")


def body(log: Log) -> None:
    """Ask for a piece and wait for it with a time limit, from one producer and the other in turn."""
    context = multiprocessing.get_context("fork")
    far_asked, far = context.Semaphore(0), context.Queue()
    near_asked, near = threading.Semaphore(0), queue.Queue()
    workers = [
        context.Process(target=child, args=(log, far_asked, far)),
        threading.Thread(target=thread, args=(log, near_asked, near)),
    ]
    for worker in workers:
        worker.start()
    for _ in range(STEPS // 2):
        with annotate("step"):
            near_asked.release()
            with log.wait("queue.get with a timeout", "producer"):
                near.get(timeout=LIMIT_SECONDS)
            far_asked.release()
            with log.wait("multiprocessing.Queue.get with a timeout", "feeder", "child"):
                far.get(timeout=LIMIT_SECONDS)
            compute(CONSUME_SECONDS)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    run(body)
