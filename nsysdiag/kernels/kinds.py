"""What a kernel is, in words: `FP32 GEMM (cuBLAS, no tensor cores)`, `attention (FlashAttention forward)`.

By its family and its name. A program's own kernels, and any other whose name follows no convention, are called by their
names. Kernels of one kind are named together: their share, and the longest of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.kernels.facts import TopKernel
from nsysdiag.kernels.families import KernelFamily
from nsysdiag.kernels.names import readable
from nsysdiag.units import format_count, format_share

SHOWN = 50
"""Characters of a kernel's name in a headline."""
MOSTLY = 0.5
_CONVOLUTION = re.compile(r"scudnn|conv|fprop|[dw]grad", re.IGNORECASE)
_VECTOR = re.compile(r"gemv", re.IGNORECASE)
_LIBRARIES = (
    (r"cudnn|xmma_(fprop|dgrad|wgrad)|convolve", "cuDNN"),
    (r"triton", "Triton"),
    (r"magma", "MAGMA"),
    (r"^(ampere|turing|volta|pascal|maxwell|kepler)_|^sm\d+_xmma|^nvjet_|cublas|^gemm[SKv]|^gemv|splitK", "cuBLAS"),
    (r"cutlass_+\d\d_", "cuBLAS"),  # as cuBLAS names its kernels of CUTLASS; others have the type of a template
    (r"cutlass", "CUTLASS"),
)
_TENSOR = re.compile(r"nvjet_[^sd]|tensorop|tensor\d|[shi](884|1688|8816|16816|16832)|hmma|imma", re.IGNORECASE)
_PRECISION = (
    (r"bf16|bfloat16|nvjet_t", "BF16 "),
    (r"tf32", "TF32 "),
    (r"e4m3|e5m2|fp8|float8|nvjet_q", "FP8 "),
    (r"fp16|f16|half|hgemm|h(884|1688|16816)|nvjet_h", "FP16 "),
    (r"int8|s8_|imma|igemm", "INT8 "),
    (r"dgemm|f64|double|nvjet_d", "FP64 "),
)
_ATTENTION = (
    (r"flash", "FlashAttention"),
    (r"cudnn|sdpa", "cuDNN"),
    (r"With(Paged|Ragged)KVCache", "FlashInfer"),
    (r"fmha_cutlass", "memory-efficient"),
)
_DIRECTIONS = (
    (r"bwd|backward|dgrad|cutlassB", "backward"),
    (r"fwd|forward|fprop|cutlassF", "forward"),
    (r"decode", "decode"),
)
_NORMS = (
    (r"batch_?norm|\bbn_(fw|bw)", "batch norm"),
    (r"layer_?norm|^ln_|RowwiseMoments", "layer norm"),
    (r"rms_?norm", "RMS norm"),
    (r"group_?norm", "group norm"),
    (r"instance_?norm", "instance norm"),
    (r"softmax", "softmax"),
)
_ELEMENTWISE = (
    (r"multi_tensor_apply|foreach", "elementwise (many tensors at once)"),
    (r"CatArrayBatchedCopy", "concatenation"),
    (r"triton_|fusion", "elementwise (fused)"),
)
_NCCL = re.compile(r"^(nccl|rccl)", re.IGNORECASE)


def kind_of_kernel(family: KernelFamily, name: str) -> str:
    """What a kernel is; empty where only its name says it."""
    if family in (KernelFamily.PRODUCT, KernelFamily.PRODUCT_FP32):
        return _product(name, single=family == KernelFamily.PRODUCT_FP32)
    if family == KernelFamily.ATTENTION:
        said = f"{_first(_ATTENTION, name)} {_first(_DIRECTIONS, name)}".strip()
        return f"attention ({said})" if said else "attention"
    if family == KernelFamily.REDUCTION:
        return _first(_NORMS, name) or "reduction"
    if family == KernelFamily.ELEMENTWISE:
        return _first(_ELEMENTWISE, name) or "elementwise"
    return collective_of(name) if family == KernelFamily.COMMUNICATION else ""


def collective_of(name: str) -> str:
    """`NCCL SendRecv` of `ncclDevKernel_SendRecv`; empty for a name that does not say it."""
    library, kind = _NCCL.match(name), KINDS[kind_of(name)]
    return f"{library[1].upper()} {kind}" if library and kind != OTHER else ""


def _product(name: str, *, single: bool) -> str:
    what = "convolution" if _CONVOLUTION.search(name) else ("GEMV" if _VECTOR.search(name) else "GEMM")
    cores = "no tensor cores" if single else ("tensor cores" if _TENSOR.search(name) else "")
    said = ", ".join(filter(None, (_first(_LIBRARIES, name), cores)))
    precision = "FP32 " if single else _first(_PRECISION, name)
    return f"{precision}{what}{f' ({said})' if said else ''}"


def _first(words: Iterable[tuple[str, str]], name: str) -> str:
    return next((word for pattern, word in words if re.search(pattern, name, re.IGNORECASE)), "")


class NamedTime(Struct, frozen=True):
    """A kernel name with its kind, empty where there is none, and its time."""

    kind: str
    name: str
    ns: int


class Kind(Struct, frozen=True):
    """Kernels of one kind, or of one name where its kind is empty: their time, how many names they have, the name with
    most of it, and how much of it. `share` (0..1) of a longer time in which any of them ran."""

    kind: str
    ns: int
    names: int
    longest: str
    longest_ns: int
    share: float = 0.0

    @classmethod
    def alone(cls, kernel: TopKernel) -> Kind:
        """That of a single name."""
        return cls(kernel.kind, kernel.total_ns, 1, kernel.name, kernel.total_ns, kernel.share)

    def holds(self, kernel: NamedTime) -> bool:
        """Whether a kernel is one of them."""
        return kernel.kind == self.kind and (bool(self.kind) or kernel.name == self.longest)

    @property
    def words(self) -> str:
        """With their share: `attention (FlashAttention forward) 45.7% (flash_fwd_kernel)`."""
        share, name = format_share(self.share, 1), typed.kernel(readable(self.longest), SHOWN)
        if not self.kind:
            return f"{name} {share}"
        which = name if self.names == 1 else f"mostly {name}"
        if self.longest_ns <= MOSTLY * self.ns:
            which = f"{format_count(self.names)} kernels, longest {name}"
        return f"{self.kind} {share} ({which})"


def kinds_of(kernels: Iterable[NamedTime]) -> list[Kind]:
    """The kinds of kernels, that with most time first. Kernels of one name are one."""
    groups: dict[tuple[str, str], dict[str, int]] = {}
    for each in kernels:
        names = groups.setdefault((each.kind, "" if each.kind else each.name), {})
        names[each.name] = names.get(each.name, 0) + each.ns
    found = []
    for (kind, _), names in groups.items():
        longest = max(names, key=lambda name: (names[name], name))
        found.append(Kind(kind, sum(names.values()), len(names), longest, names[longest]))
    return sorted(found, key=lambda each: (-each.ns, each.kind, each.longest))
