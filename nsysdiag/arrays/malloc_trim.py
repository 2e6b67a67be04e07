"""Settings of glibc malloc for nsysdiag's own processes."""

from __future__ import annotations

import ctypes
import sys

from nsysdiag.arrays.spill import evict

_M_MMAP_MAX, _M_ARENA_MAX = -4, -8
_library = ctypes.CDLL(None) if sys.platform != "win32" else None


def share_one_heap() -> None:
    """Let all threads share one malloc arena, so that memory freed by one thread can be reused by another.

    Large arrays are allocated in it too, which avoids clearing new pages for each. Only for nsysdiag's own processes;
    does nothing without glibc."""
    mallopt = getattr(_library, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_MAX, 0)


def trim() -> None:
    """Between two stages, evict spilled arrays and return freed memory to the system. Otherwise glibc keeps it in
    pieces that may not fit the arrays of the next stage."""
    evict()
    trim = getattr(_library, "malloc_trim", None)
    if trim is not None:
        trim(0)
