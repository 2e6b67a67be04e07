"""Which cause a call has by its name: each alone, for 50 us of a gap in which the host was late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.analysis.causes.sync import label_of
from nsysdiag.pipeline import analyze
from tests.analysis.causes.example import CALL, late
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

CUDA_CALLS = {
    "sync": """cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaThreadSynchronize cuCtxSynchronize
        cuStreamSynchronize cuEventSynchronize""",
    "blocking_copy": """cudaMemcpy cudaMemcpy2D cudaMemcpy3D cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaMemcpyPeer
        cudaMemcpyToArray cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpy cuMemcpy2D_v2 cuMemcpyPeer""",
    "memory_allocation": """cudaMalloc cudaMallocHost cudaMallocManaged cudaMallocPitch cudaMalloc3D cudaMallocArray
        cudaMallocAsync cudaMallocFromPoolAsync cudaFree cudaFreeHost cudaFreeAsync cudaFreeArray cudaHostAlloc
        cudaHostRegister cudaMemPoolTrimTo cudaIpcOpenMemHandle cuMemAlloc_v2 cuMemAllocHost_v2 cuMemAllocManaged
        cuMemAllocPitch_v2 cuMemAllocAsync cuMemFree_v2 cuMemFreeHost cuMemFreeAsync cuMemHostAlloc
        cuMemHostRegister_v2 cuMemCreate cuMemMap cuMemUnmap cuMemAddressReserve cuMemPoolTrimTo
        cuIpcOpenMemHandle_v2""",
    "context_init": """cuInit cuCtxCreate_v2 cuCtxDestroy_v2 cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2
        cuDevicePrimaryCtxReset_v2 cudaInitDevice cudaDeviceReset""",
    "module_load": """cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData
        cuLibraryLoadFromFile cuLinkCreate_v2 cuLinkAddData_v2 cuLinkComplete cuLinkDestroy nvrtcCompileProgram
        cudaLibraryLoadData""",
    "graph_build": """cudaGraphInstantiate cudaGraphInstantiateWithFlags cuGraphInstantiateWithFlags cudaGraphExecUpdate
        cuGraphExecUpdate_v2 cudaGraphUpload cuGraphUpload cudaGraphExecKernelNodeSetParams""",
    "cuda_api": """cudaEventRecord cudaEventQuery cudaStreamWaitEvent cudaEventCreateWithFlags cudaGetDevice
        cudaSetDevice cudaStreamIsCapturing cudaStreamGetCaptureInfo cudaFuncGetAttributes cudaMemsetAsync
        cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpyPeerAsync cuMemcpyHtoDAsync_v2 cudaMemGetInfo cudaMemPrefetchAsync
        cudaMemAdvise cudaStreamCreate cudaLaunchKernel cudaHostGetDevicePointer cuModuleGetFunction
        cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaIpcOpenEventHandle cudaGetLastError cudaStreamDestroy""",
}
SUFFIXES = ("_v3020", "_v7000_ptsz", "_v10000", "_ptsz", "_ptds", "_v3020_ptds")

OS_CALLS = {
    "lock_wait": """pthread_mutex_lock pthread_mutex_timedlock pthread_rwlock_rdlock pthread_rwlock_wrlock
        pthread_rwlock_timedwrlock pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait sem_wait
        sem_timedwait sem_clockwait futex pthread_barrier_wait sched_yield""",
    "io_wait": """read write pread pread64 pwrite readv writev preadv recv recvfrom recvmsg send sendto sendmsg open
        open64 openat fsync fdatasync poll ppoll epoll_wait epoll_pwait select pselect accept accept4 ioctl fopen
        fopen64 fread fwrite fclose close connect""",
    "os_memory": "mmap mmap64 munmap madvise brk mprotect",
    "sleep": """nanosleep clock_nanosleep usleep sleep fork vfork posix_spawn pthread_create pthread_join
        pthread_timedjoin_np waitpid wait wait4 waitid""",
    "": """pthread_cond_signal pthread_cond_broadcast pthread_mutex_unlock pthread_rwlock_unlock sem_post
        pthread_mutex_trylock sigaction getpid reader mmapped sleepy""",
}

pairs = [(cause, name) for cause, names in CUDA_CALLS.items() for name in names.split()]
os_pairs = [(cause, name) for cause, names in OS_CALLS.items() for name in names.split()]


def ledger(trace: TraceBuilder, path: Path) -> dict[str, int]:
    (device,) = analyze(trace.write(path)).devices
    return device.ledger


def expected(cause: str) -> dict[str, int]:
    return {cause: 50_000, "uncovered": 120_000, **CALL} if cause else {"uncovered": 170_000, **CALL}


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "name"), pairs)
def test_a_cuda_call_alone(cause: str, name: str, tmp_path: Path) -> None:
    assert ledger(late().api(name, 150_000, 200_000), tmp_path / "trace.sqlite") == expected(cause)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("cause", "name"), [("sync", "cudaStreamSynchronize"), ("blocking_copy", "cudaMemcpy")])
def test_a_suffix_changes_nothing(cause: str, name: str, suffix: str, tmp_path: Path) -> None:
    trace = late()
    values = {"start": 150_000, "end": 200_000, "nameId": trace.string(name + suffix), "correlationId": 900}
    other = {"globalTid": 1 << 48 | 4242 << 24 | 4242, "returnValue": 0, "eventClass": 0}
    trace.row("CUPTI_ACTIVITY_KIND_RUNTIME", values | other)
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.ledger == expected(cause)
    assert name in {part.evidence for part in device.gaps[0].slices}
    assert name in {row.name for row in device.launch.api}


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "name"), os_pairs)
def test_an_os_call_alone(cause: str, name: str, tmp_path: Path) -> None:
    assert ledger(late().osrt(name, 150_000, 200_000), tmp_path / "trace.sqlite") == expected(cause)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cudaStreamSynchronize", "waits for a stream"),
        ("cuEventSynchronize", "waits for an event"),
        ("cuCtxSynchronize", "waits for the device"),
        ("cudaEventQuery", "spins on a query"),
    ],
)
def test_what_a_synchronization_waits_for(name: str, label: str) -> None:
    assert label_of(name) == label
