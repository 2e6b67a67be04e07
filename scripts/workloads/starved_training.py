"""Two ranks train on batches that a worker process of each reads and decodes too slowly, every eighth one above all;
what one rank waits for, the other waits for in the all-reduce."""

from __future__ import annotations

import ctypes
import os
import queue
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
from device import US, Device, open_device, torch
from loader import Load, batches
from meeting import Meeting
from waitlog import Log, annotate, folder_on_disk, run, steps, uncached_file

RANKS = 2
STEPS, LAYERS, BUCKET, PARAMETERS = 30, 12, 4, 32
FORWARD = {"linear": 160 * US, "layer_norm": 40 * US}
BACKWARD = {"linear_input_grad": 180 * US, "linear_weight_grad": 160 * US, "layer_norm_grad": 50 * US}
REDUCE_NS = 420 * US
IMAGES, FEATURES = 1_200 * (1 << 10), 24 << 20
SHARD, SLOW_SHARD, SLOW_EVERY = 4 << 20, 20 << 20, 8
TOKEN = bytes(1 << 10)
"""Workers hand over where a batch lies in shared memory, not the batch."""
PR_SET_NAME = 15


def body(log: Log) -> None:
    """The first rank, which starts the other ones."""
    ranks = RANKS if torch is None else min(RANKS, max(1, torch.cuda.device_count()))
    with folder_on_disk() as folder:
        here = Meeting(Path(folder) / "meeting", 0, ranks)
        command = [sys.executable, __file__, *(sys.argv[1:2] or [""]), folder]
        others = [subprocess.Popen([*command, str(rank)]) for rank in range(1, ranks)]
        train(log, here, folder)
        for other in others:
            other.wait()


def another_rank(folder: str, rank: int) -> None:
    """A rank that was started by the first."""
    log = Log()
    log.whose = f" of rank {rank}"
    log.role("main")
    train(log, Meeting(Path(folder) / "meeting", rank, RANKS), folder)
    log.save()


def train(log: Log, meeting: Meeting, folder: str) -> None:
    """All steps of a rank."""
    size = STEPS * SHARD + (STEPS // SLOW_EVERY + 1) * SLOW_SHARD
    with uncached_file(Path(folder) / f"images.{meeting.rank}", size) as descriptor:
        meeting.gather()
        device = open_device(log, meeting)
        loader = batches(log, loading(log, meeting, descriptor), STEPS)
        features = device.host_buffer(FEATURES, pinned=True)
        backward = Backward(log, device)
        for _ in steps(log, STEPS):
            with log.injected("data_loading", shown=False), log.wait("next(dataloader)", "feeder", "worker"):
                next(loader)
            one_step(device, features, backward)
        backward.end()


def one_step(device: Device, features: object, backward: Backward) -> None:
    """What follows once the batch is there."""
    device.copy_in(features)
    with annotate("forward"):
        for _ in range(LAYERS):
            for name, ns in FORWARD.items():
                device.work(ns, name)
    backward()
    with annotate("clip_grad_norm_"):
        device.read_back()
    with annotate("optimizer"):
        for _ in range(PARAMETERS):
            device.tiny("adam")


class Backward:
    """The thread that launches the backward pass, and the all-reduce of each bucket of gradients once it is full."""

    def __init__(self, log: Log, device: Device) -> None:
        self._log, self._device = log, device
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __call__(self) -> None:
        """Return when everything is launched."""
        self._asked.put(True)
        with self._log.wait("backward", "autograd"):
            self._done.get()

    def end(self) -> None:
        """No more steps."""
        self._asked.put(False)
        self._thread.join()

    def _run(self) -> None:
        named("pt_autograd_0")
        self._log.role("autograd", does="compute")
        while self._asked.get():
            for layer in range(1, LAYERS + 1):
                for name, ns in BACKWARD.items():
                    self._device.work(ns, name)
                if layer % BUCKET == 0:
                    self._device.all_reduce(REDUCE_NS)
            self._log.wake("queue.SimpleQueue.put")
            self._done.put(None)


def loading(log: Log, meeting: Meeting, descriptor: int) -> Load:
    """Reads a shard and decodes the images of a batch; slow shards are of different steps on different ranks."""
    pixels = np.cumsum(np.random.default_rng(0).integers(-2, 3, IMAGES, np.int8), dtype=np.uint8)
    packed = zlib.compress(pixels.tobytes(), 1)
    slow = SLOW_EVERY // 2 + SLOW_EVERY // 2 * meeting.rank - 1
    place = 0

    def load(number: int) -> bytes:
        nonlocal place
        if number == 0:
            named("pt_data_worker")
        size = SLOW_SHARD if number % SLOW_EVERY == slow else SHARD
        with log.does("io"):
            os.pread(descriptor, size, place)
        place += size
        with log.does("compute"):
            decode(packed)
        return TOKEN

    return load


def decode(packed: bytes) -> np.ndarray:
    """Images as numbers around zero."""
    pixels = np.frombuffer(zlib.decompress(packed), np.uint8).astype(np.float32)
    return (pixels - pixels.mean()) / pixels.std()


def named(name: str) -> None:
    """Give the calling thread a name, as PyTorch does."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        another_rank(sys.argv[2], int(sys.argv[3]))
    else:
        run(body)
