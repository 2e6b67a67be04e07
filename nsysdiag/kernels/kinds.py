"""What a kernel is, in words: `FP32 GEMM (cuBLAS, no tensor cores)`, `attention (FlashAttention forward)`.

By its family and its name. A program's own kernels, and any other whose name follows no convention, are called by their
names. Kernels of one kind are named together: their share, and the longest of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.arrays.matching import candidates
from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.kernels.names import SINGLE, NamedKernels, is_single_precision, named_kernels
from nsysdiag.limits import KEPT_NAMES
from nsysdiag.names import readable
from nsysdiag.typed import say
from nsysdiag.units import format_count

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# The kind of work of a kernel, by its name: matrix products, attention, elementwise, communication.
#
# Kernels of libraries follow naming conventions; a program's own kernels are `other` unless their names match. The
# conventions:
#
# * cuBLAS, cuBLASLt, CUTLASS: `sgemm`, `s16816gemm` (tensor cores, 32-bit accumulation), `nvjet_tst_…`. Its three
#   letters are the types of input, computation and output: h half, t bfloat16, s single, d double.
#   `…_f32f32_f32f32_f32_…` has the types of A, B, accumulator and so on. `simt` and `ffma` are without tensor cores,
#   `tensorop`, `tensor16x8x8` with.
# * Convolutions count as matrix products if they are computed as such (`implicit_gemm`).
# * FlashAttention `flash_fwd_kernel`, CUTLASS `fmha_…`, cuDNN `…_sdpa_…`, FlashInfer
#   `BatchDecodeWithPagedKVCacheKernel`.
# * ATen `vectorized_elementwise_kernel`, Inductor `triton_poi_fused_…`, XLA `loop_add_fusion`, CuPy `cupy_add__…`.
# * ROCm: Tensile's `Cijk_Ailk_Bljk_BBS_…_MT128x256x32_MI16x16x1`. `BBS` are the types of input, output and computation:
#   B bfloat16, H half, S single, D double, F8 8 bits. `MI` is an instruction of the matrix cores, `MT` the macro tile.
# * TensorRT-LLM `bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256…`; Triton `_matmul_ogs_…`, `fused_moe_kernel`.
# * Inference: `rotary_embedding_kernel`, `act_and_mul_kernel`, `reshape_and_cache_flash_kernel` (writes the cache of
#   keys and values), `scaled_fp8_quant_kernel`, `topkGatingSoftmax` and `moe_align_block_size_kernel` (routing of a
#   mixture of experts), `TopKTopPSamplingFromProbKernel`.
# * Reductions, normalizations and softmax: ATen `reduce_kernel`, `vectorized_layer_norm_kernel`, `cunn_SoftMaxForward`,
#   cuDNN `bn_fw_tr_1C11…`, CUB `DeviceReduceKernel`, Inductor `triton_red_fused_…`, XLA `input_reduce_fusion`.
#
# A framework that runs operator by operator launches separate kernels for each: those of ATen, and those of CuPy named
# after a function. Kernels made by compilers (`triton_poi_fused_…`, `loop_…_fusion`) are fused already, and so are
# ATen's kernels over many tensors (`multi_tensor_apply`).


class KernelFamily(IntEnum):
    """A kernel is of one family; in single precision a matrix product is one of its own. In small letters these are the
    fields of KernelFamilies."""

    OTHER = 0
    ELEMENTWISE = 1
    ATTENTION = 2
    PRODUCTS = 3
    PRODUCTS_FP32 = 4
    COMMUNICATION = 5
    REDUCTIONS = 6

    @property
    def label(self) -> str:
        """As records write it."""
        return self.name.lower()


_IS_ELEMENTWISE = re.compile(
    r"elementwise_kernel|elementwise_grid_stride|^triton_poi_|^loop_(\w+_)?fusion|^cupy_(?!fuse)\w+__|^CatArrayBatchedCopy"
    r"|^(multi_tensor_apply|foreach)|^(copy|fill|cast|scale|axpby?)_kernel$"
    r"|act_and_mul|(silu|gelu)_and_mul|rotary|reshape_and_cache|concat_and_cache|store_kv_?cache"
)
_IS_ATTENTION = re.compile(
    r"flash_(fwd|bwd)|\bflash::|fmha|(?<![A-Za-z])mha_|attention|(?<![A-Za-z])attn|Attn(Fwd|Bwd)|sdpa"
    r"|With(Paged|Ragged)KVCache",
    re.IGNORECASE,
)
_REDUCTION = re.compile(
    r"(layer|group|batch|instance|rms)_?norm|^ln_(fwd|bwd)_|RowwiseMoments|^bn_(fw|bw)_|(?<!gating)(?<!gating_)softmax"
    r"|^(multiblock_)?reduce_kernel|DeviceReduce|DeviceSegmentedReduce|^triton_(red|per)_|reduce_fusion",
    re.IGNORECASE,
)
_NORM = re.compile(r"(layer|rms)_?norm", re.IGNORECASE)
"""Also if the short name is none: that of a template whose return type is a template has another end."""
ONE_OPERATOR = re.compile(
    r"\bat::native\b|^((vectorized|unrolled|legacy)_)?elementwise_kernel|^CatArrayBatchedCopy|^cupy_(?!fuse)\w+__"
)
_MANY_TENSORS = re.compile(r"multi_tensor_apply|foreach")
BOUND_BY_MEMORY = (KernelFamily.ELEMENTWISE, KernelFamily.REDUCTIONS)
"""Kernels that do little arithmetic with what they read and write."""
_PRODUCT = re.compile(
    r"gemm|gemv|^nvjet_|matmul|splitKreduce|^triton_(tem|mm|bmm)_|^Kernel2$|^Cijk_|^bmm_\w+_t\d+x\d+x|^_?fused_moe_kernel",
    re.IGNORECASE,
)


FAMILIES = (_IS_ELEMENTWISE, _IS_ATTENTION, SINGLE, _PRODUCT, _REDUCTION, _NORM)
"""The name of a kernel of any family but `other` matches one of these."""


@lru_cache(KEPT_NAMES)
def family_of(name: str, short_name: str = "") -> KernelFamily:
    """The family of a kernel by its full name and its short name (empty: the same). Communication kernels are
    recognized elsewhere, by more than their names."""
    if _IS_ELEMENTWISE.search(short_name or name):
        return KernelFamily.ELEMENTWISE
    if _IS_ATTENTION.search(name):
        return KernelFamily.ATTENTION
    if is_single_precision(name):
        return KernelFamily.PRODUCTS_FP32
    if _PRODUCT.search(name):
        return KernelFamily.PRODUCTS
    normalizes = _REDUCTION.search(short_name or name) or _NORM.search(name)
    return KernelFamily.REDUCTIONS if normalizes else KernelFamily.OTHER


def is_one_operator(name: str, short_name: str = "") -> bool:
    """Does a kernel run a single elementwise operator or reduction of a framework, which a compiler could fuse with
    its neighbours?"""
    made = ONE_OPERATOR.search(name) and not _MANY_TENSORS.search(name)
    return bool(made) and family_of(name, short_name) in BOUND_BY_MEMORY


def families_of(device: DeviceTimeline, rows: IntArray, strings: Strings) -> IntArray:
    """The family (see KernelFamily) of each kernel at `rows`."""
    family = named_kernels(device, rows, strings).told(family_of, FAMILIES)
    return np.where(device.communication[rows], int(KernelFamily.COMMUNICATION), family)


def kernel_families(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> KernelFamilies:
    """What the time of the kernels and whole graphs among the operations `inside` is spent on."""
    operations = device.operations
    length = operations.end - operations.start
    unseen = int(length[(operations.category == Category.GRAPH) & inside].sum())
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside)
    total = sum_of_each(families_of(device, rows, strings), length[rows], len(KernelFamily)).tolist()
    whole = sum(total) + unseen
    ns = {family.label: total[family] for family in KernelFamily} | {"graphs": unseen}
    ns["products"] += ns["products_fp32"]
    shares: dict[str, Any] = {name: round(each / whole, 6) if whole else 0.0 for name, each in ns.items()}
    return KernelFamilies(total_ns=whole, **shares)


SHOWN = 56
"""Characters of a kernel's name in a headline."""
MOSTLY = 0.5
"""Share of the time of a kind of kernels: if its longest kernel takes more, the kind is "mostly" that one. Of several
kernels, only one can take more than half."""
_CONVOLUTION = re.compile(r"scudnn|conv|fprop|[dw]grad", re.IGNORECASE)
_VECTOR = re.compile(r"gemv", re.IGNORECASE)
_LIBRARIES = (
    (r"cudnn|xmma_(fprop|dgrad|wgrad)|convolve", "cuDNN"),
    (r"^Cijk_", "Tensile"),
    (r"triton", "Triton"),
    (r"magma", "MAGMA"),
    (r"^(ampere|turing|volta|pascal|maxwell|kepler)_|^sm\d+_xmma|^nvjet_|cublas|^gemm[SKv]|^gemv|splitK", "cuBLAS"),
    (r"cutlass_+\d\d_", "cuBLAS"),  # as cuBLAS names its kernels of CUTLASS; others have the type of a template
    (r"cutlass", "CUTLASS"),
)
_TENSOR = re.compile(
    r"nvjet_[^sd]|tensorop|tensor\d|[shi](884|1688|8816|16816|16832)|hmma|imma|sm(90|100)\w*xmma|_sm100f?$",
    re.IGNORECASE,
)
_MATRIX = re.compile(r"^Cijk_.*_MI\d")
_TENSILE = re.compile(r"^Cijk_[A-Z][a-z]+_[A-Z][a-z]+_(F8|[BHSDI])")
"""The type of the inputs."""
_TENSILE_TYPES = {"B": "BF16 ", "H": "FP16 ", "S": "FP32 ", "D": "FP64 ", "I": "INT8 ", "F8": "FP8 "}
_PRECISION = (
    (r"bf16x\w*mxfp4", "BF16 × FP4 "),
    (r"^bmm_\w*MxE2m1MxE4m3", "FP8 × FP4 "),
    (r"mxfp4|e2m1|nvfp4|fp4", "FP4 "),
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
    (r"\bkentry\b|ck_tile", "Composable Kernel"),
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
FUSED = "elementwise (fused)"
_ELEMENTWISE = (
    (r"multi_tensor_apply|foreach", "elementwise (many tensors at once)"),
    (r"CatArrayBatchedCopy", "concatenation"),
    (r"rotary", "rotary embedding"),
    (r"reshape_and_cache|concat_and_cache|store_kv_?cache", "KV cache"),
    (
        r"direct_copy_kernel|float\d*_copy_kernel|^copy_kernel|^cast_kernel|fused__to_copy_\d+$|fused_clone_\d+$",
        "copy or cast",
    ),
    (r"triton_|fusion", FUSED),
)
_OTHER = (
    (r"^_?(scaled_|dynamic_|per_token_)\w*quant|quantize|fp8_quant|cvt_fp16_to_fp4", "quantization"),
    (r"moe_|MoE|topk_?gating|routingIndices|_combined_routing|^_topk_forward|^_sum_bitmatrix", "MoE routing"),
    (r"(?<![a-z])(all_?reduce|all_?gather|reduce_scatter|cross_device_reduce)", "custom collectives"),
    (r"sampling|TopK|TopP|^argmax|penalt|distribution_|gatherTopK", "sampling"),
)
_NCCL = re.compile(r"^(nccl|rccl)", re.IGNORECASE)


def kind_of_kernel(family: KernelFamily, name: str) -> str:
    """What a kernel is; empty if only its name says it."""
    if family in (KernelFamily.PRODUCTS, KernelFamily.PRODUCTS_FP32):
        return _product(name, single=family == KernelFamily.PRODUCTS_FP32)
    if family == KernelFamily.ATTENTION:
        said = f"{_first(_ATTENTION, name)} {_first(_DIRECTIONS, name)}".strip()
        return f"attention ({said})" if said else "attention"
    if family == KernelFamily.REDUCTIONS:
        return _first(_NORMS, name) or "reduction"
    if family == KernelFamily.ELEMENTWISE:
        return _first(_ELEMENTWISE, name) or "elementwise"
    return collective_of(name) if family == KernelFamily.COMMUNICATION else _first(_OTHER, name)


def kinds_of_names(names: NamedKernels) -> list[str]:
    """The kind of each name, empty for none; communication is of none."""
    family = names.each(family_of, FAMILIES)
    every = zip(family.tolist(), names.whole, _asked(family, names.whole), strict=True)
    return [kind_of_kernel(KernelFamily(each), name) if asked else "" for each, name, asked in every]


def titles_of(family: IntArray, names: Sequence[str]) -> list[str]:
    """The title (see `family_title`) of each name with its family."""
    every = zip(family.tolist(), names, _asked(family, names), strict=True)
    return [
        family_title(KernelFamily(each), name) if asked else KernelFamily.OTHER.label for each, name, asked in every
    ]


def _asked(family: IntArray, names: Sequence[str]) -> list[bool]:
    """Which names may say more than that they are of no known family."""
    found: list[bool] = ((family != KernelFamily.OTHER) | candidates(map(_pattern, dict(_OTHER)), names)).tolist()
    return found


def family_title(family: KernelFamily, name: str) -> str:
    """The family of a table of the kernels: that of `family`, divided further by the name."""
    if family in (KernelFamily.PRODUCTS, KernelFamily.PRODUCTS_FP32):
        single = family == KernelFamily.PRODUCTS_FP32
        cores = _cores(name, single=single)
        return f"{_precision(name, single=single)}matrix products{f' ({cores})' if cores else ''}"
    if family == KernelFamily.REDUCTIONS:
        return "norms and softmax" if _first(_NORMS, name) else "reductions"
    kind = _first(_ELEMENTWISE, name) if family == KernelFamily.ELEMENTWISE else _first(_OTHER, name)
    if kind in _COPIES:
        return "copies, casts and concatenation"
    return kind if family == KernelFamily.OTHER and kind else family.label


_COPIES = ("concatenation", "KV cache", "copy or cast")


def collective_of(name: str) -> str:
    """`NCCL SendRecv` of `ncclDevKernel_SendRecv`; empty for a name that does not say it."""
    library, kind = _NCCL.match(name), KINDS[kind_of(name)]
    return f"{library[1].upper()} {kind}" if library and kind != OTHER else ""


def _product(name: str, *, single: bool) -> str:
    what = "convolution" if _CONVOLUTION.search(name) else ("GEMV" if _VECTOR.search(name) else "GEMM")
    said = ", ".join(filter(None, (_first(_LIBRARIES, name), _cores(name, single=single))))
    return f"{_precision(name, single=single)}{what}{f' ({said})' if said else ''}"


def _precision(name: str, *, single: bool) -> str:
    if single:
        return "FP32 "
    tensile = _TENSILE.match(name)
    return _TENSILE_TYPES[tensile[1]] if tensile else _first(_PRECISION, name)


def _cores(name: str, *, single: bool) -> str:
    """What computes a product, as far as its name says it."""
    if single:
        return "no tensor cores"
    return "matrix cores" if _MATRIX.search(name) else "tensor cores" if _TENSOR.search(name) else ""


def _first(words: Iterable[tuple[str, str]], name: str) -> str:
    return next((word for pattern, word in words if _pattern(pattern).search(name)), "")


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


class NamedTime(Struct, frozen=True):
    """A kernel name with its kind, empty if there is none, and its time."""

    kind: str
    name: str
    ns: int


class KernelKind(Struct, frozen=True):
    """Kernels of one kind, or of one name if its kind is empty: their time, how many names they have, the name with
    most of it, and how much of it. `share` (0..1) of a longer time in which any of them ran."""

    kind: str
    ns: int
    names: int
    longest: str
    longest_ns: int
    share: float = 0.0

    @classmethod
    def alone(cls, kernel: TopKernel) -> KernelKind:
        """That of a single name."""
        return cls(kernel.kind, kernel.total_ns, 1, kernel.name, kernel.total_ns, kernel.share)

    def holds(self, kernel: NamedTime) -> bool:
        """Whether a kernel is one of them."""
        return kernel.kind == self.kind and (bool(self.kind) or kernel.name == self.longest)

    @property
    def text(self) -> Sentence:
        """What they are: the kind, or the name if that is all that is known."""
        return self.kind or self._longest

    @property
    def which(self) -> Sentence:
        """Which kernels of the kind these are: `flash_fwd_kernel`, `mostly …`, `17 different kernels, longest …`;
        empty for a name."""
        if not self.kind:
            return ""
        if self.longest_ns <= MOSTLY * self.ns:
            return say("{} different kernels, longest {}", format_count(self.names), self._longest)
        return self._longest if self.names == 1 else say("mostly {}", self._longest)

    @property
    def _longest(self) -> Sentence:
        return typed.kernel(readable(self.longest), SHOWN)


def kinds_of(kernels: Iterable[NamedTime]) -> list[KernelKind]:
    """The kinds of kernels, that with most time first. Kernels of one name are one."""
    groups: dict[tuple[str, str], dict[str, int]] = {}
    for each in kernels:
        names = groups.setdefault((each.kind, "" if each.kind else each.name), {})
        names[each.name] = names.get(each.name, 0) + each.ns
    found = []
    for (kind, _), names in groups.items():
        longest = max(names, key=lambda name: (names[name], name))
        found.append(KernelKind(kind, sum(names.values()), len(names), longest, names[longest]))
    return sorted(found, key=lambda each: (-each.ns, each.kind, each.longest))
