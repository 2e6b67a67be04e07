"""Names of kernels without parts that differ between builds or instances.

The rule, in order:

1. Return type, parameters, namespaces and lambdas go: the function's own name stays.
2. Of the template arguments, the first scalar type and the first other type or function stay, as they describe the
   operation and its data; numbers and flags become `…`. An argument's own arguments stay to the third level, without
   numbers and repeats. Kernels defined by their shape (gemm, convolution, attention) keep their numbers as well, down
   to the second level. For `gpu_kernel_impl_nocast` of ATen stands what it computes.
3. Counters become `#`: addresses, hashes, numbers alone between underscores or after a dot, the argument signature that
   Triton appends, nvFuser's ids. In a name with a tile shape (`128x64`), from a library, all digits have a meaning:
   only addresses are replaced.

```
void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<c10::Half>, ...>(int)
                 vectorized_elementwise_kernel<AbsFunctor<Half>, …>
triton_poi_fused_add_17      triton_poi_fused_add_#
ampere_sgemm_128x64_tn       as it is
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.arrays.matching import candidates
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, copy_name
from nsysdiag.events.rows import picked
from nsysdiag.limits import KEPT_NAMES, mark_of, short_name
from nsysdiag.names import CUT as COLLAPSED
from nsysdiag.names import is_mangled, pseudonym, readable
from nsysdiag.record import records
from nsysdiag.report import Operation

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


COUNTER = "#"
DEEPEST, MOST_ARGUMENTS, MOST_SHAPE_ARGUMENTS = 3, 4, 8
"""Template arguments that a normal name keeps. Types deeper than DEEPEST lose their own arguments; other types keep
MOST_ARGUMENTS of them, and kernels defined by their shape MOST_SHAPE_ARGUMENTS. With more, instances of one kernel may
have different names; with fewer, different kernels may have one."""

_OPEN, _CLOSE = "<([{", ">)]}"
_UNNAMED = re.compile(r"(<unnamed>|\(anonymous namespace\)|\{anonymous\}|_GLOBAL__N__?\w+)::")
_LAMBDA = re.compile(r"::(\[lambda[^\]]*\]|\{lambda[^}]*\}|operator ?\(\)\([^()]*\)( const)?)")
_CAST = re.compile(r"\((?:un)?(?:signed )?(?:int|long|short|char|bool|long long)\)(?=-?\d)")
_NUMBER = re.compile(r"-?(\d[\dxXa-fA-F.]*[uUlLfF]*|true|false|nullptr)")
_SCALAR = re.compile(
    r"(unsigned |signed )?(float|double|int|long|short|char|bool|long long|unsigned|half|Half|__half|BFloat16|bfloat16"
    r"|__nv_bfloat16|nv_bfloat16|half_t|bfloat16_t|tfloat32_t|[su]?int\d+_t|Float8\w*|__nv_fp8\w*|float_e\w+|complex)"
)
_SHAPED = re.compile(r"gemm|gemv|conv|fprop|wgrad|dgrad|trsm|syrk|flash|fmha|attn|attention", re.IGNORECASE)
_WRAPPER = "gpu_kernel_impl_nocast"
"""A function of ATen around what an elementwise kernel computes."""
_TILE = re.compile(r"\dx\d")
_ADDRESS = re.compile(r"(?<!\d)0x[0-9a-fA-F]+")
_HASH = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}")
_ARGUMENT_SIGNATURE = re.compile(r"(\d+d[ce]?)+\d*")
_NVFUSER_ID = re.compile(r"([fcrg])\d+")
_DOTTED = re.compile(r"\.\d+(?=\.|_|$)")
_REPEATED = re.compile(rf"{COUNTER}(_{COUNTER})+")


@lru_cache(KEPT_NAMES)
def normal_kernel(name: str) -> str:
    """The common name of all builds and instances of a kernel. A name that does not parse is unchanged; one longer than
    limits.NAME_CHARACTERS becomes its short name."""
    name = short_name(name)
    if mark_of(name):
        return name
    if (replaced := pseudonym(name)) is not None:
        return replaced
    if is_mangled(name):
        return readable(name)
    text = _CAST.sub("", _LAMBDA.sub("", _UNNAMED.sub("", name)))
    parsed = _parsed(text)
    if parsed is None or not parsed[0]:
        return _without_counters(name)
    function, arguments = parsed
    shown = _telling(arguments, shaped=_SHAPED.search(function) is not None)
    return _without_counters(function) + _listed(shown)


def _parsed(text: str) -> tuple[str, list[str]] | None:
    """The last name of a function or type, and its template arguments; None if brackets do not match."""
    head: list[str] = []
    arguments: list[str] = []
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character in _OPEN:
            if depth == 0 and character == "(" and head:
                break
            begin = at + 1 if depth == 0 else begin
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth < 0:
                return None
            if depth == 0 and character == ">":
                arguments = _split(text[begin:at])
        elif depth == 0:
            if character not in " *&":
                arguments = []
            head.append(character)
    return (_last_name("".join(head)), arguments) if depth == 0 else None


def _last_name(head: str) -> str:
    """`void a::b::c` is `c`; a built-in type of two words stays whole."""
    bare = head.strip(" *&").removeprefix("const ").removesuffix(" const").strip(" *&")
    if _SCALAR.fullmatch(bare):
        return bare
    return bare.rpartition("::")[2].rpartition(" ")[2]


def _split(text: str) -> list[str]:
    """The arguments between commas that are inside no bracket."""
    parts: list[str] = []
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()] if text.strip() else parts


def _telling(arguments: list[str], *, shaped: bool) -> list[str]:
    """The arguments of the kernel itself that say what it does."""
    kept: list[str] = []
    kinds: set[bool] = set()
    for argument in arguments[: MOST_SHAPE_ARGUMENTS if shaped else len(arguments)]:
        if _NUMBER.fullmatch(argument):
            kept += [argument] if shaped else []
            continue
        name = _type_name(argument, 2, numbers=shaped)
        scalar = _SCALAR.fullmatch(name) is not None
        if name and (shaped or scalar not in kinds):
            kept.append(name)
        kinds.add(scalar)
    return kept if len(kept) == len(arguments) else [*kept, COLLAPSED]


def _type_name(text: str, level: int, *, numbers: bool = False) -> str:
    """A type with its own arguments down to the deepest level; without numbers and repeats unless `numbers`."""
    parsed = _parsed(text)
    if parsed is None:
        return ""
    name, arguments = parsed
    if arguments and name == _WRAPPER:
        return _type_name(arguments[0], level + 1, numbers=numbers)
    if level > DEEPEST or not arguments:
        return name
    if numbers:
        kept = [each if _NUMBER.fullmatch(each) else _type_name(each, DEEPEST + 1) for each in arguments]
        return name + _listed([each for each in kept if each][:MOST_SHAPE_ARGUMENTS])
    types = [_type_name(argument, level + 1) for argument in arguments if not _NUMBER.fullmatch(argument)]
    return name + _listed(list(dict.fromkeys(each for each in types if each))[:MOST_ARGUMENTS])


def _listed(names: list[str]) -> str:
    return f"<{', '.join(names)}>" if names else ""


def _without_counters(name: str) -> str:
    name = _ADDRESS.sub(COUNTER, name)
    if _TILE.search(name):
        return name
    nvfuser = name.startswith("nvfuser_")
    parts = [_part(part, nvfuser=nvfuser) for part in _DOTTED.sub(f".{COUNTER}", name).split("_")]
    return _REPEATED.sub(COUNTER, "_".join(parts))


def _part(part: str, *, nvfuser: bool) -> str:
    if part.isdecimal() or _HASH.fullmatch(part) or _ARGUMENT_SIGNATURE.fullmatch(part):
        return COUNTER
    return _NVFUSER_ID.sub(rf"\1{COUNTER}", part) if nvfuser and _NVFUSER_ID.fullmatch(part) else part


SINGLE = re.compile(r"sgemm|scudnn|simt_s|_f32f32_f32f32_f32|_ffma_|gemmSN\w*<float|fp32", re.IGNORECASE)
_REDUCED = re.compile(
    r"tf32|tensorop|tensor\d|[hs](884|1688|16816)|hmma|imma|bf16|f16|fp16|fp8|e4m3|e5m2|\b(__)?half\b|bfloat16",
    re.IGNORECASE,
)
_VECTOR = re.compile(r"gemv|splitK", re.IGNORECASE)
"""A matrix times a vector, or sums of partial results: tensor cores do nothing for them."""


def is_single_precision(kernel: str) -> bool:
    """Whether a kernel is named for a matrix product in single precision without tensor cores."""
    return not (SINGLE.search(kernel) is None or _REDUCED.search(kernel) or _VECTOR.search(kernel))


# Display names of operations: kernels by name, copies by kind, the rest by category.

_BASE = {Category.MEMSET: "memset", Category.GRAPH: "graph"}


def operation_names(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str]]:
    """The code of each row's name and the names. Kernels have their short name."""
    return _coded(device, rows, strings, device.operations.short_name[rows])[:2]


def whole_names(device: DeviceTimeline, rows: IntArray | slice) -> IntArray:
    """The string id of each kernel's whole name, of its short name if the export has no other."""
    operations = device.operations
    name = taken(operations.name, rows)
    unknown = name < 0
    return np.where(unknown, operations.short_name[rows], name) if unknown.any() else name


Tells = Callable[[str, str], int]
"""Says something of a kernel by its whole and its short name."""


class NamedKernels(Struct, frozen=True):
    """Kernels by name: the code of each, and the whole and the short name of each code."""

    code: IntArray
    whole: list[str]
    short: list[str]

    def each(self, tell: Tells, patterns: Sequence[re.Pattern[str]] = (), otherwise: int = 0) -> IntArray:
        """What `tell` says of the whole and the short name of each code: `otherwise`, unless one of the two matches one
        of the patterns. Without patterns it is asked about all."""
        found = np.full(len(self.whole), otherwise, dtype=np.int64)
        asked = candidates(patterns, self.whole) | candidates(patterns, self.short)
        for at in np.flatnonzero(asked).tolist():
            found[at] = tell(self.whole[at], self.short[at])
        return found

    def told(self, tell: Tells, patterns: Sequence[re.Pattern[str]] = (), otherwise: int = 0) -> IntArray:
        """The same for each kernel."""
        each = self.each(tell, patterns, otherwise)
        return each[self.code] if len(self.code) else each

    def normal(self) -> tuple[IntArray, list[str]]:
        """The code of the normal name of each kernel, and these names."""
        known: dict[str, int] = {}
        return self.told(lambda whole, _: known.setdefault(normal_kernel(whole), len(known))), list(known)


def named_kernels(device: DeviceTimeline, rows: IntArray, strings: Strings) -> NamedKernels:
    """The names of the kernels at `rows`; the short name of several that share a whole one is that of the last."""
    chosen = picked(rows)
    ids, code = distinct(whole_names(device, chosen))
    short = np.zeros(len(ids), dtype=np.int64)
    short[code] = taken(device.operations.short_name, chosen)
    return NamedKernels(code, strings.texts(ids), strings.texts(short))


def normal_operation_names(device: DeviceTimeline, rows: IntArray, strings: Strings) -> tuple[IntArray, list[str]]:
    """The same with kernels by their whole name without counters and template arguments that change nothing; two codes
    never mean the same name."""
    code, names, kernels = _coded(device, rows, strings, whole_names(device, rows))
    normal = [*names[:kernels], *(normal_kernel(name) for name in names[kernels:])]
    known = {name: at for at, name in enumerate(sorted(set(normal)))}
    recode = np.array([known[name] for name in normal], dtype=np.int32)
    return (recode[code] if len(code) else code), list(known)


def _coded(
    device: DeviceTimeline, rows: IntArray, strings: Strings, kernel_name: IntArray
) -> tuple[IntArray, list[str], int]:
    """The code of each row's name, the names, and the place of the first of a kernel: those of others come before."""
    operations = device.operations
    other = np.flatnonzero(operations.category[rows] != Category.KERNEL)
    if len(other):
        # Kernels by string id; everything else by a number below zero made of category and kind.
        category, kind = operations.category[rows[other]], operations.copy_kind[rows[other]]
        kernel_name = kernel_name.astype(np.int64)
        kernel_name[other] = -(category.astype(np.int64) * 100 + np.clip(kind, -1, 90) + 2)
    values, code = distinct(kernel_name)
    others = [_other_name(value) for value in values[values < 0].tolist()]
    return code, [*others, *strings.texts(values[values >= 0])], len(others)


def _other_name(value: int) -> str:
    category, kind = divmod(-value, 100)
    if category == Category.MEMCPY:
        return copy_name(kind - 2)
    return _BASE.get(Category(category), "kernel") if category in list(Category) else "kernel"


def describe_operations(device: DeviceTimeline, rows: IntArray, strings: Strings) -> list[Operation]:
    """The operations at `rows` for the report."""
    code, names = operation_names(device, rows, strings)
    operations = device.operations.take(rows)
    return records(
        Operation,
        name=[names[each] for each in code.tolist()],
        category=[Category(each).name.lower() for each in operations.category.tolist()],
        start_ns=operations.start,
        end_ns=operations.end,
        stream=operations.stream,
    )
