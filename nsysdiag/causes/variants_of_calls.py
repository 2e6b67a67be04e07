"""The kinds of the causes that are CUDA calls, with their fixes."""

from __future__ import annotations

from nsysdiag.causes.variant import AFTER_READ_BACK, Variant, matching

_READ_BACK = (
    "Keep the value on the device: no .item(), .cpu(), float() or print of a tensor in the step; collect on the device and "
    "read every n steps, or copy to pinned memory with non_blocking=True and read it a step later.",
)

OF_CALLS: dict[str, tuple[Variant, ...]] = {
    "sync": (
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            _READ_BACK,
            hint=AFTER_READ_BACK,
        ),
        Variant(
            "query_spin",
            "a query is asked again and again",
            "wait with an event made with cudaEventBlockingSync, or poll from another thread",
            (
                "cudaEventQuery or cudaStreamQuery in a loop holds the launching thread: make the event with "
                "cudaEventBlockingSync and wait for it in another thread.",
            ),
            label=matching(r"spins on a query"),
        ),
        Variant(
            "other_device",
            "waits for another device",
            "order the devices by events, not by the host",
            (
                "Let the devices wait for each other: cudaStreamWaitEvent on an event of the other device instead of a host "
                "synchronization; one launching thread or process for each GPU.",
            ),
            label=matching(r"another device"),
        ),
        Variant(
            "event",
            "waits for an event",
            "wait on the device: cudaStreamWaitEvent",
            (
                "Wait on the device instead of the host: cudaStreamWaitEvent (PyTorch: stream.wait_event) in place of "
                "cudaEventSynchronize.",
            ),
            label=matching(r"an event"),
        ),
        Variant(
            "device",
            "waits for the whole device",
            "take cudaDeviceSynchronize out of the step",
            (
                "Take cudaDeviceSynchronize (torch.cuda.synchronize) out of the step; measure time with CUDA events, which do "
                "not stop the host.",
                "Where the wait must stay, cudaDeviceScheduleBlockingSync frees its CPU for other threads.",
            ),
            label=matching(r"the device"),
        ),
        Variant("stream", "waits for a stream", "synchronize once per many steps", label=matching(r"a stream")),
        Variant("other", "", "remove or delay the synchronization"),
    ),
    "blocking_copy": (
        Variant(
            "read_back",
            "a value is read back",
            "keep the value on the device and read it every n steps",
            _READ_BACK,
            label=matching(r"read-back"),
        ),
        Variant(
            "pageable",
            "from or to pageable memory",
            "pin the host memory: pin_memory=True, non_blocking=True",
            (
                "Pin the host side: cudaHostAlloc once and reuse it (PyTorch: DataLoader(pin_memory=True) and "
                ".to(device, non_blocking=True)).",
            ),
            label=matching(r"pageable"),
        ),
        Variant(
            "synchronous",
            "a synchronous call",
            "use cudaMemcpyAsync on a stream of its own",
            label=matching(r"synchronous"),
        ),
        Variant("other", "", "copy asynchronously from pinned memory"),
    ),
    "memory_allocation": (
        Variant(
            "pinned",
            "pinned host memory",
            "allocate pinned buffers once and reuse them",
            (
                "Pinning is slow and stops the device: allocate pinned buffers once (PyTorch keeps them in its caching host "
                "allocator; no pin_memory() in the step).",
            ),
            call=matching(r"Host(Alloc|Register|Unregister)|MallocHost|FreeHost"),
        ),
        Variant(
            "growth",
            "memory is mapped",
            "warm up with the largest shapes",
            (
                "The allocator grows its segments: warm up with the largest shapes, or reserve once (PyTorch: "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets a segment grow instead of making new ones).",
            ),
            call=matching(r"cuMem(Create|Map|SetAccess|AddressReserve|Unmap|Release)"),
        ),
        Variant(
            "free",
            "memory is given back",
            "do not free in the step",
            (
                "cudaFree waits for the device: no empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                "or backend:cudaMallocAsync keeps memory from being freed for want of room.",
            ),
            call=matching(r"Free"),
        ),
        Variant("device", "", "reuse memory: a caching or stream-ordered allocator (cudaMallocAsync)"),
    ),
    "context_init": (Variant("other", "", "create the context before the work that is measured"),),
    "module_load": (
        Variant(
            "lazy",
            "first use of a kernel",
            "warm up, or load early with CUDA_MODULE_LOADING=EAGER",
            (
                "Run each kernel once before the part that counts; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                "cudnn.benchmark=True tries several kernels for each new shape: keep shapes fixed, or switch it off.",
            ),
            call=matching(r"first launch|on its way"),
        ),
        Variant(
            "library",
            "a module is loaded",
            "keep compiled code: caches of Triton and inductor, CUDA_CACHE_PATH",
            (
                "Code made at run time is loaded anew: keep the caches (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, "
                "CUDA_CACHE_PATH), and avoid recompilation by fixed shapes.",
            ),
            call=matching(r"(Module|Library)Load|cuLink|nvrtc"),
        ),
        Variant("other", "", "warm up before measuring and before serving"),
    ),
    "graph_build": (
        Variant(
            "capture",
            "a graph is captured",
            "capture once for each shape and replay",
            ("Capture once for each shape, before the loop; pad varying shapes to a few sizes.",),
            label=matching(r"capture"),
        ),
        Variant(
            "instantiate",
            "a graph is instantiated",
            "update the graph in place: cudaGraphExecUpdate",
            (
                "Instantiate once and use cudaGraphExecUpdate where only parameters change; cudaGraphUpload ahead of the launch.",
            ),
            call=matching(r"Instantiate"),
        ),
        Variant("other", "", "build graphs once and replay them"),
    ),
    "cuda_api": (
        Variant(
            "launches",
            "launches of other work",
            "launch less: CUDA graphs, fused kernels",
            (
                "The thread was launching work that did not end this gap: other streams or devices. A thread for each GPU, or "
                "fewer launches (CUDA graphs, torch.compile(mode='reduce-overhead')).",
            ),
            call=matching(r"Launch|MemcpyAsync|MemsetAsync|Memcpy|Memset"),
        ),
        Variant(
            "properties",
            "properties are asked for",
            "ask once and keep the answer",
            ("Ask once and keep the answer; cudaDeviceGetAttribute is far cheaper than cudaGetDeviceProperties.",),
            call=matching(
                r"GetDeviceProperties|GetAttribute|FuncGetAttributes|Occupancy|PointerGetAttributes|MemGetInfo"
            ),
        ),
        Variant("other", "", "take the call out of the step, or keep its answer"),
    ),
    "queue_full": (Variant("other", "", "one launching thread for each GPU"),),
    "profiler_overhead": (Variant("other", "", "trace less; leave this time out of any estimate"),),
}
