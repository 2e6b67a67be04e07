"""Spills large arrays to unnamed memory-mapped files: the system reads the pages in use and drops the rest."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from contextlib import nullcontext
from functools import lru_cache
from operator import is_not
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable
    from types import TracebackType

    import numpy.typing as npt


T = TypeVar("T")

LEAST_BYTES, PARTS = 1_000_000, 64
"""Records whose arrays are smaller together stay in memory, and so do arrays of less than one of so many parts of that.
With four times as much, the analysis of 1,000,000 kernels took 10 to 20% more memory, in the same CPU time; with a
quarter it took as much."""
ALIGNED = 64
"""Where in a file an array may begin: at a multiple of so many bytes, a line of the caches of most processors."""
LOOK_S, MOST_IN_MEMORY = 0.003, 40 << 20
"""So often is looked how much of files is in memory, and so much may be: libraries are 28 MiB of it. With 10 ms,
1,000,000 kernels took up to 7% more memory in the same CPU time."""
LEAST_FREE, LEAST_GROWTH, GROWTH_PARTS = 32 << 20, 8 << 20, 32
"""Less freed memory, in bytes, is not returned. It is looked at again once the process has grown by so many bytes, and
by one part in so many."""
STATM = Path("/proc/self/statm")
ON_DISK = "/var/tmp"
MOUNTS = Path("/proc/self/mounts")
_FORGET = getattr(mmap, "MADV_DONTNEED", None) if sys.platform == "linux" else None
_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_mapping = threading.Lock()


def room() -> int:
    """How many bytes of arrays can be spilled to files."""
    folder = _folder()
    if _FORGET is None or _is_memory(folder):
        return 0
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def laid(record: T, *kept: object) -> T:
    """The same array or record of arrays (structs and tuples, however deep) with its large arrays in one file,
    read-only. The file is gone once nothing refers to any of them. What is `kept` stays in memory: it is in use
    elsewhere, so a copy in a file would free nothing.

    All arrays stay in memory if no file can hold them, or if the system has no call to drop pages."""
    spilling = _Spilling(kept)
    spilling.find(record)
    return spilling.replaced(record) if spilling.write() else record


def evict() -> None:
    """Drop the pages of spilled arrays from memory. Pages that are accessed again are read back by the system."""
    if _FORGET is None or not _mapped:
        return
    with _mapping:
        mapped = list(_mapped)
    for pages in mapped:
        pages.madvise(_FORGET)


class Evicting:
    """While it is entered, a thread of its own evicts spilled arrays whenever much of files is in memory. Whenever the
    process needs more other memory than ever before, it returns what is freed of it: of the first `unlimited` bytes
    nothing is returned."""

    def __init__(self, unlimited: int) -> None:
        self._most = unlimited
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nsysdiag-evict", daemon=True)

    def _run(self) -> None:
        with STATM.open("rb", buffering=0) if STATM.exists() else nullcontext() as statm:
            while not self._ended.is_set():
                time.sleep(LOOK_S)  # half the CPU time of a wait for the end
                files, others = _in_memory(statm)
                if files > MOST_IN_MEMORY:
                    evict()
                if others > self._most:
                    self._most = others + max(LEAST_GROWTH, others // GROWTH_PARTS)
                    trim(least=LEAST_FREE)

    def __enter__(self) -> None:
        if _FORGET is not None:
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        evict()


def _in_memory(statm: io.FileIO | None) -> tuple[int, int]:
    """How many bytes this process has in memory of files, which are spilled arrays and libraries, and of anything else.
    More of files than may be, and nothing else, if the system does not say. `statm` stays open: to open it takes four
    times as long as to read it."""
    try:
        _, every, files, *_ = (0,) * 3 if statm is None else map(int, _said(statm).split())
    except (OSError, ValueError):
        every = files = 0
    return (files * mmap.PAGESIZE, (every - files) * mmap.PAGESIZE) if every else (MOST_IN_MEMORY + 1, 0)


def _said(file: io.FileIO) -> bytes:
    """What a file of the system says now."""
    file.seek(0)
    return file.read(mmap.PAGESIZE)


class _Spilling:
    """Spills each array once, however many records hold it."""

    def __init__(self, kept: Iterable[object]) -> None:
        self._kept = {id(each) for each in kept}
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        self._laid: dict[int, npt.NDArray[Any]] = {}

    def find(self, thing: Any) -> None:
        """Look for arrays that are large enough together."""
        if id(thing) in self._kept:
            return
        if isinstance(thing, np.ndarray):
            if thing.nbytes > LEAST_BYTES // PARTS:
                self._arrays[id(thing)] = thing
        elif type(thing) is tuple:
            for each in thing:
                self.find(each)
        elif isinstance(thing, Struct):
            for name in thing.__struct_fields__:
                self.find(getattr(thing, name))

    def write(self) -> bool:
        """Write what was found into a file. False if it is little, or if no file can hold it."""
        if _FORGET is None or _bytes_of(self._arrays) < LEAST_BYTES:
            return False  # most records are small: nothing else of them is looked at
        plain = {key: each for key, each in self._arrays.items() if _is_plain(each)}
        if _bytes_of(plain) < LEAST_BYTES:
            return False
        try:
            if _is_memory(_folder()):
                return False
            self._laid = dict(zip(plain, _in_file(list(plain.values())), strict=True))
        except OSError:
            return False
        return True

    def replaced(self, thing: Any) -> Any:
        """The thing itself where nothing in it is laid anywhere else."""
        if id(thing) in self._kept:
            return thing
        if isinstance(thing, np.ndarray):
            return self._laid.get(id(thing), thing)
        if type(thing) is tuple:
            parts = tuple(map(self.replaced, thing))
            return parts if any(map(is_not, parts, thing)) else thing
        if not isinstance(thing, Struct):
            return thing
        values = {name: getattr(thing, name) for name in thing.__struct_fields__}
        changed = {name: laid for name, value in values.items() if (laid := self.replaced(value)) is not value}
        return replace(thing, **changed) if changed else thing


def _bytes_of(arrays: dict[int, npt.NDArray[Any]]) -> int:
    return sum(each.nbytes for each in arrays.values())


def _in_file(arrays: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """The same arrays in one file, one after another. Raises OSError."""
    ends = np.cumsum([-(-each.nbytes // ALIGNED) * ALIGNED for each in arrays]).tolist()
    places = [0, *ends[:-1]]
    with tempfile.TemporaryFile(buffering=0, dir=_folder()) as file:
        for array, place in zip(arrays, places, strict=True):
            file.seek(place)
            # Written, not mapped and filled: a full disk is then an error here, and no signal later.
            left = array.data.cast("B")
            while left:
                left = left[file.write(left) :]
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with _mapping:
        _mapped.add(pages)
    found = zip(arrays, places, strict=True)
    return [np.frombuffer(pages, each.dtype, each.size, place).reshape(each.shape) for each, place in found]


def _folder() -> str:
    """The folder of TMPDIR; else /var/tmp, as many systems keep /tmp in memory."""
    set_by_user = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    return tempfile.gettempdir() if set_by_user or not os.access(ON_DISK, os.W_OK | os.X_OK) else ON_DISK


@lru_cache
def _is_memory(folder: str) -> bool:
    """Whether files of this folder are kept in memory; False if the system does not say."""
    path = Path(folder).resolve()
    try:
        mounted = [line.split() for line in MOUNTS.read_text("utf-8", errors="surrogateescape").splitlines()]
    except OSError:
        return False
    kinds = {Path(place): kind for _, place, kind, *_ in mounted}
    nearest = next((kinds[above] for above in (path, *path.parents) if above in kinds), None)
    return nearest in ("tmpfs", "ramfs")


def _is_plain(array: npt.NDArray[Any]) -> bool:
    """Whether it is a contiguous array of numbers in memory."""
    if array.dtype.hasobject or not array.flags.c_contiguous:
        return False
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return not isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


# Settings of glibc malloc for nsysdiag's own processes.

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")
_SHARE_KEPT = 32
"""One part in so many of the memory that nothing uses is kept if freed: to clear its pages again for the next arrays
took 12 to 18% of the CPU time of 1,000,000 kernels."""
_SIZE_KEPT = 2
"""Of a large trace, one part in so many of its size may be kept: of five traces of 750 to 2,300 MB this took 2 to 13%
of the time by the clock away, for 70 MiB at most."""
_library = ctypes.CDLL(None) if sys.platform != "win32" else None


class Kept:
    """How many bytes of freed memory stay in the heap: `most` of this process, the least or more. Without a large trace
    the `limit` or less."""

    least: ClassVar[int] = 16 << 20
    limit: ClassVar[int] = 256 << 20
    most: ClassVar[int] = least


def share_one_heap() -> None:
    """Let all threads share one malloc arena, so that memory freed by one thread can be reused by another.

    Large arrays are allocated in it too. Some of what is freed stays in it: more if the machine has much memory left.
    Only for nsysdiag's own processes; does nothing without glibc."""
    mallopt = getattr(_library, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_MAX, 0)
        _keep(min(memory_left() // _SHARE_KEPT, Kept.limit))


def keep_for(size: int) -> None:
    """From now on keep as much freed memory as suits a trace of so many bytes, if the heap is shared."""
    if Kept.most > Kept.least:
        _keep(max(Kept.most, min(memory_left() // _SHARE_KEPT, size // _SIZE_KEPT)))


def keep_little() -> None:
    """From now on keep the least freed memory that there may be, as under a memory limit."""
    if Kept.most > Kept.least:
        _keep(Kept.least)


def _keep(most: int) -> None:
    mallopt = getattr(_library, "mallopt", None)
    if mallopt is not None:
        Kept.most = max(Kept.least, most)
        mallopt(_M_TRIM_THRESHOLD, Kept.most)


def memory_left() -> int:
    """The bytes of memory that nothing uses, in the machine and in a container that sees its own limits (version 2 of
    control groups); 0 if the system does not say."""
    try:
        said = dict(line.split(":", 1) for line in MEMORY.read_text("ascii").splitlines())
        left = int(said["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 0
    try:
        limit, used = (int((CONTAINER / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # `max` is not a number
        return left
    return max(0, min(left, limit - used))


def trim(least: int | None = None) -> None:
    """Between two stages, return freed memory to the system if there is more than is kept, or more than the `least`
    bytes; does nothing without glibc. Otherwise glibc keeps it in pieces that may not fit the arrays of the next
    stage."""
    malloc_trim = getattr(_library, "malloc_trim", None)
    if malloc_trim is not None and _free_bytes() >= (Kept.most if least is None else least):
        malloc_trim(0)


class _HeapSizes(ctypes.Structure):
    """What glibc says of its heap: `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ["arena", "parts", "fast", "mapped", "in_maps", "top", "in_fast", "used", "free", "tail"]
    )


def _free_bytes() -> int:
    """How much of the heap is free; all that can be counted if glibc, before 2.33, does not say."""
    mallinfo = getattr(_library, "mallinfo2", None)
    if mallinfo is None:
        return sys.maxsize
    mallinfo.restype = _HeapSizes
    return mallinfo().free
