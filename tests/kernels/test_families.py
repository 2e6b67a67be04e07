"""What kind of work kernels do, by their names: names of libraries and of real traces."""

from __future__ import annotations

import pytest

from nsysdiag.kernels.kinds import KernelFamily, family_of, is_one_operator
from nsysdiag.kernels.names import is_single_precision

ATEN = "void at::native::"


@pytest.mark.parametrize(
    ("name", "short", "family"),
    [
        ("ampere_sgemm_128x64_tn", "", "products_fp32"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", "Kernel", "products_fp32"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_ffma_kernel", "", "products_fp32"),
        ("void gemmSN_NN_kernel<float, 128, 2, 4, 8, 3, 4, false>(int)", "gemmSN_NN_kernel", "products_fp32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_tensor16x8x8_kernel", "", "products"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(int)", "Kernel", "products"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn", "", "products"),
        ("volta_fp16_sgemm_fp16_128x64_nn", "", "products"),
        ("volta_dgemm_128x64_nn", "", "products"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "", "products"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", "", "products"),
        ("void gemv2T_kernel_val<int, int, float, float, float, 128>(int)", "gemv2T_kernel_val", "products"),
        ("void splitKreduce_kernel<32, 16, int, float, float>(int)", "splitKreduce_kernel", "products"),
        ("triton_tem_fused_addmm_3", "", "products"),
        (
            "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128>, (bool)0>(int)",
            "flash_fwd_kernel",
            "attention",
        ),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)", "", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_7", "", "attention"),
        (
            "void flashinfer::BatchDecodeWithPagedKVCacheKernel<true>(int)",
            "BatchDecodeWithPagedKVCacheKernel",
            "attention",
        ),
        ("_attn_fwd", "", "attention"),
        (
            f"{ATEN}vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)",
            "vectorized_elementwise_kernel",
            "elementwise",
        ),
        (
            f"{ATEN}unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>(int)",
            "unrolled_elementwise_kernel",
            "elementwise",
        ),
        (
            f"{ATEN}<unnamed>::CatArrayBatchedCopy_vectorized<Opaque>(int)",
            "CatArrayBatchedCopy_vectorized",
            "elementwise",
        ),
        ("triton_poi_fused_add_mul_17", "", "elementwise"),
        (
            f"{ATEN}<unnamed>::vectorized_layer_norm_kernel<float>(int)",
            "vectorized_layer_norm_kernel",
            "reductions",
        ),
        ("void <unnamed>::cunn_SoftMaxForward<4, float>(int)", "cunn_SoftMaxForward", "reductions"),
        ("triton_red_fused_native_layer_norm_2", "", "reductions"),
        ("input_reduce_fusion_7", "", "reductions"),
        ("reduce_energy", "", "other"),
        ("enorm", "", "other"),
        ("loop_add_fusion_3", "", "elementwise"),
        ("cupy_add__float32_float32_float32", "", "elementwise"),
        (f"{ATEN}reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float>>(T3)", "reduce_kernel", "reductions"),
        ("softmax_fused_1sc(const float *, float *, const int *)", "softmax_fused_1sc", "reductions"),
        ("jacobi_kernel(float *, const float *, float *, int, int, int)", "jacobi_kernel", "other"),
        ("saxpy(double *, double *, double *, double, int)", "saxpy", "other"),
        ("<unnamed>::nvfuser_none_f0_c0_r0_g0(int)", "nvfuser_none_f0_c0_r0_g0", "other"),
        ("void probe_GPU2<128, 4>(int*)", "probe_GPU2", "other"),
        (
            "void clover::par_ranged2d_kernel<advec_mom_kernel(int)::[lambda(int, int)]>(T1)",
            "par_ranged2d_kernel",
            "other",
        ),
    ],
)
def test_families(name: str, short: str, family: str) -> None:
    assert family_of(name, short).label == family


@pytest.mark.parametrize(
    "name", ["volta_dgemm_128x64_nn", "gemv2N_kernel<float, fp32>", "cublasLt::splitKreduce_f32f32_f32f32_f32"]
)
def test_what_tensor_cores_do_nothing_for(name: str) -> None:
    assert not is_single_precision(name)


def test_labels_are_fields() -> None:
    from nsysdiag.kernels.facts import KernelFamilies

    assert {family.label for family in KernelFamily} == set(KernelFamilies.__struct_fields__) - {"total_ns", "graphs"}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            f"{ATEN}vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
            "vectorized_elementwise_kernel",
        ),
        (f"{ATEN}<unnamed>::vectorized_layer_norm_kernel<float>(int)", "vectorized_layer_norm_kernel"),
        (f"{ATEN}<unnamed>::CatArrayBatchedCopy<Opaque>(int)", "CatArrayBatchedCopy"),
        ("unrolled_elementwise_kernel", ""),
        ("cupy_multiply__float32_float32", ""),
    ],
)
def test_kernels_of_one_operator(name: str, short: str) -> None:
    assert is_one_operator(name, short)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("triton_poi_fused_add_mul_17", ""),  # a compiler made these
        ("loop_add_fusion_3", ""),
        ("cupy_fuse__kernel", ""),
        (f"{ATEN}<unnamed>::multi_tensor_apply_kernel<int>(int)", "multi_tensor_apply_kernel"),  # one for many tensors
        (
            f"{ATEN}<unnamed>::indexSelectLargeIndex<float>(int)",
            "indexSelectLargeIndex",
        ),  # not known to be any of these
        ("scale_kernel", ""),  # a program's own: nobody says that others are like it
        ("softmax_fused_1sc", ""),
        ("ampere_sgemm_128x64_tn", ""),
    ],
)
def test_others_are_not(name: str, short: str) -> None:
    assert not is_one_operator(name, short)
