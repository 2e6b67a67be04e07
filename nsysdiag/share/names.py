"""Public names, which redaction keeps; pseudonyms for all others; and settings of a report without names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import fields

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import Settings
from nsysdiag.events.callchains import file_name
from nsysdiag.events.calls import cuda_name
from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.events.gpu_metrics import is_metric
from nsysdiag.events.operations import copy_name
from nsysdiag.fields import SettingValue
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import short_name
from nsysdiag.trace.tables import TABLES

# Public names, which redaction keeps: functions of CUDA and its libraries, of MPI, the C library and CPython, their
# libraries, tables of nsys, GPU models and metrics.
#
# A name is public if it is on a list or fits a closed grammar of listed words and digits. A similar name
# (`cudaSolveHeat`, `PyObject_AcmeWrap`, `libnccl-acme.so`) is not public. The lists in nsysdiag/data/public are written
# by scripts/public_names.

MOST_KINDS = 91
"""Kinds of copies by number, known or not: higher ones are not distinguished."""
LONGEST = 120
"""Characters: no listed name is longer, and what is need not be searched."""
_FOLDER = Path(__file__).parents[1] / "data" / "public"
_FUNCTIONS = ("cuda", "cublas", "cudnn", "nccl", "mpi", "libc", "python")
_PLACES = frozenset(
    {"[Unknown]", "[Broken backtraces]", "[Max depth]", "[vdso]", "[vsyscall]", "[kernel.kallsyms]"}
    | {f"<{each}>" for each in ("module", "lambda", "listcomp", "dictcomp", "setcomp", "genexpr")}
)
_WRAPPED = re.compile(r"NSYS_OSRT_(?P<traced>\w+)_\d|__GI_(?P<internal>\w+)")
_VERSIONED = re.compile(r"(?P<base>cu\w+?|_+cuda\w+?)(_v\d{1,5}|_ptsz|_ptds){1,3}", re.ASCII)
"""`cudaMalloc_v3020`, `cudaMemcpy_ptds_v7000`, `cuMemAlloc_v2`: how CUPTI writes versions and default streams."""
_CLONED = re.compile(r"(?P<base>\w+?)(\.(cold|part|isra|constprop|lto_priv)(\.\d{1,3})?){1,4}", re.ASCII)
"""`dict_dealloc.part.0`: what compilers append to the parts of a function."""
_OF_NSYS = frozenset({
    "Buffer flush", "CUDA backtrace profiling initialization", "CUDA profiling data flush",
    "CUDA profiling data flush on context created", "CUDA profiling data flush on cuInit finished",
    "CUDA profiling data flush on process exit", "CUDA profiling data flush overhead", "CUDA profiling initialization",
    "CUPTI Buffer flush", "CUPTI Instrumentation", "CUPTI Resource Management", "CUPTI: Buffer flush",
    "CUPTI: Instrumentation", "CUPTI: Resource Management", "Chunk Allocation", "Driver JIT Compiler",
    "Driver compiler", "Instrumentation", "Lazy Function Loading", "NVTX early profiling initialization",
    "NVTX profiling initialization", "OS runtime libraries profiling finished",
    "OS runtime libraries profiling initialization", "OS runtime libraries profiling started",
    "OpenGL profiling initialization", "Resource", "Resource Management", "Runtime Triggered Module Loading",
    "TLS allocation", "Unknown",
})  # fmt: skip
"""What nsys and CUPTI call their own work, where others name a call."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LOADED = re.compile(r"dlopen\((?P<module>[^()]*)\)")
_LIBRARIES = """
    c m dl rt pthread util gcc_s stdc++ gomp iomp5 tbb tbbmalloc
    cuda cudart cublas cublasLt cufft cufftw curand cusparse cusolver cusolverMg cupti cupti-sbsa nccl nvrtc
    nvrtc-builtins nvidia-ml nvidia-ptxjitcompiler nvJitLink nvToolsExt cudnn cudnn_ops cudnn_cnn cudnn_adv cudnn_graph
    cudnn_engines_precompiled cudnn_engines_runtime_compiled cudnn_heuristic cudnn_ops_infer cudnn_ops_train
    cudnn_cnn_infer cudnn_cnn_train cudnn_adv_infer cudnn_adv_train
    torch torch_cpu torch_cuda torch_python torch_global_deps c10 c10_cuda
    ToolsInjection64 ToolsInjectionCuda64 ToolsInjectionProxy64 ToolsInjectionMemoryAllocator
    ToolsInjectionMPICH64 ToolsInjectionOpenMPI64
"""
_MODULE = re.compile(
    rf"lib({'|'.join(map(re.escape, sorted(_LIBRARIES.split(), key=len, reverse=True)))})"
    # The version as file names have it, and the hash by which auditwheel tells copies apart.
    r"(-[0-9a-f]{8}|-\d{1,2}\.\d{1,3})?\.so(\.\d{1,6}){0,4}"
    r"|ld-linux-(x86-64|aarch64)\.so\.\d|ld-\d{1,2}\.\d{1,3}\.so"
    r"|libpython\d(\.\d{1,2})?[dmt]{0,2}\.so(\.\d{1,2}){0,2}|python(\d(\.\d{1,2})?)?"
    r"|\[(kernel\.kallsyms|vdso|vsyscall|Unknown)\]",
    re.ASCII,
)
_CLASSES = frozenset({*(copy_name(kind) for kind in range(MOST_KINDS)), "memset", "graph"})
_TABLES = frozenset(name for spec in TABLES.values() for name in (spec.name, *spec.older))
_TABLE_VERSION = re.compile(r"_V[0-9]{1,3}$")
_GPU_WORDS = """
    NVIDIA GeForce Tesla Quadro TITAN Titan RTX GTX GT MX NVS GRID PRO CMP Ti SUPER Super Ada Generation Blackwell
    Hopper Server Workstation Edition Max-Q Max Q with Design Laptop Mobile GPU PCIe PCIE SXM NVL CNX MIG DGX Spark
    Jetson Orin Xavier Thor AGX NX Nano Tegra nvgpu Graphics Device Black Xp Z V D
"""
_GPU_MODEL = re.compile(
    rf"{'|'.join(_GPU_WORDS.split())}"
    r"|(A|B|C|GB|GH|GP|GV|GTX|GT|H|K|L|M|MX|P|RTX|SXM|T|TU|V|HBM)?[0-9]{1,4}(GB|MB|HX|Ti|[A-Zbegm]{0,2})"
)
"""`H200`, `A10G`, `GH200`, `RTX5880`, `80GB`, `HBM3e`, `SXM4`, `3g.20gb`: digits with the letters that models have."""
_CHIP = re.compile(r"(GF|GK|GM|GP|GV|TU|GA|AD|GH|GB|GR|T)[0-9]{2,3}[A-Z]?")
LONGEST_GPU = 64
_BUS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(\.[0-7])?")
_PRODUCT, _NSYS_VERSION = "NVIDIA Nsight Systems", re.compile(r"\d{1,4}(\.\d{1,6}){0,4}(-\d{1,16}v\d{1,3})?", re.ASCII)


@cache
def listed(name: str) -> frozenset[str]:
    """A list of public names by its file's stem."""
    return frozenset((_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines())


@cache
def _functions() -> frozenset[str]:
    return frozenset().union(*map(listed, _FUNCTIONS))


@lru_cache(maxsize=65_536)
def is_public_function(name: str) -> bool:
    """A function of CUDA and its libraries, of MPI, the C library or the interpreter."""
    if len(name) > LONGEST:
        return False
    if name in _PLACES or cuda_name(name) in _functions():
        return True
    if found := _WRAPPED.fullmatch(name):
        return (found["traced"] or found["internal"]) in _functions()
    found = _VERSIONED.fullmatch(name) or _CLONED.fullmatch(name)
    return found is not None and found["base"] in _functions()


def is_public_call(name: str) -> bool:
    """The same, or what nsys calls its own overhead: what a table of calls can name."""
    if name in _OF_NSYS or is_public_function(name):
        return True
    loaded = _LOADED.fullmatch(name[:LONGEST])
    return loaded is not None and (loaded["module"] == "NULL" or is_public_module(loaded["module"]))


def is_public_module(name: str) -> bool:
    """A library that programs share, or the kernel."""
    return len(name) <= LONGEST and _MODULE.fullmatch(name) is not None


def is_public_symbol(name: str) -> bool:
    """A function, a library if the function is not known, or an address alone."""
    return is_public_function(name) or is_public_module(name) or _ADDRESS.fullmatch(name) is not None


def is_class_of_operation(name: str) -> bool:
    """The names of operations other than kernels: `memcpy HtoD`, `memset`, `graph`."""
    return name in _CLASSES


def is_public_table(name: str) -> bool:
    """A table that is declared, in any version, or an enumeration of nsys."""
    return _TABLE_VERSION.sub("", name) in _TABLES or is_public_enumeration(name)


def is_public_enumeration(name: str) -> bool:
    """An enumeration of nsys, or one of its values."""
    return name in listed("enumerations")


def is_public_gpu(name: str) -> bool:
    """A model of NVIDIA: `NVIDIA A100-SXM4-80GB`, `NVIDIA GeForce RTX 4090 Laptop GPU`; and one without a name."""
    parts = re.split(r"[ ()./-]+", name) if len(name) <= LONGEST_GPU else [name]
    return all(not part or _GPU_MODEL.fullmatch(part) for part in parts)


def is_public_chip(name: str) -> bool:
    """A chip of NVIDIA by its code name: `GA100`."""
    return _CHIP.fullmatch(name) is not None


def is_public_metric(name: str) -> bool:
    """A GPU metric that the analysis understands."""
    return is_metric(name)


def is_bus_address(text: str) -> bool:
    """Where a device sits: `0000:3b:00.0`."""
    return _BUS.fullmatch(text) is not None


def is_public_version(text: str) -> bool:
    """What an exporter says of itself: the name of nsys, and version numbers."""
    return text == _PRODUCT or _NSYS_VERSION.fullmatch(text) is not None


# Pseudonyms of names, numbered by first appearance: `kernel 7`, `kernel 7<2>`, `range 3 #12`.

# The ways in which a name is written: whole, short, without counters. All of them are one name.
#
# ```
# void at::native::vectorized_elementwise_kernel<4, AbsFunctor<float>>(int)
#                  vectorized_elementwise_kernel<AbsFunctor<float>, …>       kernel 7<1>
#                  vectorized_elementwise_kernel                             kernel 7
# train step 12        train step #                                          range 3 #12, range 3
# /data/run/loader.py  loader.py                                             file 2
# ```

KERNEL, RANGE, SYMBOL, MODULE = "kernel", "range", "symbol", "module"
THREAD, PROCESS, FILE, NAME = "thread", "process", "file", "name"
GPU = "GPU"
"""The kinds of names, each numbered for itself; `name` is one of unknown kind."""
LONGEST_COUNTER = 6
_COMMUNICATION = re.compile(r"(nccl|rccl|nvshmem)", re.IGNORECASE)
MOST_COUNTERS = 3
"""Epoch, step and micro-batch; four numbers may well be an address."""
_DIGITS = re.compile(r"[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")


class Form(Struct, frozen=True):
    """`family` is what all ways of writing share, `variant` distinguishes kernels of one template, `exact` what else
    differs; empty if nothing does. `counters` follow the token as they are."""

    family: str
    variant: str = ""
    exact: str = ""
    counters: str = ""
    label: str = ""


def form_of(kind: str, text: str) -> Form:
    """How a name of a kind is written; `label` is what the kind is called. A long name and its short one are one."""
    text = short_name(text)
    if kind == KERNEL:
        normal = normal_kernel(text)
        family = _function(normal)
        return Form(
            family,
            variant="" if normal == family else normal,
            exact="" if text == normal else text,
            label=_communication(text) or KERNEL,
        )
    if kind == RANGE:
        return Form(normal_range(text), counters=_counters(text), label=kind)
    if kind == SYMBOL:
        family = _function(normal_kernel(text))
        return Form(family, exact="" if text == family else text, label=kind)
    if kind in (MODULE, PROCESS, FILE):
        family = file_name(text) or text
        return Form(family, exact="" if text == family else text, label=kind)
    return Form(text, label=kind)


def _function(normal: str) -> str:
    """A normal name without its template arguments."""
    return normal.partition("<")[0].strip() or normal


def _communication(text: str) -> str:
    """`nccl AllReduce`: the class of a kernel that communicates stays; empty for all others."""
    found = _COMMUNICATION.search(text)
    if found is None:
        return ""
    kind = KINDS[kind_of(text)]
    return f"{found[1].lower()} {'kernel' if kind == OTHER else kind}"


def _counters(text: str) -> str:
    """` #12`: the short numbers of a range, by which iterations are distinguished."""
    numbers = [each for each in _DIGITS.findall(_HEX.sub("", text)) if len(each) <= LONGEST_COUNTER]
    counted = normal_range(text) != text and 0 < len(numbers) <= MOST_COUNTERS
    return f" #{'.'.join(numbers)}" if counted else ""


class Names:
    """The pseudonyms of one report. The same name always gets the same one."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], dict[str, int]] = {}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, text: str) -> str:
        """The pseudonym of a name; an empty one stays empty."""
        if not text:
            return text
        known = self._known.get((kind, text))
        if known is None:
            known = self._numbered(form_of(kind, text))
            self._known[kind, text] = known
        return known

    def number(self, *group: str, text: str) -> int:
        """The number of a text in its group by first appearance, from 1."""
        numbers = self._numbers.setdefault(group, {})
        return numbers.setdefault(text, len(numbers) + 1)

    def _numbered(self, form: Form) -> str:
        token = f"{form.label} {self.number(form.label, text=form.family)}"
        if form.variant:
            token += f"<{self.number(form.label, form.family, text=form.variant)}>"
        if form.exact:
            # The first way of writing is the name itself, so that whole and short names agree.
            instance = self.number(form.label, form.family, form.variant, "", text=form.exact)
            token += f".{instance}" if instance > 1 else ""
        return token + form.counters


_WORD = re.compile(r"[^\W\d]\w*")
_DEVICE = re.compile(r"gpu-?[0-9]+(-pid[0-9]+)?|[0-9]+")
_CURRENCY = re.compile(r"[A-Z]{3}|[$€£¥₩₹]")
PATTERN = "pattern"


def setting(names: Names, name: str, value: SettingValue) -> SettingValue:
    """A setting without names of the trace, of files and of users."""
    if isinstance(value, dict):
        if name == "gpus":
            return {_gpu(names, gpu): price for gpu, price in value.items() if not isinstance(price, str)}
        return {each: setting(names, each, inner) for each, inner in value.items() if each in _fields()}
    if isinstance(value, list):
        return [_named(names, name, each) if isinstance(each, str) else each for each in value]
    return _named(names, name, value) if isinstance(value, str) else value


def _named(names: Names, name: str, text: str) -> str:
    kind, stays = _KINDS.get(name, ("setting", _is_plain))
    return text if stays(text) else names.of(kind, text)


def _gpu(names: Names, gpu: str) -> str:
    return gpu if is_public_gpu(gpu) or is_public_gpu(gpu.upper()) else names.of(GPU, gpu)


def _is_plain(value: str) -> bool:
    """Whether a text is made of numbers and of what the settings themselves are called."""
    return value.isascii() and all(word in _fields() for word in _WORD.findall(value))


@cache
def _fields() -> frozenset[str]:
    return frozenset(_names_within(Settings)) | {"True", "False", "None", "adbc", "sqlite", "e", "numbered"}


def _names_within(struct: type[Struct]) -> Iterator[str]:
    for each in fields(struct):
        yield each.name
        if isinstance(each.type, type) and issubclass(each.type, Struct):
            yield from _names_within(each.type)


_KINDS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "nvtx": (RANGE, lambda _text: False),
    "step": (PATTERN, lambda text: text.startswith(("count=", "every="))),
    "config": (FILE, lambda _text: False),
    "device": (PATTERN, lambda text: _DEVICE.fullmatch(text) is not None or is_public_gpu(text)),
    "communication_patterns": (PATTERN, lambda text: text in Settings().communication_patterns),
    "disabled": ("cause", lambda text: text in CAUSES),
    "currency": ("currency", lambda text: _CURRENCY.fullmatch(text) is not None),
}
"""What a text names as a setting, and whether it may stay; of all others only numbers do."""
