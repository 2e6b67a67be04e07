"""The families in the table of kernels: by names of libraries and real traces, and their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.kernels.kinds import family_of, family_title, kind_of_kernel
from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shared import Shared

US = 1_000
TENSILE = "Cijk_Alik_Bljk_{}_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1"
COPY = "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ampere_sgemm_128x64_tn", "FP32 matrix products (no tensor cores)"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "BF16 matrix products (tensor cores)"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "FP16 matrix products (tensor cores)"),
        ("ampere_dgemm_64x64_nn", "FP64 matrix products"),
        (TENSILE.format("BBS"), "BF16 matrix products (matrix cores)"),
        (TENSILE.format("HHS"), "FP16 matrix products (matrix cores)"),
        (TENSILE.format("SB"), "FP32 matrix products (matrix cores)"),
        ("Cijk_Ailk_Bljk_DB_MT64x64x16_SE", "FP64 matrix products"),
        ("triton_mm_4", "matrix products"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu", "BF16 × FP4 matrix products"),
        (
            "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_rM_TN_transOut_sm100f",
            "FP8 × FP4 matrix products (tensor cores)",
        ),
        ("fused_moe_kernel", "matrix products"),
        ("kernel_unified_attention_2d", "attention"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", "attention"),
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40Block", "attention"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0E", "norms and softmax"),
        (
            "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
            "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
            "norms and softmax",
        ),
        ("triton_per_fused_add_native_layer_norm_1", "norms and softmax"),
        ("triton_red_fused_mean_2", "reductions"),
        ("triton_poi_fused_add_mul_17", "elementwise"),
        ("triton_poi_fused__to_copy_3", "copies, casts and concatenation"),
        (
            f"void at::native::elementwise_kernel<128, 4, void at::native::gpu_kernel_impl_nocast<{COPY}>>",
            "copies, casts and concatenation",
        ),
        (
            "void at::native::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, 1>",
            "copies, casts and concatenation",
        ),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise"),
        ("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_E", "elementwise"),
        ("void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, __nv_fp8_e4m3>(__nv_fp8_e4m3*)", "quantization"),
        ("void moe::dev::routing::routingIndicesHistogramKernel<KernelParams<float>>", "MoE routing"),
        ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int>(float const*)", "MoE routing"),
        ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>(float*)", "sampling"),
        ("void multimem_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16*)", "custom collectives"),
        ("jacobi_kernel(float *)", "other"),
        ("my_recall_reduced_state", "other"),
    ],
)
def test_families_by_name(name: str, family: str) -> None:
    short = name.split("<", maxsplit=1)[0].split("(", maxsplit=1)[0].rpartition("::")[2].removeprefix("void ")
    assert family_title(family_of(name, short), name) == family


def test_the_headline_says_what_they_are() -> None:
    names = (TENSILE.format("BBS"), "rotary_embedding_kernel", "moe_align_block_size_kernel")
    kinds = [kind_of_kernel(family_of(name), name) for name in names]
    assert kinds == ["BF16 GEMM (Tensile, matrix cores)", "rotary embedding", "MoE routing"]


def test_sums_and_largest_kernels(tmp_path: Path) -> None:
    """Names of one family are added up, and parallel ones count once in the share."""
    trace = TraceBuilder(duration=1_000 * US)
    trace.kernel(100 * US, 300 * US, name="ampere_sgemm_128x64_tn", launch=(90 * US, 95 * US))
    trace.kernel(200 * US, 400 * US, name="ampere_sgemm_64x64_nn", stream=8, launch=(96 * US, 99 * US))
    trace.kernel(400 * US, 500 * US, name="jacobi", launch=(390 * US, 395 * US))
    path = tmp_path / "trace.sqlite"
    trace.write(path)
    first, second = analyze(path, Settings(replay=False, timeline=False)).devices[0].kernel_families
    assert (first.family, first.count, first.total_ns, first.share) == (
        "FP32 matrix products (no tensor cores)",
        2,
        400 * US,
        0.75,
    )
    assert [(kernel.name, kernel.total_ns) for kernel in first.kernels] == [
        ("ampere_sgemm_128x64_tn", 200 * US),
        ("ampere_sgemm_64x64_nn", 200 * US),
    ]
    assert (second.family, second.total_ns, second.step_ns) == ("other", 100 * US, None)


@pytest.mark.sampled(quick=35, normal=9)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_families_are_all_kernels_of_the_judged_time(name: str, shared: Shared) -> None:
    """A kernel that runs there counts whole; with one phase alone, which is judged, they are those of the window."""
    report = shared.report(shared.trace(name))
    for device in report.devices:
        total = sum(row.total_ns for row in device.kernel_families if row.family != "CUDA graphs")
        of_window = sum(row.total_ns for row in device.kernels)
        assert total == of_window if len(report.phases) == 1 else total <= of_window
        for row in device.kernel_families:
            assert sum(kernel.total_ns for kernel in row.kernels) <= row.total_ns
            assert (row.names <= len(row.kernels)) == (sum(kernel.count for kernel in row.kernels) == row.count)
            assert row.step_ns is None or row.step_count is not None
