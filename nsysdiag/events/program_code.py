"""The owner of a function: the program itself, or a system, runtime or library component.

This module has the one list of code that is not the program's own. A function is classified by its module first, then
by its name, since runtimes are linked into programs. A function without a name (an address) is classified by its
module.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Origin(StrEnum):
    """Whose code a function is. NONE is none: `[Broken backtraces]`, `[Max depth]`, an address in `[Unknown]`."""

    PROGRAM = "program"
    INTERPRETER = "interpreter"
    COLLECTOR = "garbage collector"
    LIBRARY = "native library"
    PYTHON_LIBRARY = "Python library"
    KERNEL = "kernel"
    PROFILER = "profiler"
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
    # CUDA, its libraries and the profiler itself.
    r"|lib(cuda|cudart|cudnn|cublas|cufft|curand|cusparse|cusolver|cufile|cupti|nccl|nvidia|Tools)\w*[-.].*"
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
_PROFILER = re.compile(r"NSYS_OSRT_\w+")
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
    """The same, and nsys's own: `NSYS_OSRT_pthread_mutex_lock_1` is what it puts around a call that it records."""
    return Origin.PROFILER if _PROFILER.fullmatch(symbol) else interpreter_part(symbol)


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
    if _PROFILER.fullmatch(symbol):
        return Origin.PROFILER
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
    return any(pattern.fullmatch(symbol) for pattern in patterns) or bool(_NAMESPACE.match(_qualified(symbol)))


def _qualified(symbol: str) -> str:
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
