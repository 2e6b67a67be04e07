"""Names in a slice: those of the report with a mark, and the words that the analysis goes by."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.callchains import origin_of, origin_of_python
from nsysdiag.events.identity import is_of_nsys
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.iterations.named import OPERATOR
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.names import pseudonym
from nsysdiag.share.names import Names
from nsysdiag.share.slice_names import SliceNames
from nsysdiag.share.target import Role
from nsysdiag.wakeups.loaders import NAMES

WHOLE = "void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<float>, int>(int, float*)"
OTHER = "void at::native::vectorized_elementwise_kernel<8, at::native::AbsFunctor<float>, int>(int, float*)"
SYMBOLS = (
    *("solve", "solver::decode(int)", "PyInit_secret", "_PyEval_SecretFrame", "gc_secret", "std::secret<int>()"),
    *("at::native::secret()", "secret_dataset::load(int)", "torch::dataloader::next()", "0x7f01", "[secret]"),
    *("__nv_secret", "cudaError cudaSecret<int>(int)", "read", "memcpy", "<string 12>", "[Broken backtraces]"),
)
MODULES = (
    *("/home/ann/bin/secret", "/usr/lib/libsecret.so", "/opt/venv/lib/python3.10/site-packages/secret/x.so"),
    *("/opt/libtorch_secret.so.2", "/opt/libpython3.10-secret.so", "/lib/modules/secret.ko", "[kernel_secret]"),
    *("/usr/lib/libcuda.so.1", "libc.so.6", "[Unknown]", "[secret]", "/data/dataset/secret", ""),
)


def of(role: Role, text: str) -> str:
    return SliceNames(Names()).of(role, text)


@pytest.mark.parametrize(
    ("role", "name", "replaced"),
    [
        (Role.KERNEL, WHOLE, "kernel·1<1>"),
        (Role.SHORT_KERNEL, "vectorized_elementwise_kernel", "kernel·1"),
        (Role.SHORT_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl·AllReduce·1"),
        (Role.SHORT_KERNEL, "my_nccl_wrapper", "kernel·nccl·kernel·1"),
        (Role.KERNEL, "memset", "memset"),
        (Role.KERNEL, "ampere_sgemm_128x64_tn", "kernel·1·sgemm"),
        (Role.KERNEL, "ampere_tf32_sgemm", "kernel·1"),
        (Role.RANGE, "train step 12", "range·1 #12"),
        (Role.RANGE, "next(dataloader) 7", "range·1·data_loader #7"),
        (Role.RANGE, "aten::secret, seq = 5", "torch::range·1 #5"),
        (Role.RANGE, "ncclAllReduce", "ncclAllReduce"),
        (Role.DOMAIN, "NCCL", "NCCL"),
        (Role.DOMAIN, "acme", "domain·1"),
        (Role.THREAD, "pt_data_worker", "thread·1·data_loader"),
        (Role.THREAD, "acme", "thread·1"),
        (Role.THREAD, "[NSys Comms]", "[NSys thread·1]"),
        (Role.PROCESS, "/home/ann/bin/python3", "process·1"),
        (Role.SYMBOL, "solve", "symbol·1"),
        (Role.SYMBOL, "PyInit_secret", "Py_symbol·1"),
        (Role.SYMBOL, "at::native::secret()", "std::symbol·1"),
        (Role.SYMBOL, "fetch_batch(int)", "symbol·1·data_loader"),
        (Role.SYMBOL, "read", "read"),
        (Role.MODULE, "/usr/lib/libsecret.so", "/lib/module·1"),
        (Role.MODULE, "/home/ann/libcuda.so.1", "libcuda.so.1"),
        (Role.PYTHON_FUNCTION, "&lt;module&gt;", "&lt;module&gt;"),
        (Role.PYTHON_FUNCTION, "_bootstrap", "_bootstrap"),
        (Role.PYTHON_FUNCTION, "train", "symbol·1"),
        (Role.PYTHON_FILE, "/home/ann/train.py", "module·1"),
        (Role.PYTHON_FILE, "/usr/lib/python3.10/threading.py", "/site-packages/module·1"),
        (Role.CALL, "MPI_Allreduce", "MPI_Allreduce"),
        (Role.CALL, "acme_call", "symbol·1"),
        (Role.API, "cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_ptsz_v7000"),
        (Role.API, "CUPTI: Buffer flush", "CUPTI: Buffer flush"),
        (Role.API, "dlopen(libcuda.so.1)", "dlopen(libcuda.so.1)"),
        (Role.API, "dlopen(libacme.so)", "symbol·1"),
        (Role.API, "cudaInitAcme_v3020", "symbol·1"),
        (Role.API, "CUPTI acme", "CUPTI symbol·1"),
        (Role.GPU, "NVIDIA H200 NVL", "NVIDIA H200 NVL"),
        (Role.GPU, "Acme H200", "GPU·1"),
        (Role.CHIP, "GH100", "GH100"),
        (Role.CHIP, "ACME100", ""),
        (Role.METRIC, "SMs Active [Throughput %]", "SMs Active [Throughput %]"),
        (Role.METRIC, "Acme Active [Throughput %]", "metric·1"),
        (Role.METRICS, "General Metrics", "metric·1"),
        (Role.VERSION, "2024.6.2.225-246235244400v0", "2024.6.2.225-246235244400v0"),
        (Role.VERSION, "NVIDIA Nsight Systems", "NVIDIA Nsight Systems"),
        (Role.VERSION, "2024.6 of acme", ""),
        (Role.ENUMERATION, "Device-to-Host", "Device-to-Host"),
        (Role.ENUMERATION, "ENUM_CUDA_MEMCPY_OPER", "ENUM_CUDA_MEMCPY_OPER"),
        (Role.ENUMERATION, "ENUM_ACME", ""),
        (Role.ADDRESS, "deadbeef:cafe", ""),
        (Role.MESSAGE, "dropped rows of acme", "lost: (withheld)"),
        (Role.MESSAGE, "hello acme", "(withheld)"),
        (Role.ADDRESS, "0000:3b:00.0", "0000:3b:00.0"),
        (Role.ADDRESS, "acme", ""),
        (Role.MEMORY, "acme", "name·1"),
        (Role.FILE, "", ""),
    ],
)
def test_replaced(role: Role, name: str, replaced: str) -> None:
    assert of(role, name) == replaced


def test_numbers_are_those_of_the_report() -> None:
    names = Names()
    told = [names.of("kernel", text) for text in ("first", WHOLE, OTHER)]
    made = SliceNames(names)
    assert [made.of(Role.KERNEL, text) for text in (OTHER, WHOLE, "first")] == [
        text.replace(" ", "·") for text in reversed(told)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_whose_code_it_is_stays(module: str) -> None:
    """And whether it is code of a data loader."""
    for symbol in SYMBOLS:
        made = of(Role.SYMBOL, symbol), of(Role.MODULE, module)
        assert origin_of(*made) == origin_of(symbol, module), symbol
        loads = [NAMES.search(text) is not None for text in made]
        assert loads == [NAMES.search(text) is not None for text in (symbol, module)], symbol
        assert not any(re.search(r"secret|ann|dataset::", text) for text in made), symbol


@pytest.mark.parametrize("file", ["/home/ann/train.py", "/x/site-packages/a/b.py", "<frozen importlib._bootstrap>", ""])
def test_whose_python_it_is_stays(file: str) -> None:
    assert origin_of_python(of(Role.PYTHON_FILE, file)) == origin_of_python(file)


@given(text=st.text(min_size=1))
def test_rules_read_the_same_out_of_any_name(text: str) -> None:
    made = SliceNames(Names())
    thread, given_range = made.of(Role.THREAD, text), made.of(Role.RANGE, text)
    assert is_of_nsys(thread) == is_of_nsys(text)
    for name in (thread, given_range):
        assert (NAMES.search(name) is None) == (NAMES.search(text) is None)
    assert (OPERATOR.match(given_range) is None) == (OPERATOR.match(text) is None)


def test_counters_of_stand_ins_are_no_counters() -> None:
    """Steps of one loop are one place in the program, and different ranges and kernels stay different."""
    made = SliceNames(Names())
    steps = [made.of(Role.RANGE, text) for text in ("step 1", "step 2", "epoch 1", "next_batch 4", "aten::x, seq = 4")]
    normal = [normal_range(text) for text in steps]
    assert normal[0] == normal[1]
    assert len(set(normal)) == 4
    assert normal[0] == steps[0].partition(" ")[0]
    kernels = [made.of(Role.KERNEL, text) for text in (WHOLE, OTHER, "gemm", WHOLE.replace("Abs", "Sin"))]
    assert len(set(kernels)) == 4
    assert len({normal_kernel(text) for text in kernels}) == 3
    assert normal_kernel(kernels[1]) == normal_kernel(kernels[0]) == kernels[0].partition(".")[0]


@pytest.mark.parametrize("name", ["step·3", "range 3 #12", "range·3 #12 more", "range", "kernel·x", "range-77c0aa12"])
def test_other_names_are_no_stand_ins(name: str) -> None:
    assert pseudonym(name) is None
