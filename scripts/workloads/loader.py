"""A data loader with one worker process: PyTorch's where it is installed, else a process and a queue."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator

from device import MS, Device
from waitlog import Log, steps

try:
    from torch.utils.data import DataLoader
except ImportError:
    DataLoader = None

WORK_NS = 2 * MS
AHEAD = 2
"""Batches that the worker may have ready."""
Load = Callable[[int], bytes]
"""Makes the batch of a number."""


def train(log: Log, device: Device, load: Load, count: int) -> None:
    """So many steps: take a batch, work on it, wait for that."""
    loader = batches(log, load, count)
    for _ in steps(log, count):
        with log.injected("data_loading"), log.wait("batch", "feeder", "worker"):
            next(loader)
        device.work(WORK_NS)
        device.synchronize()


def batches(log: Log, load: Load, count: int) -> Iterator[bytes]:
    """So many batches, made by a worker process that was forked."""
    if DataLoader is None:
        return plain(log, load, count)
    return iter(
        DataLoader(
            Batches(log, load, count),
            batch_size=None,
            num_workers=1,
            prefetch_factor=AHEAD,
            multiprocessing_context="fork",
        )
    )


class Batches:
    """A dataset as PyTorch wants it; what its worker does is in the log after each batch."""

    def __init__(self, log: Log, load: Load, count: int) -> None:
        self._log, self._load, self._count, self._process = log, load, count, os.getpid()
        self._fed = False

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> bytes:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._log.fork("worker")
        batch = self._load(index)
        # The queue's own thread is there once the first batch was put into it.
        feeder = next((each for each in threading.enumerate() if each.name == "QueueFeederThread"), None)
        if feeder is not None and not self._fed:
            self._fed = True
            self._log.role("feeder", tid=feeder.native_id, does="lock")
        self._log.wake("multiprocessing.Queue.put")
        self._log.save()
        return batch


def plain(log: Log, load: Load, count: int) -> Iterator[bytes]:
    """The same without PyTorch."""
    context = multiprocessing.get_context("fork")
    ready: multiprocessing.Queue[bytes] = context.Queue(AHEAD)
    worker = context.Process(target=produce, args=(log, load, count, ready))
    worker.start()
    for _ in range(count):
        yield ready.get()
    worker.join()


def produce(log: Log, load: Load, count: int, ready: multiprocessing.Queue[bytes]) -> None:
    """The worker: a batch after the other, as many ahead as the queue takes."""
    log.fork("worker")
    for number in range(count):
        batch = load(number)
        log.wake("multiprocessing.Queue.put")
        ready.put(batch)
    feeder = ready._thread
    log.role("feeder", tid=feeder.native_id, does="lock")
    log.save()
