"""How a process of ours asks for memory."""

from __future__ import annotations

import ctypes
import sys

from nsysdiag.arrays.spill import evict

_M_MMAP_MAX, _M_ARENA_MAX = -4, -8
_library = ctypes.CDLL(None) if sys.platform != "win32" else None


def share_one_heap() -> None:
    """Let all threads use one heap, where the C library has several: each keeps what it freed for itself, and what one
    thread read stays until the end. Large arrays are in it too: mapped by itself, each has its pages cleared anew.

    Only for a process of our own; elsewhere than with glibc nothing happens."""
    mallopt = getattr(_library, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_MAX, 0)


def trim() -> None:
    """Evict what was spilled, and give memory that was freed back to the system, between two stages: glibc keeps it
    otherwise, in pieces that the arrays of the next stage may not fit into."""
    evict()
    trim = getattr(_library, "malloc_trim", None)
    if trim is not None:
        trim(0)
