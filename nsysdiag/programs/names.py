"""The names in a trace that tell of frameworks: those of the programs that used a GPU, and no more than are needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.events.callchains import NO_CHAIN, file_name
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_names, process_of, thread_names
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct_values
from nsysdiag.events.samples import SampleRows
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.programs.facts import FRAMEWORKS, TITLES, Framework, FrameworkId
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

Pattern = re.Pattern[str]


class FrameworkRule(Struct, frozen=True):
    """Patterns match anywhere in a name unless anchored; None: no name of this kind is evidence.

    `kernel` is about whole kernel names, `range` and `domain` about those of NVTX; `module` is about the file names of
    libraries in call chains; `process` is about programs and threads, `call` about API calls, `table` about tables with
    rows."""

    kernel: Pattern | None = None
    range: Pattern | None = None
    domain: Pattern | None = None
    module: Pattern | None = None
    process: Pattern | None = None
    call: Pattern | None = None
    table: Pattern | None = None


RULES: dict[FrameworkId, FrameworkRule] = {
    "vllm": FrameworkRule(
        kernel=re.compile(r"\bvllm::"),
        range=re.compile(r"^vllm::|^execute_context_\d"),
        module=re.compile(r"^_vllm_"),
        process=re.compile(r"^(VLLM::|vllm$)"),
    ),
    "sglang": FrameworkRule(
        kernel=re.compile(r"\bsglang::"),
        range=re.compile(r"^(sglang|sgl_kernel)::"),
        module=re.compile(r"^sgl_kernel"),
        process=re.compile(r"^sglang(::|$)"),
    ),
    "tensorrt-llm": FrameworkRule(
        kernel=re.compile(r"\btensorrt_llm::"),
        range=re.compile(r"^\[Executor\] _forward_step\b"),
        module=re.compile(r"^libtensorrt_llm|^libth_common\b"),
        process=re.compile(r"^trtllm-"),
    ),
    "pytorch": FrameworkRule(
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
    "jax": FrameworkRule(
        kernel=re.compile(r"^(loop|input|transpose|scatter|concatenate|gemm)_(\w+_)*fusion(_\d+)*$"),
        range=re.compile(r"hlo_module=(jit|pjit|pmap)_"),
        module=re.compile(r"^(libjax|_?jaxlib|xla_extension|xla_cuda_plugin|pjrt_c_api_gpu)"),
    ),
    "tensorflow": FrameworkRule(
        kernel=re.compile(r"\btensorflow::"),
        domain=re.compile(r"^tensorflow(-\w+)?$"),
        module=re.compile(r"^(lib|_pywrap_)tensorflow"),
    ),
    "cupy": FrameworkRule(kernel=re.compile(r"^cupyx?_\w"), module=re.compile(r"^cupyx?[_.]")),
    "triton": FrameworkRule(
        kernel=re.compile(r"^triton_(poi|red|per|tem|unk|mm|bmm|split_scan)_|^\w+_0d1d2(d|e|c|$)"),
        module=re.compile(r"^libtriton(\.|-)|^__triton_launcher"),
    ),
    "tensorrt": FrameworkRule(
        kernel=re.compile(r"^(trt_|__my(e|el|elin|l)_)|\bnvinfer1::|\bgenericReformat::|\bcask_trt::"),
        domain=re.compile(r"^TensorRT$"),
        module=re.compile(r"^(lib)?nvinfer"),
        process=re.compile(r"^trtexec$"),
    ),
    "openacc": FrameworkRule(
        kernel=re.compile(r"^\w+_\d+_gpu(__red)?$"),
        module=re.compile(r"^libacc(host|device|cuda)"),
        table=re.compile(r"^CUPTI_ACTIVITY_KIND_OPENACC_"),
    ),
    "openmp-target": FrameworkRule(
        kernel=re.compile(r"^__omp_offloading_|^nvkernel_\w+_F\d+L\d+_\d+|\$_omp_fn\$\d+"),
        module=re.compile(r"^libomptarget"),
    ),
    "kokkos": FrameworkRule(
        kernel=re.compile(r"\bKokkos::"), range=re.compile(r"^Kokkos::"), module=re.compile(r"^libkokkos")
    ),
    "julia": FrameworkRule(
        kernel=re.compile(r"^julia_\w+_\d+$|CuKernelContext|CuDeviceArray"),
        module=re.compile(r"^libjulia"),
        process=re.compile(r"^julia(\.exe)?$"),
    ),
    "rocm": FrameworkRule(kernel=re.compile(r"^Cijk_[A-Z]"), call=re.compile(r"^hip[A-Z]")),
    "mpi": FrameworkRule(
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


# Which frameworks a program uses, by names alone: a pure function.


class TraceNames(Struct, frozen=True):
    """Distinct names in a trace, in any order: whole kernel names, NVTX ranges and domains, file names of modules in
    call chains, programs, threads, API calls, and tables with rows."""

    kernels: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


class _NameKind(Struct, frozen=True):
    """A kind of name: the field of `TraceNames`, that of `FrameworkRule`, and how the evidence is worded."""

    names: str
    rule: str
    words: Callable[[str], Sentence]


KERNELS = "kernels"
_KINDS = (
    _NameKind(KERNELS, "kernel", lambda name: say("kernel {}", typed.kernel(name))),
    _NameKind("ranges", "range", lambda name: say("NVTX range {}", typed.nvtx(name))),
    _NameKind("domains", "domain", lambda name: say("NVTX domain {}", typed.nvtx(name))),
    _NameKind("modules", "module", lambda name: say("library {} in call chains", typed.name(TextKind.MODULE, name))),
    _NameKind("processes", "process", lambda name: say("process {}", typed.process(name))),
    _NameKind("threads", "process", lambda name: say("thread {}", typed.thread(name))),
    _NameKind("calls", "call", lambda name: say("calls of {}", typed.api(name))),
    _NameKind("tables", "table", lambda name: f"rows in {name}"),
)


def frameworks_of(names: TraceNames) -> list[Framework]:
    """The frameworks that the names tell, in the order of FRAMEWORKS; none for plain CUDA."""
    found = {framework: _evidence(rule, names) for framework, rule in RULES.items()}
    if found["tensorflow"] and found[COMPILED_BY_XLA].keys() <= {KERNELS}:
        found[COMPILED_BY_XLA] = {}
    for framework, basis in MADE_WITH.items():
        if found[framework] and not found[basis]:
            found[basis] = {framework: f"{TITLES[framework]} is made with it"}
    return [Framework(id=each, evidence=list(found[each].values())) for each in FRAMEWORKS if found[each]]


def ids_of(found: Iterable[Framework]) -> list[str]:
    """Their ids, in the same order."""
    return [each.id for each in found]


def _evidence(rule: FrameworkRule, names: TraceNames) -> dict[str, Sentence]:
    """A sentence for each kind of name that tells, with the first name that does, by the alphabet."""
    said = {}
    for kind in _KINDS:
        pattern = getattr(rule, kind.rule)
        every: tuple[str, ...] = getattr(names, kind.names)
        telling = min(filter(pattern.search, every), default=None) if pattern is not None else None
        if telling is not None:
            said[kind.names] = kind.words(telling)
    return said


MOST_CHAINS = 500
"""Call chains that are looked at, spread evenly over all: a framework is in most chains of a program that uses it."""
MOST_RANGES = 10_000
"""Names of ranges that are looked at, spread evenly: PyTorch numbers its operators, so that each has a name."""


def names_of(trace: Trace, activity: DeviceActivity, ranges: NvtxRanges, samples: SampleRows) -> TraceNames:
    """The names of the processes (globalPids) that made CUDA calls or have work on a GPU, or, where none did, of all
    that have ranges. Kernels by their whole and their short names, where the trace has them."""
    operations = activity.operations
    callers = distinct_values(process_of(activity.api_calls.rows.thread)).tolist()
    working = {*callers, *distinct_values(operations.process).tolist()} - {-1, 0}
    processes = working or set(distinct_values(process_of(ranges.rows.thread)).tolist())
    programs, threads = process_names(trace), thread_names(trace)
    kernel = operations.category == Category.KERNEL
    kernels = np.union1d(operations.name[kernel], operations.short_name[kernel])
    named, most = ranges.names, min(len(ranges.names), MOST_RANGES)
    return TraceNames(
        kernels=tuple(sorted(set(trace.strings.texts(kernels[kernels >= 0])))),
        ranges=tuple(named[len(named) * at // most] for at in range(most)),
        domains=tuple(sorted(set(ranges.domains))),
        modules=_modules(trace, activity, samples, processes),
        processes=tuple(sorted({file_name(name) for process, name in programs.items() if process in processes})),
        threads=tuple(sorted({name for thread, name in threads.items() if process_of(thread) in processes})),
        calls=tuple(activity.api_calls.names),
        tables=tuple(name for name, rows in trace.tables().items() if rows),
    )


def _modules(trace: Trace, activity: DeviceActivity, samples: SampleRows, processes: set[int]) -> tuple[str, ...]:
    """The file names of the modules in call chains of CUDA calls and of CPU samples of these processes."""
    chains = activity.api_calls.chain
    mine = np.isin(process_of(samples.thread), np.array(sorted(processes), dtype=np.int64))
    by_table = {"CUDA_CALLCHAINS": np.unique(chains[chains > NO_CHAIN]), "SAMPLING_CALLCHAINS": samples.id[mine]}
    found: set[str] = set()
    for table, ids in by_table.items():
        chosen = ids[np.linspace(0, len(ids) - 1, min(len(ids), MOST_CHAINS)).astype(np.int64)]
        modules = np.unique(trace.read_chosen(table, "id", chosen, "module")["module"])
        found |= {file_name(path) for path in trace.strings.texts(modules[modules >= 0])}
    return tuple(sorted(found))
