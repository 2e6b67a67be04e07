"""The kinds of the causes around a launch and behind it, with their fixes."""

from __future__ import annotations

from nsysdiag.causes.variant import Variant, matching

OF_DEVICE: dict[str, tuple[Variant, ...]] = {
    "launch_call": (
        Variant(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            (
                "The launch of a whole graph takes the time of its nodes: cudaGraphUpload ahead of it, fewer and larger nodes.",
            ),
            call=matching(r"GraphLaunch"),
        ),
        Variant("other", "", "launch less: CUDA graphs, torch.compile(mode='reduce-overhead')"),
    ),
    "launch_latency": (Variant("other", "", "launch ahead, so that launches overlap with kernels"),),
    "dispatch": (Variant("other", "", "fewer, larger kernels, or a CUDA graph"),),
    "intra_graph": (Variant("other", "", "let independent branches of the graph run side by side"),),
    "graph_untraced": (
        Variant(
            "other",
            "",
            "capture again with --cuda-graph-trace=node",
            ("Capture again with --cuda-graph-trace=node: then each kernel of a graph is in the trace.",),
        ),
    ),
    "launch_unknown": (Variant("other", "", "capture again with --trace=cuda for all processes"),),
    "unified_memory": (Variant("other", "", "prefetch with cudaMemPrefetchAsync"),),
    "stream_wait": (
        Variant(
            "communication",
            "for communication",
            "start it earlier, in smaller buckets",
            (
                "The next work needs a collective's result: start it earlier or in smaller pieces (DistributedDataParallel "
                "bucket_cap_mb, FSDP prefetch), and put independent work in between.",
            ),
            label=matching(r"communication"),
        ),
        Variant(
            "copy",
            "for a copy",
            "start the copy earlier, on a stream of its own",
            ("Start the copy earlier: prefetch the next batch on a stream of its own while this one computes.",),
            label=matching(r"a copy"),
        ),
        Variant("device", "for another device", "balance the work of the devices", label=matching(r"another device")),
        Variant("other", "", "record the event right after the producer"),
    ),
    "stream_barrier": (Variant("other", "", "use explicit non-blocking streams"),),
    "gpu_context_switch": (Variant("other", "", "share the GPU with MPS or MIG, or use another"),),
    "device_stall": (
        Variant("copies", "between queued copies", "join small copies", label=matching(r"between queued copies")),
        Variant("other", "", "look for dependencies that were not traced"),
    ),
}
