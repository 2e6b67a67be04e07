"""Call chains: the functions on a thread's stack, read for a few chosen chains only (the CALLCHAINS tables)."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import CodeTable
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.rows import combinations

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace


# The owner of a function: the program itself, or a system, runtime or library component.
#
# This module has the one list of code that is not the program's own. A function is classified by its module first, then
# by its name, since runtimes are linked into programs. A function without a name (an address) is classified by its
# module.


class Origin(StrEnum):
    """Whose code a function is. NONE is none: `[Broken backtraces]`, `[Max depth]`, an address in `[Unknown]`."""

    PROGRAM = "program"
    INTERPRETER = "interpreter"
    COLLECTOR = "garbage collector"
    LIBRARY = "native library"
    PYTHON_LIBRARY = "Python library"
    KERNEL = "kernel"
    NSYS = "profiler"
    NONE = ""


_NO_NAME = ("0x", "[", "<string ")
_VERSION = re.compile(r"(?<!^)@{1,3}[A-Za-z_][\w.+-]*$")
_KERNEL_MODULE = re.compile(r"\[(kernel|vdso|vsyscall).*|.*\.ko")
_INTERPRETER_MODULE = re.compile(r"python\d?[\d.]*(\.exe)?|libpython.*", re.IGNORECASE)
_LIBRARY_FOLDER = re.compile(r"(/usr)?/lib(32|64)?/|.*[/\\](site|dist)-packages[/\\]|.*/lib-dynload/")
_LIBRARY_MODULE = re.compile(
    r"ld-linux.*|ld-[\d.]+\.so"
    # The C and C++ runtimes, threads, allocators.
    r"|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|c\+\+(abi)?|gomp|i?omp5?|tbb|tbbmalloc|[jt]e?c?malloc\w*|mimalloc)"
    r"([-.].*)?"
    # CUDA and its libraries.
    r"|lib(cuda|cudart|cudnn|cublas|cufft|curand|cusparse|cusolver|cufile|cupti|nccl|nvidia)\w*[-.].*"
    r"|libnv(blas|cuvid|encode|infer|jitlink|jpeg|ml|optix|perf|rtc|tx|vm)\w*[-.].*"
    # Frameworks and what they compute with.
    r"|lib(torch|c10|caffe2|aten|shm|triton|tensorflow|jax|xla|mkl|openblas|dnnl|mkldnn)\w*[-.].*"
    # Message passing.
    r"|lib(mpi|pmpi|open-(rte|pal)|pmix|ucp|ucs|uct|ucm|hcoll|fabric|ibverbs|mlx|rdmacm|psm2)\w*[-.].*|h?mca_.*"
)
_START = re.compile(r"_start|_init|_fini|frame_dummy|__libc_.*|__do_global_.*|start_thread|_*clone3?|__GI_.*")
_RUNTIME = re.compile(
    r"__cudart\w*|libcudart_static_\w+|__nv_.*|nvtx\w*"
    # C names of CUDA and its libraries. A function of the program in C++ has its parameters in its name.
    r"|cu(da|blas(Lt|Xt)?|dnn|fft|rand|sparse|solver|pti)?[A-Z]\w*|p?nccl[A-Z]\w*|P?MPI_\w+"
    # What the CUDA headers put around them.
    r"|cudaError(_t)? cuda[A-Z]\w*<.*",
    re.DOTALL,
)
_NAMESPACE = re.compile(
    r"(std|__gnu_cxx|__cxxabiv1|cudart|thrust|cub|cuda|c10|at|torch|caffe2|pybind11|nanobind)::"
    r"|(.*::)?(__wrapper)?__device_stub_"
)
_ALLOCATION = re.compile(r"operator (new|delete)(\[\])?(\(.*)?")
_COLLECTOR = re.compile(r"(_?Py)?gc_|_?PyGC|subtract_refs|visit_(decref|reachable)|deduce_unreachable")
_INTERPRETER = re.compile(
    r"_?Py[A-Z_]|python3?(\.\d+)?|libpython|method_vectorcall|vectorcall|_PyEval|builtin_|cfunction_vectorcall"
)
_OF_NSYS = re.compile(r"NSYS_OSRT_\w+|(lib)?ToolsInjection\w*([.-].*)?")
"""What nsys puts around a call that it records, and its library in the program."""
_PYTHON_LIBRARY = re.compile(r"<frozen |.*[/\\](site|dist)-packages[/\\]|.*[/\\]lib(64)?[/\\]python\d[\d.]*[/\\]")


def has_name(symbol: str) -> bool:
    """False for an address or a placeholder in brackets."""
    return bool(symbol) and not symbol.startswith(_NO_NAME)


def name_of(symbol: str) -> str:
    """A symbol without the ELF version (`sem_wait@@GLIBC_2.34`); empty if it is not a name. Names that begin with `?`
    are from Microsoft's compiler, and contain @."""
    if not has_name(symbol):
        return ""
    return symbol if symbol.startswith("?") else _VERSION.sub("", symbol)


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return re.split(r"[/\\]", path)[-1]


def interpreter_part(symbol: str) -> Origin | None:
    """The part of the Python interpreter that a function name belongs to, None for any other. The interpreter is in C,
    so its names have no parameters."""
    if "(" in symbol:
        return None
    if _COLLECTOR.match(symbol):
        return Origin.COLLECTOR
    return Origin.INTERPRETER if _INTERPRETER.match(symbol) else None


def part_of(symbol: str) -> Origin | None:
    """The same, and nsys's own: `NSYS_OSRT_pthread_mutex_lock_1`, or its library, where a function has no name."""
    return Origin.NSYS if _OF_NSYS.fullmatch(symbol) else interpreter_part(symbol)


@lru_cache(maxsize=65_536)
def origin_of(symbol: str, module: str) -> Origin:
    """Whose code a native function is; `module` is the path of its library or program."""
    name = file_name(module)
    if _KERNEL_MODULE.fullmatch(name):
        return Origin.KERNEL
    if not name or name.startswith(_NO_NAME):
        return Origin.NONE
    part = interpreter_part(symbol) if has_name(symbol) else None
    if part or _INTERPRETER_MODULE.fullmatch(name):
        return part or Origin.INTERPRETER
    if _OF_NSYS.fullmatch(symbol) or _OF_NSYS.fullmatch(name):
        return Origin.NSYS
    if _LIBRARY_MODULE.fullmatch(name) or _LIBRARY_FOLDER.match(module):
        return Origin.LIBRARY
    return Origin.LIBRARY if has_name(symbol) and _is_runtime(symbol) else Origin.PROGRAM


def origin_of_python(file: str) -> Origin:
    """Whose code a Python function is, by the path of its file: installed packages and the standard library are not
    the program's own."""
    return Origin.PYTHON_LIBRARY if not file or _PYTHON_LIBRARY.match(file) else Origin.PROGRAM


def _is_runtime(symbol: str) -> bool:
    """Is this a function of a runtime that was linked into the program, or that its headers brought along?"""
    patterns = (_START, _RUNTIME, _ALLOCATION)
    return any(pattern.fullmatch(symbol) for pattern in patterns) or bool(_NAMESPACE.match(qualified(symbol)))


def qualified(symbol: str) -> str:
    """The name of a demangled function with its namespaces, without return type, template arguments and parameters:
    `std::vector<int> mine::load(int) const` is `mine::load`."""
    depth, kept = 0, []
    for character in symbol.partition(" [clone")[0].removesuffix(" const"):
        if character in "<({":
            depth += 1
        elif character in ">)}":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
    words = "".join(kept).removesuffix(" const").split()
    return words[-1] if words else ""


TABLES = {"cuda": "CUDA_CALLCHAINS", "osrt": "OSRT_CALLCHAINS", "sampling": "SAMPLING_CALLCHAINS"}
"""The tables of call chains by what the chains belong to: CUDA calls, OS calls, CPU samples."""
MOST_FRAMES = 12
"""The program's own functions of a call chain that are kept, from the innermost on; callers further out are not seen.
If smaller, stacks that have only outer callers in common have no common place."""
NO_CHAIN = 0
"""What an export writes for a call whose chain was not recorded."""


class StackFrame(Struct, frozen=True):
    """A function on a stack: its name, empty if the trace has only an address; the file name of its module, or of its
    Python source (then `line` is known too); and the owner of the code."""

    symbol: str
    module: str
    origin: Origin
    python: bool = False
    line: int | None = None


class CallChain(Struct, frozen=True):
    """A call chain: its innermost frames of the program's own, innermost first, or, where it has none, its innermost
    frame. `leaf` is that innermost frame in any case."""

    frames: tuple[StackFrame, ...]
    own: bool
    leaf: StackFrame


Stacks = dict[int, CallChain]
"""Stacks by the id of their chain; a chain that is not in the trace, or holds no function, is not in it."""


class CallChains(Struct):
    """The call chains of a trace, read on demand, and only the requested ones."""

    trace: Trace
    api_calls: ApiCalls
    _os_ids: IntArray | None = None

    def ids(self, source: str) -> IntArray:
        """The chain id of every row of the table of CUDA calls (`cuda`) or OS calls (`osrt`), NO_CHAIN or below for
        none; empty if the trace holds no chains of this kind."""
        if not self.trace.has(TABLES[source]):
            return np.empty(0, dtype=np.int64)
        if source == "cuda":
            return self.api_calls.chain
        if self._os_ids is None:
            self._os_ids = self.trace.read("OSRT_API", "callchainId").integers("callchainId")
        return self._os_ids

    def stacks(self, source: str, ids: IntArray) -> Stacks:
        """The stacks of these chains of one table."""
        wanted = distinct_values(ids[ids > NO_CHAIN] if source != "sampling" else ids)
        rows = self.trace.read_chosen(TABLES[source], "id", wanted, "id", "symbol", "module", "stackDepth")
        if len(rows) == 0:
            return {}
        order = np.lexsort((rows["stackDepth"], rows["id"]))
        frames, code = self._frames(rows["symbol"][order], rows["module"][order])
        return _stacks(rows["id"][order], frames, code)

    def through(self, source: str, ids: IntArray, library: re.Pattern[str]) -> dict[int, bool]:
        """Whether each of these chains of one table passes through a library, by its file name. A chain that is only in
        the operating system's kernel, or unknown, is not in it."""
        rows = self.trace.read_chosen(TABLES[source], "id", distinct_values(ids), "id", "module")
        modules, code = distinct(rows["module"])
        names = [file_name(path) for path in self.trace.strings.texts(modules)]
        known = np.array([bool(name) and not name.startswith("[") for name in names], dtype=np.bool_)[code]
        inside = np.array([library.match(name) is not None for name in names], dtype=np.bool_)[code]
        passing = set(rows["id"][inside].tolist())
        return {each: each in passing for each in distinct_values(rows["id"][known]).tolist()}

    def _frames(self, symbol: IntArray, module: IntArray) -> tuple[list[StackFrame], IntArray]:
        """The distinct frames, and the code of each row. An address counts as its module, so that all addresses of a
        module are one frame."""
        code, pairs = combinations(symbol, module)
        frames = CodeTable[StackFrame]()
        place = frames.codes(
            StackFrame(name_of(name), file_name(path), origin_of(name, path))
            for name, path in zip(*map(self.trace.strings.texts, pairs), strict=True)
        )
        return list(frames.known), place[code]


def _stacks(chain: IntArray, frames: list[StackFrame], code: IntArray) -> Stacks:
    """Rows sorted by chain, innermost first, as stacks. A function that calls itself counts once, and an address not at
    all where its caller says more.

    ```
    chain     poll  cuEvent..  cudaEvent..  wait_all  wait_all  train  main  __libc_start  _start
    stack                                   wait_all            train  main
    ```
    """
    real = np.array([frame.origin is not Origin.NONE for frame in frames])[code]
    chain, code = chain[real], code[real]
    if len(chain) == 0:
        return {}
    ids, first = _first_alike(chain, code)
    mine = np.isin(chain, first)
    made = _different_stacks(chain[mine], frames, code[mine])
    return dict(zip(ids.tolist(), map(made.__getitem__, first.tolist()), strict=True))


def _first_alike(chain: IntArray, code: IntArray) -> tuple[IntArray, IntArray]:
    """The chains, and for each the first one with the same frames, by sums of frames with a weight for each place."""
    begin = np.flatnonzero(np.append(True, chain[1:] != chain[:-1]))
    rank = _rank(chain)
    drawn = Random(0)  # that of NumPy takes 5 ms to import, of a small trace's 430
    weights = np.array([drawn.getrandbits(63) for _ in range(int(rank.max()) + 1)], np.uint64)
    total = np.add.reduceat((code.astype(np.uint64) + np.uint64(1)) * weights[rank], begin)
    _, first, same = np.unique(total, return_index=True, return_inverse=True)
    return chain[begin], chain[begin][first[same]]


def _different_stacks(chain: IntArray, frames: list[StackFrame], code: IntArray) -> Stacks:
    leaf = np.flatnonzero(np.append(True, chain[1:] != chain[:-1]))
    leaves = dict(zip(chain[leaf].tolist(), (frames[each] for each in code[leaf].tolist()), strict=True))
    own = np.flatnonzero(np.array([frame.origin is Origin.PROGRAM for frame in frames])[code])
    own = own[np.append(True, (np.diff(chain[own]) != 0) | (np.diff(code[own]) != 0))[: len(own)]]
    own = own[_informative(chain[own], code[own], frames)]
    own = own[_rank(chain[own]) < MOST_FRAMES]
    tops: dict[int, list[StackFrame]] = {}
    for each, at in zip(chain[own].tolist(), code[own].tolist(), strict=True):
        tops.setdefault(each, []).append(frames[at])
    return {
        each: CallChain(tuple(tops.get(each, [innermost])), each in tops, innermost)
        for each, innermost in leaves.items()
    }


def _informative(chain: IntArray, code: IntArray, frames: list[StackFrame]) -> BoolArray:
    """False for an address whose caller is a function of the same module with a name, which says more."""
    named = np.array([bool(frame.symbol) for frame in frames])[code]
    numbers: dict[str, int] = {}
    module = np.array([numbers.setdefault(frame.module, len(numbers)) for frame in frames], dtype=np.int64)[code]
    result = np.ones(len(chain), dtype=np.bool_)
    same = (chain[1:] == chain[:-1]) & (module[1:] == module[:-1])
    result[:-1] = named[:-1] | ~(same & named[1:])
    return result


def _rank(chain: IntArray) -> IntArray:
    """The place of each row among those of its chain; chains stand together."""
    begin = np.flatnonzero(np.append(True, chain[1:] != chain[:-1])[: len(chain)])
    return np.arange(len(chain)) - np.repeat(begin, np.diff(np.append(begin, len(chain))))
