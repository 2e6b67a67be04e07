"""The kind of work of a kernel, by its name: matrix products, attention, elementwise, communication.

Kernels of libraries follow naming conventions; a program's own kernels are `other` unless their names match. The
conventions:

* cuBLAS, cuBLASLt, CUTLASS: `sgemm`, `s16816gemm` (tensor cores, 32-bit accumulation), `nvjet_tst_…`. Its three letters
  are the types of input, computation and output: h half, t bfloat16, s single, d double. `…_f32f32_f32f32_f32_…` has
  the types of A, B, accumulator and so on. `simt` and `ffma` are without tensor cores, `tensorop`, `tensor16x8x8` with.
* Convolutions count as matrix products where they are computed as such (`implicit_gemm`).
* FlashAttention `flash_fwd_kernel`, CUTLASS `fmha_…`, cuDNN `…_sdpa_…`, FlashInfer `BatchDecodeWithPagedKVCacheKernel`.
* ATen `vectorized_elementwise_kernel`, Inductor `triton_poi_fused_…`, XLA `loop_add_fusion`, CuPy `cupy_add__…`.
* Reductions, normalizations and softmax: ATen `reduce_kernel`, `vectorized_layer_norm_kernel`, `cunn_SoftMaxForward`,
  cuDNN `bn_fw_tr_1C11…`, CUB `DeviceReduceKernel`, Inductor `triton_red_fused_…`, XLA `input_reduce_fusion`.

A framework that runs operator by operator launches separate kernels for each: those of ATen, and those of CuPy named
after a function. Kernels made by compilers (`triton_poi_fused_…`, `loop_…_fusion`) are fused already, and so are ATen's
kernels over many tensors (`multi_tensor_apply`).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.kernels.facts import KernelFamilies
from nsysdiag.kernels.names import is_single_precision
from nsysdiag.kernels.operation_names import whole_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.trace.strings import Strings


class KernelFamily(IntEnum):
    """A kernel is of one family; in single precision a matrix product is one of its own."""

    OTHER = 0
    ELEMENTWISE = 1
    ATTENTION = 2
    PRODUCT = 3
    PRODUCT_FP32 = 4
    COMMUNICATION = 5
    REDUCTION = 6

    @property
    def label(self) -> str:
        """As records write it: the name of the field of KernelFamilies."""
        return _LABELS[self]


_LABELS = {
    KernelFamily.OTHER: "other",
    KernelFamily.ELEMENTWISE: "elementwise",
    KernelFamily.ATTENTION: "attention",
    KernelFamily.PRODUCT: "products",
    KernelFamily.PRODUCT_FP32: "products_fp32",
    KernelFamily.COMMUNICATION: "communication",
    KernelFamily.REDUCTION: "reductions",
}
_ELEMENTWISE = re.compile(
    r"elementwise_kernel|elementwise_grid_stride|^triton_poi_|^loop_(\w+_)?fusion|^cupy_(?!fuse)\w+__|^CatArrayBatchedCopy"
    r"|^(multi_tensor_apply|foreach)|^(copy|fill|cast|scale|axpby?)_kernel$"
)
_ATTENTION = re.compile(
    r"flash_(fwd|bwd)|\bflash::|fmha|(?<![A-Za-z])mha_|attention|(?<![A-Za-z])attn|Attn(Fwd|Bwd)|sdpa"
    r"|With(Paged|Ragged)KVCache",
    re.IGNORECASE,
)
_REDUCTION = re.compile(
    r"(layer|group|batch|instance|rms)_?norm|^ln_(fwd|bwd)_|RowwiseMoments|^bn_(fw|bw)_|softmax"
    r"|^(multiblock_)?reduce_kernel|DeviceReduce|DeviceSegmentedReduce|^triton_(red|per)_|reduce_fusion",
    re.IGNORECASE,
)
_ONE_OPERATOR = re.compile(
    r"\bat::native\b|^((vectorized|unrolled|legacy)_)?elementwise_kernel|^CatArrayBatchedCopy|^cupy_(?!fuse)\w+__"
)
_MANY_TENSORS = re.compile(r"multi_tensor_apply|foreach")
BOUND_BY_MEMORY = (KernelFamily.ELEMENTWISE, KernelFamily.REDUCTION)
"""Kernels that do little arithmetic with what they read and write."""
_PRODUCT = re.compile(r"gemm|gemv|^nvjet_|matmul|splitKreduce|^triton_(tem|mm|bmm)_|^Kernel2$", re.IGNORECASE)


def family_of(name: str, short_name: str = "") -> KernelFamily:
    """The family of a kernel by its full name and its short name (empty: the same). Communication kernels are
    recognized elsewhere, by more than their names."""
    if _ELEMENTWISE.search(short_name or name):
        return KernelFamily.ELEMENTWISE
    if _ATTENTION.search(name):
        return KernelFamily.ATTENTION
    if is_single_precision(name):
        return KernelFamily.PRODUCT_FP32
    if _PRODUCT.search(name):
        return KernelFamily.PRODUCT
    return KernelFamily.REDUCTION if _REDUCTION.search(short_name or name) else KernelFamily.OTHER


def is_one_operator(name: str, short_name: str = "") -> bool:
    """Does a kernel run a single elementwise operator or reduction of a framework, which a compiler could fuse with
    its neighbours?"""
    made = _ONE_OPERATOR.search(name) and not _MANY_TENSORS.search(name)
    return bool(made) and family_of(name, short_name) in BOUND_BY_MEMORY


def families_of(device: DeviceTimeline, rows: IntArray, strings: Strings) -> IntArray:
    """The family (see KernelFamily) of each kernel at `rows`."""
    family = by_name(device, rows, strings, family_of)
    found: IntArray = np.where(device.communication[rows], int(KernelFamily.COMMUNICATION), family)
    return found


def by_name(device: DeviceTimeline, rows: IntArray, strings: Strings, tell: Callable[[str, str], int]) -> IntArray:
    """The result of `tell` for the full and the short name of each kernel at `rows`; called once per name."""
    ids, code = distinct(whole_names(device, rows))
    short = np.zeros(len(ids), dtype=np.int64)
    short[code] = device.operations.short_name[rows]
    names = zip(strings.texts(ids), strings.texts(short), strict=True)
    each = np.array([tell(name, short) for name, short in names], dtype=np.int64)
    told: IntArray = each[code] if len(rows) else each
    return told


def kernel_families(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> KernelFamilies:
    """What the time of the kernels and whole graphs among the operations `inside` is spent on."""
    operations = device.operations
    graphs = (operations.category == Category.GRAPH) & inside
    unseen = int((operations.end[graphs] - operations.start[graphs]).sum())
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside)
    length = operations.end[rows] - operations.start[rows]
    total = np.zeros(len(KernelFamily), dtype=np.int64)
    np.add.at(total, families_of(device, rows, strings), length)
    whole = int(total.sum()) + unseen

    def share(*families: KernelFamily) -> float:
        return round(sum(int(total[family]) for family in families) / whole, 6) if whole else 0.0

    return KernelFamilies(
        total_ns=whole,
        products=share(KernelFamily.PRODUCT, KernelFamily.PRODUCT_FP32),
        products_fp32=share(KernelFamily.PRODUCT_FP32),
        attention=share(KernelFamily.ATTENTION),
        elementwise=share(KernelFamily.ELEMENTWISE),
        reductions=share(KernelFamily.REDUCTION),
        communication=share(KernelFamily.COMMUNICATION),
        other=share(KernelFamily.OTHER),
        graphs=round(unseen / whole, 6) if whole else 0.0,
    )
