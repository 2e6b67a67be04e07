"""Where the rules come from: the public documents that they rest on. Only pages that were looked up have an address."""

from __future__ import annotations

from msgspec import Struct


class SourceDocument(Struct, frozen=True):
    """A document, the chapter in it, and its address where known."""

    document: str
    chapter: str
    url: str | None = None

    def __str__(self) -> str:
        return f"{self.document}: {self.chapter}"


_CUDA_GUIDE, _CUDA_DRIVER, _CUPTI = "CUDA Programming Guide", "CUDA Driver API", "CUPTI documentation"
_NSIGHT, _PYTORCH, _PYTHON = "Nsight Systems User Guide", "PyTorch documentation", "Python documentation"
_JAX, _TENSORFLOW, _CUPY = "JAX documentation", "TensorFlow guide", "CuPy documentation"
_NVIDIA = "https://docs.nvidia.com"

SOURCES = {
    "api_sync": SourceDocument(
        _CUDA_DRIVER, "API synchronization behavior", f"{_NVIDIA}/cuda/cuda-driver-api/api-sync-behavior.html"
    ),
    "stream_sync": SourceDocument(
        _CUDA_DRIVER, "Stream synchronization behavior", f"{_NVIDIA}/cuda/cuda-driver-api/stream-sync-behavior.html"
    ),
    "malloc_async": SourceDocument(
        _CUDA_DRIVER,
        "Stream Ordered Memory Allocator",
        f"{_NVIDIA}/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html",
    ),
    "lazy_loading": SourceDocument(
        _CUDA_GUIDE, "Lazy Loading", f"{_NVIDIA}/cuda/cuda-programming-guide/04-special-topics/lazy-loading.html"
    ),
    "asynchronous": SourceDocument(_CUDA_GUIDE, "Asynchronous Execution: streams and events"),
    "cuda_graphs": SourceDocument(_CUDA_GUIDE, "CUDA Graphs"),
    "best_practices": SourceDocument(
        "CUDA C++ Best Practices Guide", "Data transfer between host and device: pinned memory, overlapping transfers"
    ),
    "host_functions": SourceDocument(_CUDA_GUIDE, "Host functions (callbacks) in streams"),
    "unified_memory": SourceDocument(_CUDA_GUIDE, "Unified Memory"),
    "contexts": SourceDocument(_CUDA_DRIVER, "Context Management"),
    "overhead": SourceDocument(
        _CUPTI, "CUpti_ActivityOverhead", f"{_NVIDIA}/cupti/13.2.1/api/structCUpti__ActivityOverhead.html"
    ),
    "activity": SourceDocument(_CUPTI, "CUPTI Activity API", f"{_NVIDIA}/cupti/main/main.html"),
    "nsight_cli": SourceDocument(_NSIGHT, "Profiling from the CLI", f"{_NVIDIA}/nsight-systems/UserGuide/index.html"),
    "nsight_osrt": SourceDocument(
        _NSIGHT, "OS Runtime Libraries Trace", f"{_NVIDIA}/nsight-systems/UserGuide/index.html"
    ),
    "nsight_mpi": SourceDocument(_NSIGHT, "MPI API Trace", f"{_NVIDIA}/nsight-systems/UserGuide/index.html"),
    "nsight_sampling": SourceDocument(
        _NSIGHT, "CPU sampling and CPU context switches", f"{_NVIDIA}/nsight-systems/UserGuide/index.html"
    ),
    "nsight_compute": SourceDocument(
        "Nsight Compute CLI documentation", "Kernel profiling: filters, launch-skip, launch-count"
    ),
    "rocm_compute": SourceDocument(
        "ROCm Compute Profiler documentation",
        "Basic usage: filters by kernel",
        "https://rocm.docs.amd.com/projects/rocprofiler-compute/en/latest/how-to/use.html",
    ),
    "mps": SourceDocument(
        "NVIDIA deployment documentation", "Multi-Process Service", f"{_NVIDIA}/deploy/mps/index.html"
    ),
    "tuning_guide": SourceDocument(
        "PyTorch tutorials",
        "Performance Tuning Guide",
        "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    "pinned_memory": SourceDocument("PyTorch tutorials", "A guide on good usage of non_blocking and pin_memory()"),
    "vllm_async": SourceDocument("vLLM documentation", "Engine arguments: asynchronous scheduling, eager execution"),
    "sglang_overlap": SourceDocument(
        "SGLang v0.4",
        "Zero-overhead batch scheduler",
        "https://lmsys.org/blog/2024-12-04-sglang-v0-4/",
    ),
    "trtllm_overlap": SourceDocument(
        "TensorRT-LLM documentation",
        "Overlap scheduler",
        "https://nvidia.github.io/TensorRT-LLM/features/overlap-scheduler.html",
    ),
    "trtllm_graphs": SourceDocument("TensorRT-LLM documentation", "LLM API reference: CudaGraphConfig"),
    "data_loader": SourceDocument(_PYTORCH, "torch.utils.data: single- and multi-process data loading"),
    "cuda_semantics": SourceDocument(_PYTORCH, "CUDA semantics: asynchronous execution, streams, events"),
    "allocator": SourceDocument(_PYTORCH, "CUDA semantics: memory management, PYTORCH_CUDA_ALLOC_CONF"),
    "torch_graphs": SourceDocument(
        "NVIDIA CUDA Graph guide",
        "PyTorch CUDA Graph Integration",
        f"{_NVIDIA}/dl-cuda-graph/torch-cuda-graph/torch-integration.html",
    ),
    "jax_async": SourceDocument(_JAX, "Asynchronous dispatch", "https://docs.jax.dev/en/latest/async_dispatch.html"),
    "jax_gpu": SourceDocument(_JAX, "GPU performance tips"),
    "jax_memory": SourceDocument(
        _JAX, "GPU memory allocation", "https://docs.jax.dev/en/latest/gpu_memory_allocation.html"
    ),
    "jax_cache": SourceDocument(
        _JAX, "Persistent compilation cache", "https://docs.jax.dev/en/latest/persistent_compilation_cache.html"
    ),
    "tf_data": SourceDocument(_TENSORFLOW, "Better performance with the tf.data API"),
    "tf_gpu": SourceDocument(_TENSORFLOW, "Optimize TensorFlow GPU performance with the TensorFlow Profiler"),
    "cupy_memory": SourceDocument(_CUPY, "Memory management", "https://docs.cupy.dev/en/stable/user_guide/memory.html"),
    "cupy_speed": SourceDocument(_CUPY, "Performance best practices"),
    "openacc": SourceDocument("OpenACC specification", "Data environment, async and wait clauses"),
    "openmp": SourceDocument("OpenMP specification", "Device directives: target data, nowait, depend"),
    "julia": SourceDocument(
        "CUDA.jl documentation", "Memory management; performance tips", "https://cuda.juliagpu.org/stable/usage/memory/"
    ),
    "mpi_cuda": SourceDocument(
        "Open MPI documentation",
        "CUDA-aware support",
        "https://docs.open-mpi.org/en/v5.0.1/tuning-apps/networking/cuda.html",
    ),
    "gc": SourceDocument(_PYTHON, "gc: Garbage Collector interface", "https://docs.python.org/library/gc.html"),
    "gil": SourceDocument(_PYTHON, "sys.setswitchinterval(), global interpreter lock"),
    "mallopt": SourceDocument(
        "Linux manual", "mallopt(3)", "https://manpages.ubuntu.com/manpages/noble/man3/mallopt.3.html"
    ),
    "taskset": SourceDocument("Linux manual", "taskset(1)", "https://linux.die.net/man/1/taskset"),
}
