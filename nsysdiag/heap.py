"""How a process of ours asks for memory."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8


def share_one_heap() -> None:
    """Let all threads use one heap, where the C library has several: each keeps what it freed for itself, and what one
    thread read stays until the end. Only for a process of our own; elsewhere than with glibc nothing happens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
