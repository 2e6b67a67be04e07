"""Frameworks by names: what tells of one, what must not, their order, and what real traces and captures say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsysdiag import typed
from nsysdiag.arrays.background import Background
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline.reading import look_at_host, read, silent
from nsysdiag.programs.facts import FRAMEWORKS, TITLES, Framework
from nsysdiag.programs.names import RULES, frameworks_of, ids_of
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder
from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))


def told(**names: tuple[str, ...]) -> list[str]:
    return ids_of(frameworks_of(names))


def found_in(path: Path) -> list[Framework]:
    with open_trace(path) as trace, Background() as background:
        return look_at_host(read(trace, Settings(), background, silent), silent).frameworks


class TestNames:
    @pytest.mark.parametrize(
        ("kernel", "expected"),
        [
            (
                "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)",
                ["pytorch"],
            ),
            ("void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16 *)", ["vllm", "pytorch"]),
            ("void tensorrt_llm::kernels::applyPenalty<float>(float *)", ["tensorrt-llm"]),
            ("triton_poi_fused_add_mul_17", ["pytorch", "triton"]),
            ("_attn_fwd_0d1d2d34d5d", ["triton"]),
            ("loop_add_fusion_3", ["jax"]),
            ("input_reduce_fusion", ["jax"]),
            ("void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0, false>(int)", ["tensorflow"]),
            ("cupy_add__float32_float32_float32", ["cupy"]),
            ("trt_ampere_scudnn_128x64_relu_small_nn_v1", ["tensorrt"]),
            ("__myl_Fc_myl3_4", ["tensorrt"]),
            ("saxpy_42_gpu", ["openacc"]),
            ("main_118_gpu__red", ["openacc"]),
            ("__omp_offloading_10303_4a1b_main_l22", ["openmp-target"]),
            ("nvkernel_main_F1L20_2", ["openmp-target"]),
            ("void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<F>>(F)", ["kokkos"]),
            ("julia_broadcast_kernel_1234", ["julia"]),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", []),
            ("ampere_sgemm_128x64_tn", []),
            ("void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm>(int)", []),
            ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(int)", []),
            ("void my::native::native_kernel(int)", []),
            ("add_fusion_of_mine", []),
            ("triton_wave(float*)", []),
            ("void clover::par_ranged2d_kernel<build_field(global_variables &)::[lambda(int, int)]>(int)", []),
            ("gemm_0d(int)", []),
        ],
    )
    def test_kernels(self, kernel: str, expected: list[str]) -> None:
        assert told(kernel=(kernel, "saxpy(float*, float)")) == expected

    @pytest.mark.parametrize(
        ("kind", "name", "expected"),
        [
            ("range", "aten::copy_, op_id = 12", ["pytorch"]),
            ("range", "autograd::engine::evaluate_function: AddmmBackward0", ["pytorch"]),
            ("range", "Optimizer.step#AdamW.step", ["pytorch"]),
            ("range", "XlaModule:#hlo_module=jit_train_step,program_id=3#", ["jax"]),
            ("range", "XlaModule:#hlo_module=cluster_0,program_id=3#", []),
            ("range", "my aten::thing", []),
            ("range", "step 3", []),
            ("domain", "NCCL", []),
            ("domain", "MPI", ["mpi"]),
            ("domain", "TensorRT", ["tensorrt"]),
            ("domain", "tensorflow-core", ["tensorflow"]),
            ("module", "libtorch_python.so", ["pytorch"]),
            ("module", "libc10_cuda.so", ["pytorch"]),
            ("module", "xla_extension.so", ["jax"]),
            ("module", "libtensorflow_framework.so.2", ["tensorflow"]),
            ("module", "libmpi.so.40.20.5", ["mpi"]),
            ("module", "libmpi_nvidia.so.12.0.0", ["mpi"]),
            ("module", "libmpich.so.12", ["mpi"]),
            ("module", "libToolsInjectionOpenMPI64.so", []),
            ("module", "libmpfr.so.6", []),
            ("module", "libnvinfer.so.10", ["tensorrt"]),
            ("module", "libaccdevice.so", ["openacc"]),
            ("module", "libomptarget.rtl.cuda.so", ["openmp-target"]),
            ("module", "libkokkoscore.so.4.2", ["kokkos"]),
            ("module", "libjulia-internal.so.1.10", ["julia"]),
            ("module", "libgomp.so.1", []),
            ("module", "libcuda.so.1", []),
            ("process", "python3", []),
            ("process", "tritonserver", []),
            ("process", "VLLM::EngineCore", ["vllm", "pytorch"]),
            ("process", "sglang::scheduler", ["sglang", "pytorch"]),
            ("process", "trtllm-serve", ["tensorrt-llm"]),
            ("range", "[Executor] _forward_step 7: 1 ctx reqs, 8 gen reqs", ["tensorrt-llm"]),
            ("process", "julia", ["julia"]),
            ("thread", "pt_autograd_0", ["pytorch"]),
            ("thread", "MPI Rank 7", ["mpi"]),
            ("thread", "cuda-EvtHandlr", []),
            ("table", "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", ["openacc"]),
            ("table", "MPI_P2P_EVENTS", ["mpi"]),
            ("table", "MPI_RANKS", []),
        ],
    )
    def test_other_names(self, kind: str, name: str, expected: list[str]) -> None:
        assert told(**{kind: (name,)}) == expected

    def test_nothing_is_plain_cuda(self) -> None:
        assert frameworks_of({}) == []

    def test_kernels_of_xla_are_of_tensorflow_where_that_shows(self) -> None:
        fusions = ("loop_add_fusion_3",)
        assert told(kernel=fusions, module=("libtensorflow_framework.so.2",)) == ["tensorflow"]
        assert told(kernel=fusions, module=("libtensorflow_cc.so.2", "xla_extension.so")) == ["jax", "tensorflow"]

    def test_fixed_order_whatever_the_order_of_names(self) -> None:
        modules = ("libmpi.so.40", "libtorch_cpu.so", "libjulia.so.1", "libnvinfer.so.8")
        assert told(module=modules) == told(module=modules[::-1]) == ["pytorch", "tensorrt", "julia", "mpi"]

    def test_evidence_names_the_first_of_each_kind(self) -> None:
        (found,) = frameworks_of(
            {"kernel": ("at::native::b", "at::native::a"), "range": ("aten::mm",), "thread": ("pt_main_thread",)}
        )
        assert [typed.plain(each) for each in found.evidence] == [
            "kernel at::native::a",
            "NVTX range aten::mm",
            "thread pt_main_thread",
        ]
        assert all(typed.has_names(each) for each in found.evidence)

    def test_every_framework_has_a_rule_and_a_title(self) -> None:
        assert tuple(RULES) == tuple(TITLES) == FRAMEWORKS
        assert all(RULES.values())


class TestTraces:
    def test_only_programs_that_use_the_gpu(self, tmp_path: Path) -> None:
        """Another process on the machine has a thread with a name of PyTorch's."""
        trace = TraceBuilder().kernel(1_000, 2_000, launch=(100, 200))
        trace.thread_name("pt_main_thread", thread=(999, 999))
        assert found_in(trace.write(tmp_path / "other.sqlite")) == []
        trace.thread_name("pt_main_thread")
        assert ids_of(found_in(trace.write(tmp_path / "own.sqlite"))) == ["pytorch"]

    def test_modules_of_cpu_samples(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(1_000, 2_000, launch=(100, 200))
        trace.sample(150, symbols=("MPI_Wait",), module="/usr/lib/libmpi.so.40")
        assert ids_of(found_in(trace.write(tmp_path / "t.sqlite"))) == ["mpi"]

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("sim_starved_training", ["pytorch"]),
            ("sim_launch_bound", []),
            ("sim_two_gpus", []),
            ("real_host_healthy", []),
            ("real_host_starved_training", ["pytorch"]),
            ("real_wait_gil", []),
            ("real_cpu_threads", []),
        ],
    )
    def test_fixtures(self, shared: Shared, name: str, expected: list[str]) -> None:
        assert ids_of(found_in(shared.fixture(f"{name}.sqlite"))) == expected

    @pytest.mark.real
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("nsysai_mfu-2gpu-before", ["pytorch"]),
            ("nsysai_mfu-2gpu-after", ["pytorch"]),
            ("nsysai_mock-vecadd", ["pytorch"]),
            ("fuser_small", ["pytorch"]),
            ("centerformer", ["tensorrt"]),
            ("pipit_cloverleaf", []),
            ("pipit_saxpy-mpi", ["mpi"]),
            ("nways_jacobi", []),
            ("gpubootcamp", ["mpi"]),
            ("awsgpu", []),
            ("mordred", []),
        ],
    )
    def test_real_traces(self, name: str, expected: list[str]) -> None:
        found = [path for path in FOLDER.glob("*.sqlite") if path.name.startswith(name)]
        if not found:
            pytest.skip(f"{name} is not at hand")
        assert ids_of(found_in(found[0])) == expected
