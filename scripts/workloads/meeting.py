"""Where processes meet that run side by side: a file that each of them maps."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path

import numpy as np

MOST = 1 << 12
NAP_S, LONG_NAP_S = 50e-6, 5e-3
PATIENCE_S = 30


class Meeting:
    """One rank among several. Each says when it is ready for its next collective, and so all know when that ran."""

    def __init__(self, path: Path, rank: int, count: int) -> None:
        self.rank, self.count, self._path = rank, count, path
        self._times = mapped(path, (MOST, count))
        self._next = 0
        self._over = 0

    def ready(self, time_ns: int) -> int:
        """The number of this rank's next collective, for which it is ready at a time."""
        number, self._next = self._next, self._next + 1
        self._times[number, self.rank] = time_ns
        return number

    def span(self, number: int, ns: int) -> tuple[int, int]:
        """When this rank's part of a collective began and when all were done; asked for one after the other, and
        answered once every rank has said when it is ready."""
        self._wait(number, NAP_S)
        starts = np.maximum(self._times[number], self._over)
        self._over = int(starts.max()) + ns
        return int(starts[self.rank]), self._over

    def gather(self) -> None:
        """Return when all ranks are here."""
        self._wait(self.ready(1), LONG_NAP_S)

    def _wait(self, number: int, nap: float) -> None:
        until = time.monotonic() + PATIENCE_S
        while not self._times[number].all():
            if time.monotonic() > until:
                raise TimeoutError("the other ranks do not come")
            time.sleep(nap)

    def join_torch(self) -> None:
        """The process group of PyTorch, where there is more than one rank."""
        if self.count > 1:
            import torch

            at = self._path.with_suffix(".group").as_uri()
            torch.distributed.init_process_group("nccl", init_method=at, rank=self.rank, world_size=self.count)


class Shared:
    """A device that several processes use, one operation after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free = mapped(path, (1,))

    def reserve(self, earliest: int, ns: int) -> int:
        """When an operation of so many ns begins that may begin at a time."""
        with self._path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            start = max(earliest, int(self._free[0]))
            self._free[0] = start + ns
        return start


def mapped(path: Path, shape: tuple[int, ...]) -> np.memmap:
    """Numbers in a file, all zero at first."""
    return np.memmap(path, np.int64, "r+" if path.exists() else "w+", shape=shape)
