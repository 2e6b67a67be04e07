"""What kernels are called: by what they are where their name says it, else by their name, and never at length."""

from __future__ import annotations

import pytest

from nsysdiag import typed
from nsysdiag.findings.facts import Named
from nsysdiag.findings.kernels import kinds_in_words
from nsysdiag.kernels.kinds import KernelFamily, NamedTime, collective_of, family_of, kind_of_kernel, kinds_of
from nsysdiag.names import readable

FLASH3 = "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>>"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ampere_sgemm_128x64_tn", "FP32 GEMM (cuBLAS, no tensor cores)"),
        ("volta_sgemm_32x128_nn", "FP32 GEMM (cuBLAS, no tensor cores)"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)",
            "FP32 GEMM (cuBLAS, no tensor cores)",
        ),
        ("magma_sgemmEx_kernel<float, float, float, true, false, 6, 4, 6, 3, 4>", "FP32 GEMM (MAGMA, no tensor cores)"),
        ("ampere_scudnn_128x64_relu_medium_nn_v1", "FP32 convolution (cuDNN, no tensor cores)"),
        ("implicit_convolve_sgemm<float, float, 128, 5, 5>", "FP32 convolution (cuDNN, no tensor cores)"),
        ("my_sgemm_tiled", "FP32 GEMM (no tensor cores)"),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "BF16 GEMM (cuBLAS, tensor cores)"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", "FP16 GEMM (cuBLAS, tensor cores)"),
        ("cutlass_80_tensorop_s1688tf32gemm_128x128_16x4_nn_align4", "TF32 GEMM (cuBLAS, tensor cores)"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "BF16 GEMM (cuBLAS, tensor cores)"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "FP16 GEMM (cuBLAS, tensor cores)"),
        ("ampere_dgemm_64x64_nn", "FP64 GEMM (cuBLAS)"),
        (
            "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_tensor16x8x8",
            "TF32 convolution (cuDNN, tensor cores)",
        ),
        ("flash_fwd_splitkv_kernel", "attention (FlashAttention forward)"),
        ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<int>", "attention (FlashAttention backward)"),
        (FLASH3, "attention (FlashAttention forward)"),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x128",
            "attention (FlashAttention forward)",
        ),
        ("fmha_cutlassB_bf16_aligned_64x64_k128_sm80", "attention (memory-efficient backward)"),
        ("fused_attention_of_ours", "attention"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", "elementwise"),
        ("triton_poi_fused_add_17", "elementwise (fused)"),
        ("bn_fw_tr_1C11_kernel_NCHW", "batch norm"),
        ("vectorized_layer_norm_kernel", "layer norm"),
        ("cunn_SoftMaxForward", "softmax"),
        ("void at::native::reduce_kernel<512, 1>", "reduction"),
        ("jacobi_kernel", ""),
        ("saxpy", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert (
        kind_of_kernel(family_of(name, name.partition("<")[0].rpartition("::")[2].removeprefix("void ")), name) == kind
    )


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("ncclDevKernel_SendRecv", "NCCL SendRecv"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "NCCL AllReduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "NCCL ReduceScatter"),
        ("ncclDevKernel_Generic_4", ""),
        ("cross_device_reduce_1stage", ""),
    ],
)
def test_collectives(name: str, collective: str) -> None:
    assert collective_of(name) == collective
    assert kind_of_kernel(KernelFamily.COMMUNICATION, name) == collective


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZN5solve7advanceEPdi", "advance"),
        ("_ZN5solve7advanceILi128EEEvPdi", "advance<…>"),
        ("_Z7advancePdi", "advance"),
        ("_ZN7ck_tile6kentryILi2ENS_4FmhaINS_8PipelineIfEEEEEEvDpT1_", "kentry<Fmha, …>"),
        ("_Z6kentryIN2ck7RmsnormEEvv", "kentry<Rmsnorm, …>"),
        ("__omp_offloading_10303_2a0b4c_main_l42", "main_l42"),
        ("__omp_offloading_fd02_2a0b4c__ZN4flow4stepEd_l218", "step_l218"),
        ("nvkernel_main_F1L24_2", "nvkernel_main_F1L24_2"),
        ("_Zebra", "_Zebra"),
    ],
)
def test_names_as_compilers_make_them(name: str, shown: str) -> None:
    assert readable(name) == shown


def words(*kernels: tuple[str, str, int]) -> list[str]:
    return [
        typed.plain(kinds_in_words([Named(text=each.text, share=each.ns / 100, which=each.which)], 1.0))
        for each in kinds_of(NamedTime(*each) for each in kernels)
    ]


def test_a_kind_is_summed_and_its_longest_named() -> None:
    long = f"elementwise_kernel<{'Functor, ' * 20}int>"
    assert words(("GEMM", "a", 30), ("GEMM", "b", 10), ("", "own", 15), ("elementwise", long, 5)) == [
        "GEMM 40.0% (mostly a)",
        "own 15.0%",
        "elementwise 5.0% (elementwise_kernel)",
    ]
    assert words(("GEMM", "a", 20), ("GEMM", "b", 20)) == ["GEMM 40.0% (2 different kernels, longest b)"]


def test_instances_of_one_name_are_one_kernel() -> None:
    assert words(("GEMM", "a", 20), ("GEMM", "a", 20), ("", "own", 3), ("", "own", 4)) == ["GEMM 40.0% (a)", "own 7.0%"]


def test_a_long_name_is_cut() -> None:
    (said,) = words(("", "x" * 300, 50))
    assert said == f"{'x' * 56}… 50.0%"


@pytest.mark.parametrize(("shares", "overlap"), [((0.5, 0.4), False), ((0.8, 0.8), True), ((0.9,), False)])
def test_shares_of_kernels_that_overlap_have_a_word(shares: tuple[float, ...], overlap: bool) -> None:
    named = [Named(text=f"kind {at}", share=share) for at, share in enumerate(shares)]
    assert ("overlap" in typed.plain(kinds_in_words(named, 0.9))) is overlap
