"""The names in a trace that tell of frameworks: those of the programs that used a GPU, and no more than are needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.matching import matching
from nsysdiag.events.callchains import NO_CHAIN, file_name
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_names, process_of, thread_names
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.samples import SampleRows
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.programs.facts import FRAMEWORKS, TITLES, Framework
from nsysdiag.typed import say

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


# The names by which a framework is detected: one rule per framework, a pattern for each kind of name.
#
# A name counts only if the framework itself made it. Not evidence: `ncclDevKernel`, which is in programs of all kinds,
# `python`, and libraries that are loaded but in no call chain. Sources are the name registries of the projects
# themselves:
#
# * PyTorch: namespaces of ATen and c10 in kernels; operators as NVTX ranges (torch.autograd.profiler.emit_nvtx); thread
#   names of c10::setThreadName (`pt_main_thread`, `pt_autograd_0`).
# * XLA: names of fusions (`loop_add_fusion`); modules as NVTX ranges (`XlaModule:#hlo_module=jit_step`), where JAX
#   begins the names of its modules with `jit_` or `pmap_`. TensorFlow compiles with XLA too, and has additional names
#   of its own.
# * Triton: Inductor's kernels (`triton_poi_fused_add_0`), which PyTorch makes; signatures of arguments (`_0d1d2d`)
#   before Triton 3; its libraries.
# * ROCm: calls of HIP; kernels of Tensile (`Cijk_Ailk_Bljk_…`).
# * TensorRT: its NVTX domain, `trt_` and `__myl_` kernels. Compilers: clang's `__omp_offloading_…`, the NVIDIA HPC
#   compilers' `nvkernel_…_F1L20_2` (OpenMP) and `main_42_gpu` (OpenACC; `do concurrent` is named so as well).

TraceNames = dict[str, tuple[str, ...]]
"""Distinct names in a trace, in any order, by kind: whole names of kernels, NVTX ranges and domains, file names of
libraries in call chains (`module`), programs, threads, API calls, and tables with rows."""
RULES: dict[str, dict[str, str]] = {
    "vllm": {
        "kernel": r"\bvllm::",
        "range": r"^vllm::|^execute_context_\d",
        "module": r"^_vllm_",
        "process": r"^(VLLM::|vllm$)",
    },
    "sglang": {
        "kernel": r"\bsglang::",
        "range": r"^(sglang|sgl_kernel)::",
        "module": r"^sgl_kernel",
        "process": r"^sglang(::|$)",
    },
    "tensorrt-llm": {
        "kernel": r"\btensorrt_llm::",
        "range": r"^\[Executor\] _forward_step\b",
        "module": r"^libtensorrt_llm|^libth_common\b",
        "process": r"^trtllm-",
    },
    "pytorch": {
        "kernel": r"\bat::(native|cuda)::|\bc10::(cuda|BFloat16|Half|complex)\b|\btorch::|\btriton_(poi|red|per)_fused",
        "range": (
            r"^(aten|autograd|c10d|c10d_functional|prims|torch)::|^FSDP::|^DistributedDataParallel\.|"
            r"^FullyShardedDataParallel\.|^(enumerate\(DataLoader\)|Optimizer\.(step|zero_grad))#|"
            r"^Torch-Compiled Region"
        ),
        "module": r"^lib(torch(_\w+)?|c10(_cuda)?)(-\w+)?\.(so|dylib|dll)",
        "process": r"^torchrun$|^pt_(main_thread|autograd|nccl|data_)",
    },
    "jax": {
        "kernel": r"^(loop|input|transpose|scatter|concatenate|gemm)_(\w+_)*fusion(_\d+)*$",
        "range": r"hlo_module=(jit|pjit|pmap)_",
        "module": r"^(libjax|_?jaxlib|xla_extension|xla_cuda_plugin|pjrt_c_api_gpu)",
    },
    "tensorflow": {
        "kernel": r"\btensorflow::",
        "domain": r"^tensorflow(-\w+)?$",
        "module": r"^(lib|_pywrap_)tensorflow",
    },
    "cupy": {"kernel": r"^cupyx?_\w", "module": r"^cupyx?[_.]"},
    "triton": {
        "kernel": r"^triton_(poi|red|per|tem|unk|mm|bmm|split_scan)_|^\w+_0d1d2(d|e|c|$)",
        "module": (r"^libtriton(\.|-)|^__triton_launcher"),
    },
    "tensorrt": {
        "kernel": r"^(trt_|__my(e|el|elin|l)_)|\bnvinfer1::|\bgenericReformat::|\bcask_trt::",
        "domain": r"^TensorRT$",
        "module": (r"^(lib)?nvinfer"),
        "process": r"^trtexec$",
    },
    "openacc": {
        "kernel": r"^\w+_\d+_gpu(__red)?$",
        "module": r"^libacc(host|device|cuda)",
        "table": r"^CUPTI_ACTIVITY_KIND_OPENACC_",
    },
    "openmp-target": {
        "kernel": r"^__omp_offloading_|^nvkernel_\w+_F\d+L\d+_\d+|\$_omp_fn\$\d+",
        "module": r"^libomptarget",
    },
    "kokkos": {"kernel": r"\bKokkos::", "range": r"^Kokkos::", "module": r"^libkokkos"},
    "julia": {
        "kernel": r"^julia_\w+_\d+$|CuKernelContext|CuDeviceArray",
        "module": r"^libjulia",
        "process": r"^julia(\.exe)?$",
    },
    "rocm": {"kernel": r"^Cijk_[A-Z]", "call": r"^hip[A-Z]"},
    "mpi": {
        "domain": r"^MPI$",
        "module": r"^lib(p?mpi(ch|cxx|fort|\w*_\w+)?|open-(rte|pal))([-.]|$)|^h?mca_|^msmpi\.dll",
        "process": r"^MPI Rank \d+$",
        "table": r"^MPI_(P2P|COLLECTIVES|START_WAIT|OTHER)_EVENTS",
    },
}
"""Patterns of names by kind, which match anywhere in a name unless anchored. Those of `process` are about threads too;
no name of a kind without a pattern is evidence."""
MADE_WITH = {"vllm": "pytorch", "sglang": "pytorch"}
"""Frameworks that are built on another one: their programs are PyTorch programs, whatever else is detected."""
COMPILED_BY_XLA = "jax"
"""Kernels alone do not tell XLA's frameworks apart: they count for this one unless TensorFlow shows."""


# Which frameworks a program uses, by names alone: a pure function.


_WORDS: dict[str, Callable[[str], Sentence]] = {
    "kernel": lambda name: say("kernel {}", typed.kernel(name)),
    "range": lambda name: say("NVTX range {}", typed.nvtx(name)),
    "domain": lambda name: say("NVTX domain {}", typed.nvtx(name)),
    "module": lambda name: say("library {} in call chains", typed.name(TextKind.MODULE, name)),
    "process": lambda name: say("process {}", typed.process(name)),
    "thread": lambda name: say("thread {}", typed.thread(name)),
    "call": lambda name: say("calls of {}", typed.api(name)),
    "table": lambda name: f"rows in {name}",
}
"""How the evidence is worded, by the kind of name."""


def frameworks_of(names: TraceNames) -> list[Framework]:
    """The frameworks that the names tell, in the order of FRAMEWORKS; none for plain CUDA."""
    found = {framework: _evidence(rule, names) for framework, rule in RULES.items()}
    if found["tensorflow"] and found[COMPILED_BY_XLA].keys() <= {"kernel"}:
        found[COMPILED_BY_XLA] = {}
    for framework, basis in MADE_WITH.items():
        if found[framework] and not found[basis]:
            found[basis] = {framework: f"{TITLES[framework]} is made with it"}
    return [Framework(id=each, evidence=list(found[each].values())) for each in FRAMEWORKS if found[each]]


def ids_of(found: Iterable[Framework]) -> list[str]:
    """Their ids, in the same order."""
    return [each.id for each in found]


def _evidence(rule: dict[str, str], names: TraceNames) -> dict[str, Sentence]:
    """A sentence for each kind of name that tells, with the first name that does, by the alphabet."""
    said = {}
    for kind, words in _WORDS.items():
        pattern, texts = rule.get("process" if kind == "thread" else kind), names.get(kind, ())
        telling = min(compress(texts, matching(re.compile(pattern), texts)), default=None) if pattern else None
        if telling is not None:
            said[kind] = words(telling)
    return said


MOST_CHAINS = 500
"""Call chains that are looked at, spread evenly over all: a framework is in most chains of a program that uses it."""
MOST_RANGES = 10_000
"""Names of ranges that are looked at, spread evenly: PyTorch numbers its operators, so that each has a name."""


def names_of(trace: Trace, activity: DeviceActivity, ranges: NvtxRanges, samples: SampleRows) -> TraceNames:
    """The names of the processes (globalPids) that made CUDA calls or have work on a GPU, or, if none did, of all
    that have ranges. Kernels by their whole and their short names, if the trace has them."""
    operations = activity.operations
    callers = distinct_values(process_of(activity.api_calls.rows.thread)).tolist()
    working = {*callers, *distinct_values(operations.process).tolist()} - {-1, 0}
    processes = working or set(distinct_values(process_of(ranges.rows.thread)).tolist())
    programs, threads = process_names(trace), thread_names(trace)
    kernel = operations.category == Category.KERNEL
    kernels = np.union1d(distinct_values(operations.name[kernel]), distinct_values(operations.short_name[kernel]))
    named, most = ranges.names, min(len(ranges.names), MOST_RANGES)
    return {
        "kernel": tuple(sorted(set(trace.strings.texts(kernels[kernels >= 0])))),
        "range": tuple(named[len(named) * at // most] for at in range(most)),
        "domain": tuple(sorted(set(ranges.domains))),
        "module": _modules(trace, activity, samples, processes),
        "process": tuple(sorted({file_name(name) for process, name in programs.items() if process in processes})),
        "thread": tuple(sorted({name for thread, name in threads.items() if process_of(thread) in processes})),
        "call": tuple(activity.api_calls.names),
        "table": tuple(name for name, rows in trace.tables().items() if rows),
    }


def _modules(trace: Trace, activity: DeviceActivity, samples: SampleRows, processes: set[int]) -> tuple[str, ...]:
    """The file names of the modules in call chains of CUDA calls and of CPU samples of these processes."""
    chains = activity.api_calls.chain
    mine = np.isin(process_of(samples.thread), np.array(sorted(processes), dtype=np.int64))
    by_table = {"CUDA_CALLCHAINS": distinct_values(chains[chains > NO_CHAIN]), "SAMPLING_CALLCHAINS": samples.id[mine]}
    found: set[str] = set()
    for table, ids in by_table.items():
        chosen = ids[np.linspace(0, len(ids) - 1, min(len(ids), MOST_CHAINS)).astype(np.int64)]
        modules = distinct_values(trace.read_chosen(table, "id", chosen, "module")["module"])
        found |= {file_name(path) for path in trace.strings.texts(modules[modules >= 0])}
    return tuple(sorted(found))
