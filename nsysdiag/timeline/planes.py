"""Whole numbers as planes of bytes: neighbours differ in low bytes and share high ones, which compresses well."""

from __future__ import annotations

import numpy as np

from nsysdiag.timeline.intervals import IntArray

_WIDEST = 8


def to_planes(values: IntArray) -> bytes:
    """The lowest byte of every value, then the next one of each, as many as the largest needs; values from 0 up.

    ```
    1, 2, 258   ->   01 02 02   00 00 01
    ```
    Raises ValueError for a value below 0.
    """
    if len(values) == 0:
        return b""
    if int(values.min()) < 0:
        raise ValueError("planes hold no number below 0")
    width = max((int(values.max()).bit_length() + 7) // 8, 1)
    return values.astype("<u8").view(np.uint8).reshape(-1, _WIDEST)[:, :width].T.tobytes()


def from_planes(data: bytes, count: int) -> IntArray:
    """The `count` values back. Raises ValueError where the planes are not all of that length."""
    if count == 0 and not data:
        return np.empty(0, dtype=np.int64)
    if count <= 0 or not data or len(data) % count or len(data) > count * _WIDEST:
        raise ValueError(f"{len(data)} bytes are no planes of {count} numbers")
    whole = np.zeros((count, _WIDEST), dtype=np.uint8)
    planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, count)
    whole[:, : len(planes)] = planes.T
    return whole.reshape(-1).view("<u8").astype(np.int64)
