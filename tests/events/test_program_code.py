"""Whose code a function is."""

from __future__ import annotations

import pytest

from nsysdiag.events.callchains import Origin, file_name, name_of, origin_of, origin_of_python, part_of

APP = "/home/me/build/solver"


@pytest.mark.parametrize(
    ("symbol", "module"),
    [
        ("main", APP),
        ("solve(double*, int)", APP),
        ("std::vector<int> mine::load(std::string const&) const", APP),
        ("(anonymous namespace)::norm(double)", APP),
        ("run(tile&)::{lambda(int)#1}::operator()(int) const", APP),
        ("std::ostream& operator<<(std::ostream&, Field const&)", APP),
        ("void jacobi_kernel<32, 32>(float*, int)", APP),
        ("0x55d0c0ffee", APP),
        # Names that only begin like those of a runtime.
        ("curve(int)", APP),
        ("cudaSolver(int)", APP),
        ("attach(int)", APP),
        ("gc_cells(int)", APP),
        ("stdout_of(int)", APP),
        ("forward", "/home/me/lib/libmine.so"),
        ("forward", "/home/me/libcustom.so"),
        ("forward", "/opt/app/libnvme_reader.so"),
        ("forward", "/opt/app/libcudnnlike"),
    ],
)
def test_of_the_program(symbol: str, module: str) -> None:
    assert origin_of(symbol, module) is Origin.PROGRAM


@pytest.mark.parametrize(
    ("symbol", "module"),
    [
        ("__poll", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("start_thread", "libpthread-2.31.so"),
        ("0x7f00", "/usr/lib/libcuda.so.575.57.08"),
        ("0x7f00", "/opt/nvidia/libcupti.so.12.9"),
        ("cudaMalloc", "/opt/cuda/libcudart.so.11.7.60"),
        ("f", "/opt/conda/lib/libcudnn_ops_infer.so.8"),
        ("f", "/opt/conda/lib/libnvrtc.so.12"),
        ("at::native::add()", "/home/me/.venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"),
        ("f", "C:\\env\\site-packages\\numpy\\core.pyd"),
        ("ucp_worker_progress", "libucp.so.0.0.0"),
        ("send", "mca_pml_ucx.so"),
        ("f", "ld-linux-x86-64.so.2"),
        # Linked into the program, or brought along by headers.
        ("_start", APP),
        ("cudaMalloc", APP),
        ("cuLaunchKernel", APP),
        ("cublasSgemm_v2", APP),
        ("ncclAllReduce", APP),
        ("__cudart516", APP),
        ("libcudart_static_aa4a6bcb5fce", APP),
        ("cudart::cuosOnce(int*, void (*)())", APP),
        ("cudaError cudaMalloc<double>(double**, unsigned long)", APP),
        ("void clover::__wrapper__device_stub_par<a::b>(int)", APP),
        ("std::back_insert_iterator<V> std::transform<I, B>(I, I, B, f)", APP),
        ("void thrust::sort<int>(int*, int*)", APP),
        ("operator new(unsigned long)", APP),
    ],
)
def test_of_a_library(symbol: str, module: str) -> None:
    assert origin_of(symbol, module) is Origin.LIBRARY


@pytest.mark.parametrize(
    ("symbol", "module", "origin"),
    [
        ("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.11.so.1.0", Origin.INTERPRETER),
        ("run_mod", "/opt/conda/bin/python3.11", Origin.INTERPRETER),
        ("0x7f00", "/opt/conda/bin/python3", Origin.INTERPRETER),
        ("gc_collect_main", "/usr/lib/libpython3.11.so.1.0", Origin.COLLECTOR),
        ("0xffffffffba5180c0", "[kernel.kallsyms]", Origin.KERNEL),
        ("clock_gettime", "[vdso]", Origin.KERNEL),
        ("0xffffffffba5180c0", "/lib/modules/5.15/nvidia.ko", Origin.KERNEL),
        ("[Broken backtraces]", "[Broken backtraces]", Origin.NONE),
        ("[Max depth]", "[Max depth]", Origin.NONE),
        ("0x0", "[Unknown]", Origin.NONE),
        ("main", "", Origin.NONE),
        ("NSYS_OSRT_pthread_mutex_lock_1", "/opt/nsys/libToolsInjection64.so", Origin.NSYS),
        ("f", "libToolsInjection64.so", Origin.NSYS),
        ("0x7f00", "/opt/nsys/libToolsInjectionCuda64.so", Origin.NSYS),
        ("f", "C:\\nsys\\ToolsInjection64.dll", Origin.NSYS),
        ("f", "/home/me/libTools.so", Origin.PROGRAM),
        ("NSYS_mine", "/home/me/program", Origin.PROGRAM),
    ],
)
def test_of_neither(symbol: str, module: str, origin: Origin) -> None:
    assert origin_of(symbol, module) is origin


@pytest.mark.parametrize(
    ("file", "origin"),
    [
        ("/home/me/train.py", Origin.PROGRAM),
        ("train.py", Origin.PROGRAM),
        ("<string>", Origin.PROGRAM),
        ("/home/me/lib/data.py", Origin.PROGRAM),
        ("/usr/lib/python3.11/threading.py", Origin.PYTHON_LIBRARY),
        ("C:\\Python\\Lib\\site-packages\\torch\\nn.py", Origin.PYTHON_LIBRARY),
        ("/venv/lib/python3.11/site-packages/torch/nn.py", Origin.PYTHON_LIBRARY),
        ("<frozen importlib._bootstrap>", Origin.PYTHON_LIBRARY),
        ("", Origin.PYTHON_LIBRARY),
    ],
)
def test_of_python(file: str, origin: Origin) -> None:
    assert origin_of_python(file) is origin


@pytest.mark.parametrize("path", ["/a/b/c.so", "C:\\a\\c.so", "c.so"])
def test_file_name(path: str) -> None:
    assert file_name(path) == "c.so"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("sem_wait@@GLIBC_2.34", "sem_wait"),
        ("__pthread_getspecific@GLIBC_2", "__pthread_getspecific"),
        ("cudaMalloc@@libcudart.so.12", "cudaMalloc"),
        ("memcpy@plt", "memcpy"),
        ("?decode@Loader@@QEAAXXZ", "?decode@Loader@@QEAAXXZ"),
        ("decode(int)", "decode(int)"),
        ("@hidden", "@hidden"),
        ("0x7f00", ""),
        ("[Max depth]", ""),
    ],
)
def test_a_name_goes_without_its_version(symbol: str, name: str) -> None:
    assert name_of(symbol) == name


@pytest.mark.parametrize(
    ("symbol", "part"),
    [
        ("NSYS_OSRT_read_1", Origin.NSYS),
        ("_PyEval_EvalFrameDefault", Origin.INTERPRETER),
        ("gc_collect_main", Origin.COLLECTOR),
        ("NSYS_mine", None),
        ("decode", None),
    ],
)
def test_what_is_said_beside_a_name(symbol: str, part: Origin | None) -> None:
    assert part_of(symbol) is part
