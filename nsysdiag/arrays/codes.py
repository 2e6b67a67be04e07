"""Arrays and bytes as short text: planes of bytes, which compress well, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np

from nsysdiag.arrays.intervals import IntArray

WIDEST = 8
"""Bytes of a number at most."""
_FARTHEST = 2.0**62
"""The time between two points this side of it fits into 64 bits."""


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
    return values.astype("<u8").view(np.uint8).reshape(-1, WIDEST)[:, :width].T.tobytes()


def from_planes(data: bytes, count: int) -> IntArray:
    """The `count` values back. Raises ValueError where the planes are not all of that length, or a value is beyond 63
    bits."""
    if count == 0 and not data:
        return np.empty(0, dtype=np.int64)
    if count <= 0 or not data or len(data) % count or len(data) > count * WIDEST:
        raise ValueError(f"{len(data)} bytes are no planes of {count} numbers")
    whole = np.zeros((count, WIDEST), dtype=np.uint8)
    planes = np.frombuffer(data, dtype=np.uint8).reshape(-1, count)
    whole[:, : len(planes)] = planes.T
    values = whole.reshape(-1).view("<u8").astype(np.int64)
    if int(values.min()) < 0:
        raise ValueError("a number of more than 63 bits")
    return values


def running_sums(steps: IntArray, base: int = 0) -> IntArray:
    """`base` and the sum of the steps up to each, as points in time. Raises ValueError where one is too large for
    that: sums would wrap around."""
    sums = np.cumsum(steps, dtype=np.float64) + base
    if len(sums) and float(np.abs(sums).max()) >= _FARTHEST:
        raise ValueError("times beyond 62 bits")
    return base + np.cumsum(steps, dtype=np.int64)


MOST_EXPANSION = 1032 * 3 // 4 + 1
"""Bytes that one character of text can stand for. By its documentation zlib expands by at most 1032; base64 takes four
characters for three bytes."""


def to_text(data: bytes, effort: int) -> str:
    """`effort` is that of zlib, from 1 for fast to 9 for small."""
    return base64.b64encode(zlib.compress(data, effort)).decode("ascii")


def from_text(text: str, most: int) -> bytes:
    """The unpacked bytes. Never unpacks more than `most` + 1 bytes, which the caller knows from the stored count.

    Raises ValueError where the text is damaged or holds more than `most` bytes."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b64decode(text, validate=True), max(most, 0) + 1)
    except zlib.error as error:
        if "Error -4" in str(error):  # Z_MEM_ERROR
            raise MemoryError from error
        raise ValueError("not compressed by zlib") from error
    if not reader.eof or len(data) > most:
        raise ValueError("cut short, or too much")
    return data


def names_from(text: str, most: int) -> list[str]:
    """A packed JSON list of texts of at most `most` bytes; of none, none. Raises ValueError where it is anything
    else."""
    try:
        names = json.loads(from_text(text, most)) if text else []
    except RecursionError as error:
        raise ValueError("nested without end") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of texts")
    return names
