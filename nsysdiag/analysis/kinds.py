"""What a cause looks like in detail, as far as it changes what to do: the kinds of each cause, with their fixes.

A kind is told by the label of its slices, by the call or sentence behind them, or by what the launching thread did just
before. The first kind that matches is taken; the last of each cause takes what is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

AFTER_READ_BACK = "after a read-back"
IN_COLLECTOR, IN_INTERPRETER = "samples in the garbage collector", "samples in the interpreter"


@dataclass(frozen=True, slots=True)
class Kind:
    """`title` is added to that of the cause, empty for none; `fix` is the short form of `advice` that ends a causal
    chain. `label` and `call` are patterns on a slice's label and text; `hint` is one of the facts above."""

    id: str
    title: str
    fix: str
    advice: tuple[str, ...] = ()
    label: re.Pattern[str] | None = None
    call: re.Pattern[str] | None = None
    hint: str | None = None

    def matches(self, label: str, call: str, hint: str | None) -> bool:
        """Is this a slice with this label and text (empty: none)?"""
        if self.hint is not None and self.hint != hint:
            return False
        if self.label is not None and not self.label.search(label):
            return False
        return self.call is None or self.call.search(call) is not None


def _of(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_READ_BACK = (
    "Keep the value on the device: no .item(), .cpu(), float() or print of a tensor in the step; collect on the device and "
    "read every n steps, or copy to pinned memory with non_blocking=True and read it a step later.",
)

KINDS: dict[str, tuple[Kind, ...]] = {
    "sync": (
        Kind(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            _READ_BACK,
            hint=AFTER_READ_BACK,
        ),
        Kind(
            "query_spin",
            "a query is asked again and again",
            "wait with an event made with cudaEventBlockingSync, or poll from another thread",
            (
                "cudaEventQuery or cudaStreamQuery in a loop holds the launching thread: make the event with "
                "cudaEventBlockingSync and wait for it in another thread.",
            ),
            label=_of(r"spins on a query"),
        ),
        Kind(
            "other_device",
            "waits for another device",
            "order the devices by events, not by the host",
            (
                "Let the devices wait for each other: cudaStreamWaitEvent on an event of the other device instead of a host "
                "synchronization; one launching thread or process for each GPU.",
            ),
            label=_of(r"another device"),
        ),
        Kind(
            "event",
            "waits for an event",
            "wait on the device: cudaStreamWaitEvent",
            (
                "Wait on the device instead of the host: cudaStreamWaitEvent (PyTorch: stream.wait_event) in place of "
                "cudaEventSynchronize.",
            ),
            label=_of(r"an event"),
        ),
        Kind(
            "device",
            "waits for the whole device",
            "take cudaDeviceSynchronize out of the step",
            (
                "Take cudaDeviceSynchronize (torch.cuda.synchronize) out of the step; measure time with CUDA events, which do "
                "not stop the host.",
                "Where the wait must stay, cudaDeviceScheduleBlockingSync frees its CPU for other threads.",
            ),
            label=_of(r"the device"),
        ),
        Kind("stream", "waits for a stream", "synchronize once per many steps", label=_of(r"a stream")),
        Kind("other", "", "remove or delay the synchronization"),
    ),
    "blocking_copy": (
        Kind(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            _READ_BACK,
            label=_of(r"read-back"),
        ),
        Kind(
            "pageable",
            "from or to pageable memory",
            "pin the host memory: pin_memory=True, non_blocking=True",
            (
                "Pin the host side: cudaHostAlloc once and reuse it (PyTorch: DataLoader(pin_memory=True) and "
                ".to(device, non_blocking=True)).",
            ),
            label=_of(r"pageable"),
        ),
        Kind(
            "synchronous", "a synchronous call", "use cudaMemcpyAsync on a stream of its own", label=_of(r"synchronous")
        ),
        Kind("other", "", "copy asynchronously from pinned memory"),
    ),
    "memory_allocation": (
        Kind(
            "pinned",
            "pinned host memory",
            "allocate pinned buffers once and reuse them",
            (
                "Pinning is slow and stops the device: allocate pinned buffers once (PyTorch keeps them in its caching host "
                "allocator; no pin_memory() in the step).",
            ),
            call=_of(r"Host(Alloc|Register|Unregister)|MallocHost|FreeHost"),
        ),
        Kind(
            "growth",
            "memory is mapped",
            "warm up with the largest shapes",
            (
                "The allocator grows its segments: warm up with the largest shapes, or reserve once (PyTorch: "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets a segment grow instead of making new ones).",
            ),
            call=_of(r"cuMem(Create|Map|SetAccess|AddressReserve|Unmap|Release)"),
        ),
        Kind(
            "free",
            "memory is given back",
            "do not free in the step",
            (
                "cudaFree waits for the device: no empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                "or backend:cudaMallocAsync keeps memory from being freed for want of room.",
            ),
            call=_of(r"Free"),
        ),
        Kind("device", "", "reuse memory: a caching or stream-ordered allocator (cudaMallocAsync)"),
    ),
    "context_init": (Kind("other", "", "create the context before the work that is measured"),),
    "module_load": (
        Kind(
            "lazy",
            "first use of a kernel",
            "warm up, or load early with CUDA_MODULE_LOADING=EAGER",
            (
                "Run each kernel once before the part that counts; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                "cudnn.benchmark=True tries several kernels for each new shape: keep shapes fixed, or switch it off.",
            ),
            call=_of(r"first launch|on its way"),
        ),
        Kind(
            "library",
            "a module is loaded",
            "keep compiled code: caches of Triton and inductor, CUDA_CACHE_PATH",
            (
                "Code made at run time is loaded anew: keep the caches (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, "
                "CUDA_CACHE_PATH), and avoid recompilation by fixed shapes.",
            ),
            call=_of(r"(Module|Library)Load|cuLink|nvrtc"),
        ),
        Kind("other", "", "warm up before measuring and before serving"),
    ),
    "graph_build": (
        Kind(
            "capture",
            "a graph is captured",
            "capture once for each shape and replay",
            ("Capture once for each shape, before the loop; pad varying shapes to a few sizes.",),
            label=_of(r"capture"),
        ),
        Kind(
            "instantiate",
            "a graph is instantiated",
            "update the graph in place: cudaGraphExecUpdate",
            (
                "Instantiate once and use cudaGraphExecUpdate where only parameters change; cudaGraphUpload ahead of the launch.",
            ),
            call=_of(r"Instantiate"),
        ),
        Kind("other", "", "build graphs once and replay them"),
    ),
    "cuda_api": (
        Kind(
            "launches",
            "launches of other work",
            "launch less: CUDA graphs, fused kernels",
            (
                "The thread was launching work that did not end this gap: other streams or devices. A thread for each GPU, or "
                "fewer launches (CUDA graphs, torch.compile(mode='reduce-overhead')).",
            ),
            call=_of(r"Launch|MemcpyAsync|MemsetAsync|Memcpy|Memset"),
        ),
        Kind(
            "properties",
            "properties are asked for",
            "ask once and keep the answer",
            ("Ask once and keep the answer; cudaDeviceGetAttribute is far cheaper than cudaGetDeviceProperties.",),
            call=_of(r"GetDeviceProperties|GetAttribute|FuncGetAttributes|Occupancy|PointerGetAttributes|MemGetInfo"),
        ),
        Kind("other", "", "take the call out of the step, or keep its answer"),
    ),
    "queue_full": (Kind("other", "", "one launching thread for each GPU"),),
    "profiler_overhead": (Kind("other", "", "trace less; leave this time out of any estimate"),),
    "lock_wait": (
        Kind(
            "gil",
            "the GIL",
            "move the other threads' Python work to processes",
            (
                "Another Python thread held the interpreter: move its work to processes (DataLoader(num_workers > 0) instead of "
                "threads), to code that frees the GIL, or to a free-threaded build.",
                "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
            ),
            label=_of(r"GIL"),
        ),
        Kind(
            "timed",
            "a wait with a time limit",
            "free the GIL in the other threads, or move them to processes",
            (
                "In CPython, pthread_cond_timedwait of about 5 ms is the wait for the GIL: move the other threads' Python work to "
                "processes, or free the GIL.",
            ),
            call=_of(r"cond_(timed|clock)wait"),
        ),
        Kind("other", "", "find who holds the lock or fills the queue"),
    ),
    "io_wait": (
        Kind(
            "reads",
            "reads",
            "read ahead in another thread or process",
            (
                "Take reading out of the launching thread: a read-ahead thread, or workers (PyTorch DataLoader: num_workers, "
                "prefetch_factor, persistent_workers=True); pack many small files into shards, cache them on a local disk. A "
                "read from a pipe waits for whoever writes to it.",
            ),
            call=_of(
                r"^_*(p?readv?(64)?2?|open(at)?(64)?|f(re|d)?open(64)?|fread|f?get(s|c|char|line|delim|ws|wc)|ungetc|l?f?stat\w*|lseek(64)?)\b"
            ),
        ),
        Kind(
            "writes",
            "writes",
            "write from another thread",
            ("Write logs and checkpoints from another thread or asynchronously; print less.",),
            call=_of(r"^_*(p?writev?(64)?2?|fwrite|fflush|f?sync|fdatasync|f?put(s|c|char|ws|wc)|v?f?d?printf)\b"),
        ),
        Kind(
            "peers",
            "waits for a pipe, socket or device",
            "find who is late at the other end",
            (
                "The thread waits for somebody at the other end of a pipe or socket: a data loader worker (num_workers, "
                "prefetch_factor), a server, another rank.",
            ),
            call=_of(r"^_*(ppoll|poll|p?select6?|epoll_p?wait2?|recv\w*|accept4?|connect|send\w*)\b"),
        ),
        Kind("other", "", "take the call out of the launching thread"),
    ),
    "os_memory": (
        Kind(
            "mapping",
            "",
            "reuse host buffers; let malloc keep its memory",
            (
                "Large buffers come and go: reuse them, or let malloc keep them (MALLOC_MMAP_THRESHOLD_, "
                "MALLOC_TRIM_THRESHOLD_, MALLOC_ARENA_MAX; jemalloc or tcmalloc).",
            ),
        ),
    ),
    "sleep": (
        Kind(
            "processes",
            "processes or threads come and go",
            "keep them alive: persistent_workers=True",
            ("Keep worker processes and threads alive: DataLoader(persistent_workers=True), a thread pool.",),
            call=_of(r"fork|clone|spawn|exec|pthread_|thrd_|wait|popen|pclose|system"),
        ),
        Kind("sleeps", "the thread sleeps", "remove the sleep", call=_of(r"sleep|pause|alarm")),
        Kind("other", "", "wait on a condition instead"),
    ),
    "off_cpu": (
        Kind(
            "held",
            "another thread had its CPU",
            "pin the launching thread to a CPU of its own: taskset, numactl",
            (
                "Give the launching thread a CPU of its own (taskset, numactl --physcpubind, os.sched_setaffinity), and the others "
                "fewer: OMP_NUM_THREADS, torch.set_num_threads, fewer data loader workers.",
            ),
            label=_of(r"held its CPU"),
        ),
        Kind("other", "", "give the process more CPUs, or fewer threads"),
    ),
    "blocked": (Kind("other", "", "capture again with --trace=osrt"),),
    "host_compute": (
        Kind(
            "garbage_collector",
            "Python's garbage collector",
            "gc.freeze() after the warm-up, gc.collect() at a moment of choice",
            (
                "Call gc.freeze() after the warm-up, or gc.disable() and gc.collect() at a moment of choice (between epochs, "
                "in the shadow of a long kernel).",
            ),
            hint=IN_COLLECTOR,
        ),
        Kind(
            "mpi",
            "inside MPI calls",
            "find the late rank; overlap communication with compute",
            ("MPI polls while it waits for other ranks: look for the late one, use CUDA-aware or non-blocking calls.",),
            label=_of(r"MPI"),
        ),
        Kind(
            "interpreter",
            "the Python interpreter",
            "fewer steps of Python for each kernel: torch.compile, CUDA graphs",
            (
                "Fewer steps of Python for each kernel: torch.compile(mode='reduce-overhead'), CUDA graphs, fused optimizers "
                "(fused=True or foreach=True), larger batches.",
            ),
            hint=IN_INTERPRETER,
        ),
        Kind("other", "", "profile the host code of this place and move it off the launching thread"),
    ),
    "uncovered": (Kind("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    "launch_call": (
        Kind(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            (
                "The launch of a whole graph takes the time of its nodes: cudaGraphUpload ahead of it, fewer and larger nodes.",
            ),
            call=_of(r"GraphLaunch"),
        ),
        Kind("other", "", "launch less: CUDA graphs, torch.compile(mode='reduce-overhead')"),
    ),
    "launch_latency": (Kind("other", "", "launch ahead, so that launches overlap with kernels"),),
    "dispatch": (Kind("other", "", "fewer, larger kernels, or a CUDA graph"),),
    "intra_graph": (Kind("other", "", "let independent branches of the graph run side by side"),),
    "graph_untraced": (
        Kind(
            "other",
            "",
            "capture again with --cuda-graph-trace=node",
            ("Capture again with --cuda-graph-trace=node: then each kernel of a graph is in the trace.",),
        ),
    ),
    "launch_unknown": (Kind("other", "", "capture again with --trace=cuda for all processes"),),
    "unified_memory": (Kind("other", "", "prefetch with cudaMemPrefetchAsync"),),
    "stream_wait": (
        Kind(
            "communication",
            "for communication",
            "start it earlier, in smaller buckets",
            (
                "The next work needs a collective's result: start it earlier or in smaller pieces (DistributedDataParallel "
                "bucket_cap_mb, FSDP prefetch), and put independent work in between.",
            ),
            label=_of(r"communication"),
        ),
        Kind(
            "copy",
            "for a copy",
            "start the copy earlier, on a stream of its own",
            ("Start the copy earlier: prefetch the next batch on a stream of its own while this one computes.",),
            label=_of(r"a copy"),
        ),
        Kind("device", "for another device", "balance the work of the devices", label=_of(r"another device")),
        Kind("other", "", "record the event right after the producer"),
    ),
    "stream_barrier": (Kind("other", "", "use explicit non-blocking streams"),),
    "gpu_context_switch": (Kind("other", "", "share the GPU with MPS or MIG, or use another"),),
    "device_stall": (
        Kind("copies", "between queued copies", "join small copies", label=_of(r"between queued copies")),
        Kind("other", "", "look for dependencies that were not traced"),
    ),
    "data_loading": (
        Kind(
            "reads",
            "the worker reads",
            "larger files and a cache near the worker; more workers and prefetching",
            (
                "The worker reads: pack samples into shards, cache them on a local disk; more workers read side by side "
                "(num_workers, prefetch_factor, persistent_workers=True).",
            ),
            label=_of(r"io_wait|Input and output|os_memory"),
        ),
        Kind(
            "computes",
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            (
                "The worker decodes or augments: more workers (num_workers, persistent_workers=True), cheaper transforms, one "
                "thread each (torch.set_num_threads(1)), or decoding on the GPU.",
            ),
            label=_of(r"host_compute|Host code"),
        ),
        Kind(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: fewer of them, or a larger limit",
            (
                "The workers compete for CPUs: as many as there are CPUs, one thread each, and the launching thread on a CPU of "
                "its own (taskset, numactl).",
            ),
            label=_of(r"off_cpu|Preempted"),
        ),
        Kind("other", "", "more workers and prefetching: num_workers, prefetch_factor, persistent_workers"),
    ),
}


def kind_of(cause: str, label: str, call: str, hint: str | None) -> int:
    """The place of the first kind of `cause` that matches; a hint that no kind asks for changes nothing."""
    return next(at for at, kind in enumerate(KINDS[cause]) if kind.matches(label, call, hint))
