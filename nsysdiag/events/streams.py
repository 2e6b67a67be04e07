"""Streams: one code for each (process, context, stream), and which of them is a legacy default stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.identity import pid_of
from nsysdiag.events.rows import distinct
from nsysdiag.trace.enums import StreamFlag

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.trace import Trace

_NO_STREAM = 0xFFFFFFFF


class Streams(Struct, frozen=True):
    """`null` and `non_blocking` say for each code what the tables of streams and contexts hold of the stream."""

    null: BoolArray
    non_blocking: BoolArray


def stream_codes(process: IntArray, context: IntArray, stream: IntArray) -> tuple[IntArray, list[tuple[int, int, int]]]:
    """The code of each row's stream, and (process, context, stream) of each code."""
    keys: list[IntArray] = []
    code = np.zeros(len(process), dtype=np.int64)
    for column in (process, context, stream):
        values, inverse = distinct(column)
        combined, code = distinct(code * max(len(values), 1) + inverse)
        keys = [key[combined // max(len(values), 1)] for key in keys] + [values[combined % max(len(values), 1)]]
    return code, list(zip(*(key.tolist() for key in keys), strict=True))


def describe_streams(trace: Trace, keys: list[tuple[int, int, int]]) -> Streams:
    """What the export says of each stream; a stream that it does not mention is neither null nor non-blocking."""
    table = trace.read("TARGET_INFO_CUDA_STREAM", "processId", "contextId", "streamId", "flag")
    flagged = _tuples(table, "processId", "contextId", "streamId", "flag")
    old = trace.read("TARGET_INFO_CUDA_NULL_STREAM", "processId", "contextId", "streamId")
    contexts = trace.read("TARGET_INFO_CUDA_CONTEXT_INFO", "processId", "contextId", "nullStreamId")
    null = {key[:3] for key in flagged if key[3] == StreamFlag.NULL}
    null |= set(_tuples(old, "processId", "contextId", "streamId"))
    named = _tuples(contexts, "processId", "contextId", "nullStreamId")
    null |= {key for key in named if key[2] not in (-1, _NO_STREAM)}
    # A stream that rows contradict each other about is what most restricts it: null before non-blocking.
    non_blocking = {key[:3] for key in flagged if key[3] == StreamFlag.NON_BLOCKING} - null
    known = [(pid_of(process), context, stream) for process, context, stream in keys]
    return Streams(
        null=np.array([key in null for key in known], dtype=np.bool_),
        non_blocking=np.array([key in non_blocking for key in known], dtype=np.bool_),
    )


def _tuples(table: Columns, *names: str) -> list[tuple[int, ...]]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def previous_on_stream(code: IntArray) -> IntArray:
    """For each operation, in order of start, the one before it on its stream; -1 for a stream's first."""
    order = np.argsort(code, kind="stable")
    follows = code[order][1:] == code[order][:-1]
    previous = np.full(len(code), -1, dtype=np.int64)
    previous[order[1:][follows]] = order[:-1][follows]
    return previous
