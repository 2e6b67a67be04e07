"""Which device each synchronization call waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import ApiCalls, match_launches
from nsysdiag.events.identity import joint, pid_of
from nsysdiag.events.operations import Operations
from nsysdiag.events.rows import distinct, distinct_values

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.trace import Trace

_UNKNOWN = -1


def synchronized_devices(
    trace: Trace, api_calls: ApiCalls, operations: Operations, device: IntArray, number_of: dict[tuple[int, int], int]
) -> IntArray:
    """For each call the number of the device that it synchronized with; -1 if unknown.

    A context belongs to one device, that of its operations: `device` has its number. The device number of the row
    itself is 0 for every context in most exports (nsys 2021 to 2026). So it counts only for contexts without operations
    that are in `number_of`: it maps (pid, the process's device number) to the number of the device.
    """
    result = np.full(len(api_calls.rows), _UNKNOWN, dtype=np.int32)
    sync = trace.read("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "globalPid", "deviceId", "contextId", "correlationId")
    call = match_launches(sync["globalPid"], sync["correlationId"], api_calls.rows)
    found = _by_context(sync, operations, device)
    said = np.full(len(sync), _UNKNOWN, dtype=np.int64)
    pids = pid_of(sync["globalPid"])
    for (pid, ordinal), number in number_of.items():
        said[(pids == pid) & (sync["deviceId"] == ordinal)] = number
    # Rows are believed in processes none of whose rows names another device than the one on which the operations of its
    # context ran.
    wrong = (found != _UNKNOWN) & (found != said)
    believed = ~np.isin(sync["globalPid"], distinct_values(sync["globalPid"][wrong]))
    found = np.where((found == _UNKNOWN) & believed, said, found)
    matched = call >= 0
    result[call[matched]] = found[matched]
    return result


def _by_context(sync: Columns, operations: Operations, device: IntArray) -> IntArray:
    """The device on which all operations of each row's context ran, -1 where none did, or several."""
    works = np.flatnonzero(~operations.migration)
    _, process = distinct(np.concatenate((operations.process[works], sync["globalPid"])))
    contexts, context = distinct(np.concatenate((operations.context[works], sync["contextId"])))
    keys, key = distinct(joint(process, context, len(contexts)))
    lowest, highest = np.full(len(keys), np.iinfo(np.int64).max), np.full(len(keys), _UNKNOWN)
    np.minimum.at(lowest, key[: len(works)], device[works])
    np.maximum.at(highest, key[: len(works)], device[works])
    of_key: IntArray = np.where(lowest == highest, highest, _UNKNOWN)
    return of_key[key[len(works) :]]
