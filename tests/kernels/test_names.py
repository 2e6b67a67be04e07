"""Kernel names of real libraries and what they become: alike where they are the same kernel, apart where not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import NAME_CHARACTERS

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::"
ARRAYS = ", std::array<char *, (unsigned long)2>>(int, T2, T3)"


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        (f"{ELEMENTWISE}AbsFunctor<c10::Half>{ARRAYS}", "vectorized_elementwise_kernel<AbsFunctor<Half>, …>"),
        (
            f"{ELEMENTWISE}bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) (instance 1)]{ARRAYS}",
            "vectorized_elementwise_kernel<bfloat16_copy_kernel_cuda, …>",
        ),
        (
            f"{ELEMENTWISE}BinaryFunctor<c10::Half, c10::Half, bool, at::native::<unnamed>::"
            f"CompareEqFunctor<c10::Half>>{ARRAYS}",
            "vectorized_elementwise_kernel<BinaryFunctor<Half, bool, CompareEqFunctor<Half>>, …>",
        ),
        (
            "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
            "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase"
            " &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
            "elementwise_kernel<BinaryFunctor<float, MulFunctor>, …>",
        ),
        (
            "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
            "direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda()"
            " (instance 7)]::operator ()() const::[lambda(float) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::"
            "[lambda(int) (instance 1)]>(int, T3)",
            "elementwise_kernel<direct_copy_kernel_cuda, …>",
        ),
        (
            "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, "
            "float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)",
            "reduce_kernel<ReduceOp<float, MeanOps<float>, unsigned int>, …>",
        ),
        (
            "void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int, T2, const T1 *)",
            "vectorized_layer_norm_kernel<float, …>",
        ),
        (
            "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 8, true, false>(float*)",
            "softmax_warp_forward<Half, …>",
        ),
        (
            "void clover::par_ranged2d_kernel<ideal_gas_kernel(int, int, int, int, clover::Buffer2D<double> &)::"
            "[lambda(int, int) (instance 1)]>(clover::Range2d, T1)",
            "par_ranged2d_kernel<ideal_gas_kernel>",
        ),
        ("void jacobi_kernel<32, 32>(float*, float const*, float*, int, int, int, bool)", "jacobi_kernel<…>"),
        ("saxpy(double *, double *, double *, double, int)", "saxpy"),
        ("triton_poi_fused_add_17", "triton_poi_fused_add_#"),
        ("triton_red_fused__log_softmax_nll_loss_forward_2", "triton_red_fused__log_softmax_nll_loss_forward_#"),
        ("triton_poi_fused_add_0d1d2d", "triton_poi_fused_add_#"),
        ("triton__0d1d2d3de4", "triton__#"),
        ("nvfuser_pointwise_f12_c1_r0_g3", "nvfuser_pointwise_f#_c#_r#_g#"),
        ("loop_add_fusion_12", "loop_add_fusion_#"),
        ("input_reduce_fusion.3", "input_reduce_fusion.#"),
        ("__myl_AddMul_0x1a2b3c4d5e6f", "__myl_AddMul_#"),
        ("Cijk_Alik_Bljk_MT320x224x64_SN", "Cijk_Alik_Bljk_MT320x224x64_SN"),
        ("kernel_deadbeef12", "kernel_#"),
        ("upsample_bilinear2d_out_frame", "upsample_bilinear2d_out_frame"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        ),
    ],
)
def test_what_changes_without_meaning_goes(name: str, normal: str) -> None:
    assert normal_kernel(name) == normal


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_tn",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        "cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4",
        "turing_fp16_s1688cudnn_fp16_256x64_ldg8_relu_f2f_exp_medium_nhwc_tn_v1",
    ],
)
def test_each_digit_of_a_library_kernel_stays(name: str) -> None:
    assert normal_kernel(name) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvjet_tst_192x192_64x4_2x1_v_bz_TNN", "nvjet_tst_192x208_64x4_2x1_v_bz_TNN"),
        ("void gemmSN_TN_kernel<float, 128, 16, 2>(T)", "void gemmSN_TN_kernel<float, 256, 16, 2>(T)"),
        (
            "void flash::flash_fwd_kernel<Traits<(int)64, (int)128, cutlass::half_t>, (bool)0>(P)",
            "void flash::flash_fwd_kernel<Traits<(int)128, (int)128, cutlass::half_t>, (bool)0>(P)",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x64_32x4_nn_align8>(T1::Params)",
            "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_256x64_32x4_nn_align8>(T1::Params)",
        ),
        (f"{ELEMENTWISE}FillFunctor<float>{ARRAYS}", f"{ELEMENTWISE}FillFunctor<c10::Half>{ARRAYS}"),
        (f"{ELEMENTWISE}FillFunctor<float>{ARRAYS}", f"{ELEMENTWISE}AbsFunctor<float>{ARRAYS}"),
    ],
)
def test_other_shapes_types_and_functors_stay_apart(one: str, other: str) -> None:
    assert normal_kernel(one) != normal_kernel(other)


@pytest.mark.parametrize(
    "name", ["", "<>", "f<a<b>", "a)b", "operator<", "void x::operator<<(int)", "[/bold]", "f" * NAME_CHARACTERS]
)
def test_what_does_not_parse_stays(name: str) -> None:
    assert normal_kernel(name) == name


@given(st.text(alphabet="ab_0x19<>()[],: *&", max_size=60))
@example("a<b<c<d<e<f>>>>>(g)::h<i>")
def test_any_name_has_a_normal_form(name: str) -> None:
    """It is never empty where the name is not, and no longer than what the rule may add."""
    normal = normal_kernel(name)
    assert bool(normal) == bool(name)
    assert len(normal) <= len(name) + len("<…>")


def test_a_mangled_name_is_that_of_its_function() -> None:
    """All instances of a template are one name, as of demangled ones."""
    whole = "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi{}ELi8ELb0EEEvPT0_PT_Pf"
    assert {normal_kernel(whole.format(size)) for size in (64, 256)} == {"add_rmsnorm_quant_kernel<…>"}
    assert normal_kernel("_Z4gemmPfi") == "gemm"
