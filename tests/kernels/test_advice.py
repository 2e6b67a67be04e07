"""What is advised about kernels: nothing without the kernels that it is about, and in the words of the framework."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.kernels.advice import LEAST_FP32, kernel_advice, kernel_sentence
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

KERNEL = TopKernel(
    name="gemm", short_name="gemm", family="products", share=0.5, count=3, total_ns=3_000, mean_ns=1_000, ncu="ncu gemm"
)


@pytest.mark.parametrize(
    ("families", "frameworks", "said"),
    [
        (KernelFamilies(products_fp32=LEAST_FP32, products=0.9), (), ["CUBLAS_COMPUTE_32F_FAST_TF32"]),
        (KernelFamilies(products_fp32=LEAST_FP32), ("pytorch",), ["set_float32_matmul_precision"]),
        (KernelFamilies(products_fp32=LEAST_FP32), ("mpi",), ["CUBLAS_COMPUTE_32F_FAST_TF32"]),
        (KernelFamilies(products_fp32=0.29, products=1.0, other=0.0), (), []),
        (KernelFamilies(attention=0.1), (), ["FlashAttention"]),
        (KernelFamilies(attention=0.099), ("pytorch",), []),
        (KernelFamilies(elementwise=0.1), ("jax",), ["jax.jit"]),
        (KernelFamilies(attention=0.5, elementwise=0.3), ("pytorch",), ["scaled_dot_product", "torch.compile"]),
        (
            KernelFamilies(elementwise=0.1),
            (),
            ["Fuse elementwise kernels that use the same data: memory bandwidth"],
        ),
        (KernelFamilies(other=1.0), (), []),
    ],
)
def test_each_by_its_own_kernels(families: KernelFamilies, frameworks: tuple[str, ...], said: list[str]) -> None:
    told = kernel_advice(families, [], frameworks)
    assert len(told) == len(said)
    assert all(word in text for word, text in zip(said, told, strict=True))


def test_what_a_compiler_has_fused_is_not_to_be_fused() -> None:
    told = (kernel_advice(KernelFamilies(elementwise=0.4), [], ("jax",), fused=fused) for fused in (0.0, 0.35))
    assert [len(each) for each in told] == [1, 0]


def test_the_command_comes_last() -> None:
    assert kernel_advice(KernelFamilies(other=1.0), [KERNEL], ())[-1].endswith("what limits the kernel: ncu gemm")


def test_a_sentence_says_what_is_known() -> None:
    assert typed.plain(kernel_sentence(KERNEL)) == "gemm: 50.0% of the judged time, 3 × 1.00 µs"
    shaped = replace(
        KERNEL, blocks=2, threads=512, registers=26, shared_bytes=4096, blocks_per_sm=4, waves=0.00463, sm_share=0.02
    )
    assert typed.plain(kernel_sentence(replace(shaped, sm_active=0.02, dram_active=0.5))) == (
        "gemm: 50.0% of the judged time, 3 × 1.00 µs; 2 blocks of 512 threads, 26 registers a thread, "
        "4.00 KiB of shared memory a block; an SM holds 4 at a time: 0.0046 waves; 2.0% of the SMs have work "
        "(estimate); measured: SM 2.0%, DRAM 50.0%"
    )


def test_waves_of_several_shapes_are_a_mean() -> None:
    """640 blocks, four on each of 108 SMs, are 1.5 waves: 3.7 are those of all launches, others of which are larger."""
    shaped = replace(KERNEL, shapes=3, blocks=640, threads=128, blocks_per_sm=4, waves=3.7)
    assert "; an SM holds 4 at a time: 3.7 waves in the mean of 3 launch shapes" in typed.plain(kernel_sentence(shaped))


class TestFindings:
    def trace(self, name: str) -> TraceBuilder:
        trace = TraceBuilder().gpu(sm_count=108)
        for at in range(1_000_000, 11_000_000, 1_000_000):
            trace.kernel(at, at + 990_000, name=name, launch=(at - 20_000, at - 10_000))
        return trace

    def test_the_longest_of_several_kernels_is_named(self, tmp_path: Path) -> None:
        """Two kernels take 60% and 30% of each step."""
        trace = TraceBuilder().gpu(sm_count=108)
        for at in range(1_000_000, 21_000_000, 1_000_000):
            for name, begin, length in (("long", at, 600_000), ("short", at + 610_000, 300_000)):
                trace.kernel(begin, begin + length, name=name, launch=(begin - 9_000, begin - 5_000))
        found = {each.cause: each for each in report_of(trace, tmp_path).findings}["kernels"]
        assert typed.plain(found.title) == "Kernel time of several kernels; longest: long"
        share = re.fullmatch(r"long (\d+\.\d)%, short \d+\.\d%", typed.plain(found.summary))
        assert share is not None, found.summary
        assert float(share[1]) == pytest.approx(100 * found.share * 2 / 3, abs=0.2)

    @pytest.mark.parametrize(("name", "tensor"), [("ampere_sgemm_128x64_tn", True), ("jacobi_kernel", False)])
    def test_reduced_precision_for_fp32_products_alone(self, name: str, tensor: bool, tmp_path: Path) -> None:
        found = {each.cause: each for each in report_of(self.trace(name), tmp_path).findings}["kernels"]
        assert found.title == f"Kernel time: {name}"
        assert any("tensor cores" in text for text in found.advice) == tensor
        assert not any("ttention" in text for text in found.advice)
        assert f"ncu --set full --kernel-name {name} --launch-skip 5 " in found.advice[-1]
        assert "108 blocks of 256 threads" in found.evidence[0]
