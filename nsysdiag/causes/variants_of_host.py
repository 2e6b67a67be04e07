"""The kinds of the causes that are OS calls, scheduling and code of the program, with their fixes."""

from __future__ import annotations

from nsysdiag.causes.variant import IN_COLLECTOR, IN_INTERPRETER, Variant, matching

OF_HOST: dict[str, tuple[Variant, ...]] = {
    "lock_wait": (
        Variant(
            "gil",
            "the GIL",
            "move the other threads' Python work to processes",
            (
                "Another Python thread held the interpreter: move its work to processes (DataLoader(num_workers > 0) instead of "
                "threads), to code that frees the GIL, or to a free-threaded build.",
                "A shorter sys.setswitchinterval() lets the launching thread in sooner.",
            ),
            label=matching(r"GIL"),
        ),
        Variant(
            "timed",
            "a wait with a time limit",
            "free the GIL in the other threads, or move them to processes",
            (
                "In CPython, pthread_cond_timedwait of about 5 ms is the wait for the GIL: move the other threads' Python work to "
                "processes, or free the GIL.",
            ),
            call=matching(r"cond_(timed|clock)wait"),
        ),
        Variant("other", "", "find who holds the lock or fills the queue"),
    ),
    "io_wait": (
        Variant(
            "reads",
            "reads",
            "read ahead in another thread or process",
            (
                "Take reading out of the launching thread: a read-ahead thread, or workers (PyTorch DataLoader: num_workers, "
                "prefetch_factor, persistent_workers=True); pack many small files into shards, cache them on a local disk. A "
                "read from a pipe waits for whoever writes to it.",
            ),
            call=matching(
                r"^_*(p?readv?(64)?2?|open(at)?(64)?|f(re|d)?open(64)?|fread|f?get(s|c|char|line|delim|ws|wc)|ungetc|l?f?stat\w*|lseek(64)?)\b"
            ),
        ),
        Variant(
            "writes",
            "writes",
            "write from another thread",
            ("Write logs and checkpoints from another thread or asynchronously; print less.",),
            call=matching(r"^_*(p?writev?(64)?2?|fwrite|fflush|f?sync|fdatasync|f?put(s|c|char|ws|wc)|v?f?d?printf)\b"),
        ),
        Variant(
            "peers",
            "waits for a pipe, socket or device",
            "find who is late at the other end",
            (
                "The thread waits for somebody at the other end of a pipe or socket: a data loader worker (num_workers, "
                "prefetch_factor), a server, another rank.",
            ),
            call=matching(r"^_*(ppoll|poll|p?select6?|epoll_p?wait2?|recv\w*|accept4?|connect|send\w*)\b"),
        ),
        Variant("other", "", "take the call out of the launching thread"),
    ),
    "os_memory": (
        Variant(
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
        Variant(
            "processes",
            "processes or threads come and go",
            "keep them alive: persistent_workers=True",
            ("Keep worker processes and threads alive: DataLoader(persistent_workers=True), a thread pool.",),
            call=matching(r"fork|clone|spawn|exec|pthread_|thrd_|wait|popen|pclose|system"),
        ),
        Variant("sleeps", "the thread sleeps", "remove the sleep", call=matching(r"sleep|pause|alarm")),
        Variant("other", "", "wait on a condition instead"),
    ),
    "off_cpu": (
        Variant(
            "held",
            "another thread had its CPU",
            "pin the launching thread to a CPU of its own: taskset, numactl",
            (
                "Give the launching thread a CPU of its own (taskset, numactl --physcpubind, os.sched_setaffinity), and the others "
                "fewer: OMP_NUM_THREADS, torch.set_num_threads, fewer data loader workers.",
            ),
            label=matching(r"held its CPU"),
        ),
        Variant("other", "", "give the process more CPUs, or fewer threads"),
    ),
    "blocked": (Variant("other", "", "capture again with --trace=osrt"),),
    "host_compute": (
        Variant(
            "garbage_collector",
            "Python's garbage collector",
            "gc.freeze() after the warm-up, gc.collect() at a moment of choice",
            (
                "Call gc.freeze() after the warm-up, or gc.disable() and gc.collect() at a moment of choice (between epochs, "
                "in the shadow of a long kernel).",
            ),
            hint=IN_COLLECTOR,
        ),
        Variant(
            "mpi",
            "inside MPI calls",
            "find the late rank; overlap communication with compute",
            ("MPI polls while it waits for other ranks: look for the late one, use CUDA-aware or non-blocking calls.",),
            label=matching(r"MPI"),
        ),
        Variant(
            "interpreter",
            "the Python interpreter",
            "fewer steps of Python for each kernel: torch.compile, CUDA graphs",
            (
                "Fewer steps of Python for each kernel: torch.compile(mode='reduce-overhead'), CUDA graphs, fused optimizers "
                "(fused=True or foreach=True), larger batches.",
            ),
            hint=IN_INTERPRETER,
        ),
        Variant("other", "", "profile the host code of this place and move it off the launching thread"),
    ),
    "uncovered": (Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    "data_loading": (
        Variant(
            "reads",
            "the worker reads",
            "larger files and a cache near the worker; more workers and prefetching",
            (
                "The worker reads: pack samples into shards, cache them on a local disk; more workers read side by side "
                "(num_workers, prefetch_factor, persistent_workers=True).",
            ),
            label=matching(r"io_wait|Input and output|os_memory"),
        ),
        Variant(
            "computes",
            "the worker computes",
            "more workers, or cheaper decoding; decode on the GPU",
            (
                "The worker decodes or augments: more workers (num_workers, persistent_workers=True), cheaper transforms, one "
                "thread each (torch.set_num_threads(1)), or decoding on the GPU.",
            ),
            label=matching(r"host_compute|Host code"),
        ),
        Variant(
            "no_cpu",
            "the worker has no CPU",
            "give the workers CPUs: fewer of them, or a larger limit",
            (
                "The workers compete for CPUs: as many as there are CPUs, one thread each, and the launching thread on a CPU of "
                "its own (taskset, numactl).",
            ),
            label=matching(r"off_cpu|Preempted"),
        ),
        Variant("other", "", "more workers and prefetching: num_workers, prefetch_factor, persistent_workers"),
    ),
}
