"""The names by which a framework is detected: one rule per framework, a pattern for each kind of name.

A name counts only if the framework itself made it. Not evidence: `ncclDevKernel`, which is in programs of all kinds,
`python`, and libraries that are loaded but in no call chain. Sources are the name registries of the projects
themselves:

* PyTorch: namespaces of ATen and c10 in kernels; operators as NVTX ranges (torch.autograd.profiler.emit_nvtx); thread
  names of c10::setThreadName (`pt_main_thread`, `pt_autograd_0`).
* XLA: names of fusions (`loop_add_fusion`); modules as NVTX ranges (`XlaModule:#hlo_module=jit_step`), where JAX begins
  the names of its modules with `jit_` or `pmap_`. TensorFlow compiles with XLA too, and has additional names of its
  own.
* Triton: Inductor's kernels (`triton_poi_fused_add_0`), which PyTorch makes; signatures of arguments (`_0d1d2d`) before
  Triton 3; its libraries.
* TensorRT: its NVTX domain, `trt_` and `__myl_` kernels. Compilers: clang's `__omp_offloading_…`, the NVIDIA HPC
  compilers' `nvkernel_…_F1L20_2` (OpenMP) and `main_42_gpu` (OpenACC; `do concurrent` is named so as well).
"""

from __future__ import annotations

import re

from msgspec import Struct

from nsysdiag.programs.facts import FrameworkId

Pattern = re.Pattern[str]


class Rule(Struct, frozen=True):
    """Patterns match anywhere in a name unless anchored; None: no name of this kind is evidence.

    `kernel` is about whole kernel names, `range` and `domain` about those of NVTX; `module` is about the file names of
    libraries in call chains; `process` is about programs and threads, `table` about tables with rows."""

    kernel: Pattern | None = None
    range: Pattern | None = None
    domain: Pattern | None = None
    module: Pattern | None = None
    process: Pattern | None = None
    table: Pattern | None = None


RULES: dict[FrameworkId, Rule] = {
    "pytorch": Rule(
        kernel=re.compile(
            r"\bat::(native|cuda)::|\bc10::(cuda|BFloat16|Half|complex)\b|\btorch::|\btriton_(poi|red|per)_fused"
        ),
        range=re.compile(
            r"^(aten|autograd|c10d|c10d_functional|prims|torch)::|^FSDP::|^DistributedDataParallel\.|"
            r"^FullyShardedDataParallel\.|^(enumerate\(DataLoader\)|Optimizer\.(step|zero_grad))#|"
            r"^Torch-Compiled Region"
        ),
        module=re.compile(r"^lib(torch(_\w+)?|c10(_cuda)?)(-\w+)?\.(so|dylib|dll)"),
        process=re.compile(r"^torchrun$|^pt_(main_thread|autograd|nccl|data_)"),
    ),
    "jax": Rule(
        kernel=re.compile(r"^(loop|input|transpose|scatter|concatenate|gemm)_(\w+_)*fusion(_\d+)*$"),
        range=re.compile(r"hlo_module=(jit|pjit|pmap)_"),
        module=re.compile(r"^(libjax|_?jaxlib|xla_extension|xla_cuda_plugin|pjrt_c_api_gpu)"),
    ),
    "tensorflow": Rule(
        kernel=re.compile(r"\btensorflow::"),
        domain=re.compile(r"^tensorflow(-\w+)?$"),
        module=re.compile(r"^(lib|_pywrap_)tensorflow"),
    ),
    "cupy": Rule(
        kernel=re.compile(r"^cupyx?_\w"),
        module=re.compile(r"^cupyx?[_.]"),
    ),
    "triton": Rule(
        kernel=re.compile(r"^triton_(poi|red|per|tem|unk|mm|bmm|split_scan)_|^\w+_0d1d2(d|e|c|$)"),
        module=re.compile(r"^libtriton(\.|-)|^__triton_launcher"),
    ),
    "tensorrt": Rule(
        kernel=re.compile(r"^(trt_|__my(e|el|elin|l)_)|\bnvinfer1::|\bgenericReformat::|\bcask_trt::"),
        domain=re.compile(r"^TensorRT$"),
        module=re.compile(r"^(lib)?nvinfer"),
        process=re.compile(r"^trtexec$"),
    ),
    "vllm": Rule(
        kernel=re.compile(r"\bvllm::"),
        module=re.compile(r"^_vllm_"),
        process=re.compile(r"^(VLLM::|vllm$)"),
    ),
    "sglang": Rule(
        kernel=re.compile(r"\bsglang::"),
        module=re.compile(r"^sgl_kernel"),
        process=re.compile(r"^sglang(::|$)"),
    ),
    "openacc": Rule(
        kernel=re.compile(r"^\w+_\d+_gpu(__red)?$"),
        module=re.compile(r"^libacc(host|device|cuda)"),
        table=re.compile(r"^CUPTI_ACTIVITY_KIND_OPENACC_"),
    ),
    "openmp-target": Rule(
        kernel=re.compile(r"^__omp_offloading_|^nvkernel_\w+_F\d+L\d+_\d+|\$_omp_fn\$\d+"),
        module=re.compile(r"^libomptarget"),
    ),
    "kokkos": Rule(
        kernel=re.compile(r"\bKokkos::"),
        range=re.compile(r"^Kokkos::"),
        module=re.compile(r"^libkokkos"),
    ),
    "julia": Rule(
        kernel=re.compile(r"^julia_\w+_\d+$|CuKernelContext|CuDeviceArray"),
        module=re.compile(r"^libjulia"),
        process=re.compile(r"^julia(\.exe)?$"),
    ),
    "mpi": Rule(
        domain=re.compile(r"^MPI$"),
        module=re.compile(r"^lib(p?mpi(ch|cxx|fort|\w*_\w+)?|open-(rte|pal))([-.]|$)|^h?mca_|^msmpi\.dll"),
        process=re.compile(r"^MPI Rank \d+$"),
        table=re.compile(r"^MPI_(P2P|COLLECTIVES|START_WAIT|OTHER)_EVENTS"),
    ),
}
MADE_WITH: dict[FrameworkId, FrameworkId] = {"vllm": "pytorch", "sglang": "pytorch"}
"""Frameworks that are built on another one: their programs are PyTorch programs, whatever else is detected."""
COMPILED_BY_XLA: FrameworkId = "jax"
"""Kernels alone do not tell XLA's frameworks apart: they count for this one unless TensorFlow shows."""
