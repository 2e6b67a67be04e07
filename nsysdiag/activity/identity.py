"""Packed ids of an export: globalTid = hardware << 56 | vm << 48 | pid << 24 | tid; globalPid has no tid."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.signedinteger[Any]]
BoolArray = npt.NDArray[np.bool_]

_LOW_24_BITS = 0xFFFFFF


@overload
def process_of(thread: int) -> int: ...
@overload
def process_of(thread: IntArray) -> IntArray: ...
def process_of(thread: int | IntArray) -> int | IntArray:
    """The globalPid of a globalTid."""
    return thread & ~_LOW_24_BITS


@overload
def pid_of(identity: int) -> int: ...
@overload
def pid_of(identity: IntArray) -> IntArray: ...
def pid_of(identity: int | IntArray) -> int | IntArray:
    """The operating system's process id in a globalTid or globalPid."""
    return (identity >> 24) & _LOW_24_BITS


@overload
def tid_of(thread: int) -> int: ...
@overload
def tid_of(thread: IntArray) -> IntArray: ...
def tid_of(thread: int | IntArray) -> int | IntArray:
    """The operating system's thread id in a globalTid."""
    return thread & _LOW_24_BITS
