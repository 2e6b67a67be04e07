"""The shapes in which kernels were launched: few among many launches, so each launch holds a place in a table."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.trace.columns import Columns

SHAPE_COLUMNS = ("blocks", "threadsPerBlock", "registersPerThread", "sharedMemory")
# The most that CUDA allows of each: threads a block, registers a thread, bytes of shared memory a block.
_THREADS_BITS, _REGISTERS_BITS, _SHARED_BITS = 11, 8, 18
_BLOCKS_BITS = 63 - _THREADS_BITS - _REGISTERS_BITS - _SHARED_BITS
SAMPLE = 4096


class LaunchShapes(Rows, frozen=True):
    """One row for each shape: blocks of the grid, threads per block, registers per thread, and bytes of shared memory
    per block (static and dynamic)."""

    blocks: IntArray
    threads: IntArray
    registers: IntArray
    shared_memory: IntArray


def launch_shapes(kernels: Columns) -> tuple[LaunchShapes, IntArray]:
    """The shapes that occur, and each kernel's place among them: -1 where a number is missing or cannot be."""
    blocks, threads, registers, shared = (kernels.integers(name) for name in SHAPE_COLUMNS)
    # Almost always the blocks fit as they are; else their place among the numbers that occur does.
    grids, grid = (None, blocks) if blocks.max(initial=0) < 1 << _BLOCKS_BITS else _places(blocks)
    # One number for each shape: comparing numbers is faster than comparing rows.
    key = (grid << _THREADS_BITS) | threads
    key = (key << _REGISTERS_BITS) | registers
    key = (key << _SHARED_BITS) | shared
    known = blocks > 0
    for values, least, bits in (
        (threads, 1, _THREADS_BITS),
        (registers, 0, _REGISTERS_BITS),
        (shared, 0, _SHARED_BITS),
    ):
        known &= (values >= least) & (values < 1 << bits)
    if known.all():
        shapes, place = _places(key)
        place = place.astype(np.int32)
    else:
        place = np.full(len(key), -1, dtype=np.int32)
        shapes, place[known] = _places(key[known])
    return _unpacked(shapes, grids), place


def _unpacked(key: IntArray, grids: IntArray | None) -> LaunchShapes:
    rest = key >> _SHARED_BITS
    grid = rest >> (_REGISTERS_BITS + _THREADS_BITS)
    return LaunchShapes(
        blocks=grid if grids is None else grids[grid],
        threads=(rest >> _REGISTERS_BITS) & ((1 << _THREADS_BITS) - 1),
        registers=rest & ((1 << _REGISTERS_BITS) - 1),
        shared_memory=key & ((1 << _SHARED_BITS) - 1),
    )


def _places(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, sorted, and each row's place among them. Where a sample of the rows holds almost all values,
    a search among few is several times faster than a sort of all rows."""
    if len(values) <= SAMPLE:
        return distinct(values)
    few = np.unique(values[:: len(values) // SAMPLE])
    if 2 * len(few) > SAMPLE:
        return distinct(values)
    missing = few[np.minimum(np.searchsorted(few, values), len(few) - 1)] != values
    if missing.any():
        few = np.union1d(few, values[missing])
    return few, np.searchsorted(few, values).astype(np.int64, copy=False)
