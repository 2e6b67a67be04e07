"""The cut ends of a slice: launches whose kernels ran after its end, operations that were launched before it began.

```
slice            |-------------------------------------------------|
thread   [A][B]  .        [C]    [D]                       [E][F]   .
device           . [==A==)[==B==)[==C==)          [==D==============.   [==E==)[==F==)
                    no launch: A, B                        no kernel: E, F
```
"""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, distinct_values, taken

MOST_QUEUED = 1_024
"""About how many launches a stream queues before a launch call blocks (CUDA's launch queue): no more are cut."""
_DEVICE_SYNC = re.compile(r"cuda(Device|Thread)Synchronize|cuCtxSynchronize")


def run_after_the_end(activity: DeviceActivity, launches: IntArray, unseen: BoolArray) -> BoolArray:
    """Which of the kernel launches, rows of the table of calls, have no kernel because the slice ends before it."""
    result = np.zeros(len(launches), dtype=np.bool_)
    process = process_of(taken(activity.api_calls.rows.thread, launches))
    for owner in distinct_values(process[unseen]).tolist():
        mine = np.flatnonzero(unseen & (process == owner))
        cut = _behind_the_last(activity, owner, launches[mine])
        result[mine[cut]] = True
    return result


def _behind_the_last(activity: DeviceActivity, process: int, launches: IntArray) -> BoolArray:
    """Launches after the launch of the last started kernel, if earlier work may still run when the calls of the process
    end. They are no older than its longest operation, no more than the queue holds, and no device synchronization
    returned after them."""
    calls, operations = activity.api_calls.rows, activity.operations
    its = np.flatnonzero(operations.process == process)
    kernels = its[operations.category[its] == Category.KERNEL]
    if len(kernels) == 0:
        return np.zeros(len(launches), dtype=np.bool_)
    last = kernels[np.argmax(operations.start[kernels])]
    issued = calls.start[activity.launch[last]] if activity.launch[last] >= 0 else operations.start[last]
    cut: BoolArray = calls.start[launches] > issued
    own = np.flatnonzero(process_of(calls.thread) == process)
    stopped = int(calls.end[own].max()) - int(operations.end[its].max())
    longest = int((operations.end[its] - operations.start[its]).max())
    possible = np.count_nonzero(cut) <= MOST_QUEUED and stopped <= longest
    return cut & possible & ~_synchronized_after(activity, own, launches)


def _synchronized_after(activity: DeviceActivity, own: IntArray, launches: IntArray) -> BoolArray:
    """Launches after which a synchronization of the device began and came back, as all calls that slices hold did:
    their kernels have run."""
    calls = activity.api_calls.rows
    waits = named_like(activity.api_calls.names, _DEVICE_SYNC)
    done = own[waits[calls.name[own]]]
    result: BoolArray = calls.start[launches] < int(calls.start[done].max(initial=-1))
    return result


def launched_before_the_begin(device: DeviceTimeline, activity: DeviceActivity) -> BoolArray:
    """Operations of a device whose launch is before the slice. Their correlation ids are below those of all calls of
    their process, and they are no more than the queues of its streams hold."""
    operations = device.operations
    processes, process = distinct(operations.process)
    first = np.array([activity.first_correlation.get(each, 0) for each in processes.tolist()], dtype=np.int64)
    before: BoolArray = (device.launch < 0) & (operations.correlation > 0)
    before &= operations.correlation < first[process] if len(processes) else False
    ids, number = distinct(operations.correlation[before])
    launches = distinct_values(joint(process[before], number, len(ids)))
    queues = len(distinct_values(device.stream_code[before]))
    return before & (len(launches) <= MOST_QUEUED * queues)
