"""Public names are on lists or fit closed grammars; what only looks like one is a name of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nsysdiag.share import names as settings
from nsysdiag.share.names import (
    is_public_call,
    is_public_chip,
    is_public_function,
    is_public_gpu,
    is_public_metric,
    is_public_module,
    is_public_table,
    is_public_version,
)

LISTS = Path(settings.__file__).parents[1] / "data" / "public"
FEWEST = {"cuda": 1_000, "cublas": 900, "cudnn": 250, "nccl": 100, "mpi": 1_000, "libc": 5_000, "python": 3_000}


@pytest.mark.parametrize("path", sorted(LISTS.glob("*.txt")), ids=lambda path: path.stem)
def test_lists_are_sorted_and_without_repeats(path: Path) -> None:
    names = path.read_text(encoding="utf-8").splitlines()
    assert names == sorted(set(names))
    assert all(1 <= len(name) <= settings.LONGEST for name in names)
    assert len(names) >= FEWEST.get(path.stem, 1)


@pytest.mark.parametrize(
    "name",
    [
        *("cudaMalloc", "cudaMalloc_v3020", "cudaMemcpyAsync_ptsz_v7000", "cudaLaunchKernel_ptsz", "cuMemAlloc_v2"),
        *("cudaGetDeviceProperties_v2_v12000", "__cudaPushCallConfiguration", "cuGetProcAddress_v2", "cuInit"),
        *("cublasSgemm_v2", "cublasLtMatmul", "cudnnConvolutionForward", "cudnnBackendExecute", "ncclAllReduce"),
        *("pncclGroupEnd", "MPI_Allreduce", "PMPI_Sendrecv", "MPI_Init_thread", "read", "pthread_cond_timedwait"),
        *("epoll_wait", "futex", "sem_clockwait", "fopen64", "__memcpy_avx512_unaligned_erms", "__GI___clone3"),
        *("NSYS_OSRT_pthread_mutex_lock_1", "_PyEval_EvalFrameDefault", "PyObject_Call", "take_gil", "gc_collect_main"),
        *("method_vectorcall_NOARGS", "_PyObject_Malloc.cold", "<module>", "[Unknown]", "start_thread"),
    ],
)
def test_public_functions(name: str) -> None:
    assert is_public_function(name)


@pytest.mark.parametrize(
    "name",
    [
        *("cudaInitAcmeEngine", "cudaMalloc_acme", "cudaMalloc_v3020_acme", "cuMemAcme", "cuLaunchAcme_v2"),
        *("MPI_Send_acme", "MPI_Acme", "PyObject_AcmeWrap", "_PyEval_Acme", "PyInit_acme", "Py_acme"),
        *("ncclGetAcme", "ncclCommAcme", "cublasGetAcme", "cublasSgemmAcme", "cudnnCreateAcme"),
        *("pthread_acme", "pthread_key_acme", "__GI_acme", "__memcpy_acme", "NSYS_OSRT_acme_1", "vectorcall_acme"),
        *("readacme", "read.acme", "READ", "acme::read", "read()", "cudaMalloc ", "", "\u0441udaMalloc", "x" * 10**5),
        *("_PyObject_Malloc.acme", "cudaMalloc_v٣٠٢٠"),
    ],
)
def test_functions_that_only_look_public(name: str) -> None:
    assert not is_public_function(name)
    assert not is_public_call(name)


def test_calls_of_the_profiler() -> None:
    assert is_public_call("CUPTI: Buffer flush")
    assert is_public_call("dlopen(libcuda.so.575.57.08)")
    assert not is_public_call("dlopen(libacme.so)")
    assert not is_public_call("CUPTI: acme")


@pytest.mark.parametrize(
    "name",
    [
        *("libc.so.6", "libc-2.31.so", "libm.so.6", "libstdc++.so.6.0.29", "ld-linux-x86-64.so.2", "ld-2.31.so"),
        *("libcuda.so.525.105.17", "libcudart.so.12", "libcudart-d0da41ae.so.11.0", "libnccl.so.2.19.3"),
        *("libtorch_cuda.so", "libc10.so", "libcupti-sbsa.so.12.3", "libpython3.11.so.1.0", "python3.11", "[vdso]"),
    ],
)
def test_public_modules(name: str) -> None:
    assert is_public_module(name)


@pytest.mark.parametrize(
    "name",
    [
        *("libnccl-acme.so", "libcudart-acme.so.12", "libcudart-d0da41aeff.so.11.0", "libtorch_acme.so", "libacme.so"),
        *(
            "libc-acme.so",
            "libcuda.so.acme",
            "python3.11-acme",
            "pythonacme",
            "libpython3.11-acme.so",
            "/lib/libc.so.6",
        ),
        *("libcublas.acme.so", "libcudnn_acme.so.8", "[acme]", "libc.so.٦"),
    ],
)
def test_modules_that_only_look_public(name: str) -> None:
    assert not is_public_module(name)


@pytest.mark.parametrize(
    "name",
    [
        *("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090 Laptop GPU", "Tesla V100-SXM2-16GB", "Quadro RTX 6000"),
        *("NVIDIA GH200 120GB", "NVIDIA H100 80GB HBM3", "NVIDIA RTX 6000 Ada Generation", "NVIDIA TITAN RTX", "GPU"),
        *("NVIDIA GeForce GTX 1650 Ti with Max-Q Design", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "Orin (nvgpu)", ""),
        *("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA GB10", "NVIDIA A10G-24Q"),
    ],
)
def test_models_of_gpus(name: str) -> None:
    assert is_public_gpu(name)


@pytest.mark.parametrize(
    "name", ["Acme H200", "NVIDIA Acme", "NVIDIA H200 of ann", "H200acme", "NVIDIA " * 20, "Ｈ200"]
)
def test_what_is_no_model(name: str) -> None:
    assert not is_public_gpu(name)


def test_tables_chips_metrics_and_versions() -> None:
    assert is_public_table("CUPTI_ACTIVITY_KIND_KERNEL")
    assert is_public_table("EXPORT_META_DATA")
    assert is_public_table("NVTX_EVENTS_V2")
    assert is_public_table("ENUM_CUDA_MEMCPY_OPER")
    assert not any(map(is_public_table, ("CUPTI_ACTIVITY_KIND_ACME", "ENUM_ACME", "TARGET_INFO_ACME", "MPI_ACME")))
    assert is_public_chip("GA100")
    assert not is_public_chip("GA100 acme")
    assert is_public_metric("NVLink RX Requests User Data [Throughput %]")
    assert is_public_metric("SMs  active")
    assert not any(map(is_public_metric, ("SMs Active [acme]", "Acme active", "GPC Clock Frequency [%]")))
    assert is_public_version("2025.6.1.190-256137226155v0")
    assert not any(map(is_public_version, ("2025.6 acme", "acme", "2025.6-acmev0")))


@pytest.mark.slow
def test_lists_are_read_when_they_are_needed() -> None:
    """Not when the package is imported."""
    code = "from nsysdiag.share.names import listed; print(listed.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
