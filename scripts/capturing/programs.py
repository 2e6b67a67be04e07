"""The programs of scripts/workloads: what each injects, and the options that a capture of it needs."""

from __future__ import annotations

from dataclasses import dataclass

FORK_TRACED = "--trace-fork-before-exec=true"
"""Without it a forked child has scheduling and samples but no OS calls."""
ALL_CALLS = "--osrt-threshold=1000"


@dataclass(frozen=True)
class Program:
    """`injects` says in a few words what keeps the GPU waiting; "" where a program only logs waits of threads."""

    name: str
    injects: str = ""
    options: tuple[str, ...] = ()


_ALL = (
    Program("sleep", "the host sleeps 8 ms a step"),
    Program("host_compute", "the host computes 8 ms a step"),
    Program("launch_bound", "50 tiny kernels a step, launched one by one"),
    Program("graph_replay", "nothing: the same kernels as a CUDA graph"),
    Program("read_back", "a number is read back every step, then the host computes 2 ms"),
    Program("pageable_copies", "copies of 24 MiB a step from pageable memory"),
    Program("pinned_copies", "copies of 24 MiB a step from pinned memory"),
    Program("allocator_churn", "four allocations of 24 MiB a step at the driver"),
    Program("lock_held", "a lock that another thread holds for 8 ms a step while it computes"),
    Program("gil_contention", "the interpreter's lock, held by a thread that is all Python"),
    Program("preempted", "30 ms of computing a step on a core shared with two busy processes"),
    Program("starved_by_reads", "a worker process reads 12 MiB a step, uncached", (FORK_TRACED,)),
    Program("starved_by_decoding", "a worker process decodes 12 ms a step", (FORK_TRACED,)),
    Program("starved_training", "two ranks whose workers read and decode too slowly", (FORK_TRACED,)),
    Program("healthy", "nothing: the host is far ahead"),
    Program("two_processes", "a second program on the same GPU"),
    Program("serve_detokenizing", "texts are made on the launching thread of a server", (FORK_TRACED,)),
    Program("serve_eager", "decode steps of a server without CUDA graphs", (FORK_TRACED,)),
    Program("serve_synchronizing", "a synchronization in each step of a server", (FORK_TRACED,)),
    Program("serve_ahead", "nothing: the server launches a step ahead", (FORK_TRACED,)),
    Program("cpu_threads"),
    Program("queue_feed"),
    Program("pipe_processes", options=(FORK_TRACED,)),
    Program("contended_lock"),
    Program("gil"),
    Program("slow_read", options=(FORK_TRACED,)),
    Program("preempt"),
    Program("condition_chain"),
    Program("native_condition"),
    Program("timed_get", options=(FORK_TRACED,)),
    Program("join", options=(FORK_TRACED,)),
)
PROGRAMS = {program.name: program for program in _ALL}
