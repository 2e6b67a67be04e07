"""The terms of the field that reports use, each explained in a sentence: the tooltips of the page, and a page of the
documentation."""

from __future__ import annotations

TERMS = {
    "blocking copy": "A copy whose call returns only when the copy is done: the thread cannot launch meanwhile.",
    "busy": "The share of the time in which at least one kernel, copy, memory set or graph runs on the GPU.",
    "collective": "An operation that several GPUs do together, such as an all-reduce: each waits for the last one.",
    "confidence": "The share of the time behind a claim for which the trace holds evidence.",
    "CUDA graph": "Many operations that one call launches together.",
    "dashboard": "What nvidia-smi and most monitors show: the time in which any kernel runs, even a small one.",
    "exposed communication": "Communication while no kernel computes: the time by which it makes the step longer.",
    "exposed copies": "Copies while neither kernels compute nor GPUs communicate: the time by which they make the step "
    "longer.",
    "gap": "A time without any work on the GPU, between one operation and the next.",
    "gap group": "Gaps between the same operations in the same NVTX range, with the same largest cause, added up.",
    "host code": "What the thread that launches does on the CPU outside of CUDA and of the operating system.",
    "idle": "The GPU runs no kernel, copy, memory set or graph.",
    "judged time": "The part of the run that the diagnosis is about: the steady steps if there are any.",
    "launch latency": "The time from a launch call to the start of its kernel on an idle GPU.",
    "launch overhead": "Time in which the GPU is idle while a launch is made, or is on its way to the GPU.",
    "launch-bound": "Kernels take less time than their launches, so the host sets the pace.",
    "NVTX": "Ranges that a program marks in its own code, shown by name in a trace.",
    "off CPU": "A thread that runs on no CPU: it waits, or another thread has its CPU.",
    "outstanding": "Launched and not yet finished.",
    "p50": "The median: half of the values are smaller.",
    "p95": "95 of 100 values are smaller.",
    "pageable": "Host memory that the system may move: its copies take an extra step, and rarely run while kernels do.",
    "pinned": "Host memory that stays in its place, so that the GPU copies it directly while kernels run.",
    "preempted": "A thread is ready to run, but another one has its CPU.",
    "replay": "The program is run again as a model of its launches, waits and kernels, with the fix in place.",
    "root cause": "What the thread did that ended the wait: a wait is charged to it rather than to the wait itself.",
    "SM": "Streaming multiprocessor: one of the parts of a GPU that run blocks of threads.",
    "steady": "Steps that repeat in much the same way, after the start-up.",
    "straggler": "A GPU that comes last to collectives, so that the others wait for it.",
    "stream": "A queue of the GPU: its operations run one after the other.",
    "synchronization": "A call in which a thread waits until the GPU has finished.",
    "unified memory": "Memory that moves between host and GPU by itself when one of them touches it.",
}
"""Each term as it is written inside a sentence, and what it means."""
