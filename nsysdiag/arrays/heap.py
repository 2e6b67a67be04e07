"""Memory and threads of nsysdiag's own processes: one heap that keeps what is freed, and NumPy in one thread."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_KEPT_BYTES = 1 << 30
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_library = ctypes.CDLL(None) if sys.platform != "win32" else None


def share_one_heap() -> None:
    """Let all threads share one malloc arena, so that memory freed by one thread can be reused by another.

    Large arrays are allocated in it too. What is freed stays in it until `give_back`: the system would clear its pages
    for the next array. Only for nsysdiag's own processes; does nothing without glibc."""
    mallopt = getattr(_library, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    _import_numpy()


def _import_numpy() -> None:
    """Import NumPy so that OpenBLAS multiplies in the calling thread. Its other threads wait for the next product at
    full load, and the products here are short. Programs that are started later do not see the variable."""
    if _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_BLAS_THREADS]


def give_back() -> None:
    """Return freed memory to the system; does nothing without glibc."""
    malloc_trim = getattr(_library, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
