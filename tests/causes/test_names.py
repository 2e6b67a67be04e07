"""Which cause a call has by its name: each in a gap of its own, for 50 µs in which the host was late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes.sync import label_of
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.causes.example import CALL, late

if TYPE_CHECKING:
    from pathlib import Path

CUDA_CALLS = {
    "sync": """cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaThreadSynchronize cuCtxSynchronize
        cuStreamSynchronize cuEventSynchronize""",
    "blocking_copy": """cudaMemcpy cudaMemcpy2D cudaMemcpy3D cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaMemcpyPeer
        cudaMemcpyToArray cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpy cuMemcpy2D_v2 cuMemcpyPeer""",
    "memory_allocation": """cudaMalloc cudaMallocHost cudaMallocManaged cudaMallocPitch cudaMalloc3D cudaMallocArray
        cudaMallocAsync cudaMallocFromPoolAsync cudaFree cudaFreeHost cudaFreeAsync cudaFreeArray cudaHostAlloc
        cudaHostRegister cudaHostUnregister cudaMemPoolTrimTo cudaMemPoolCreate cudaMemPoolDestroy
        cudaIpcOpenMemHandle cudaIpcCloseMemHandle cuMemAlloc_v2 cuMemAllocHost_v2 cuMemAllocManaged
        cuMemAllocPitch_v2 cuMemAllocAsync cuMemFree_v2 cuMemFreeHost cuMemFreeAsync cuMemHostAlloc
        cuMemHostRegister_v2 cuMemHostUnregister cuMemCreate cuMemRelease cuMemMap cuMemMapArrayAsync cuMemUnmap
        cuMemAddressReserve cuMemAddressFree cuMemSetAccess cuMemPoolTrimTo cuIpcOpenMemHandle_v2 cuArrayCreate_v2
        cuArrayDestroy cuArray3DCreate_v2 cuMipmappedArrayCreate cuMipmappedArrayDestroy""",
    "context_init": """cuInit cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxAttach cuCtxDetach cuDevicePrimaryCtxRetain
        cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 cudaInitDevice cudaDeviceReset cuGreenCtxCreate""",
    "module_load": """cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData
        cuLibraryLoadFromFile cuLinkCreate_v2 cuLinkAddData_v2 cuLinkComplete cuLinkDestroy nvrtcCompileProgram
        cudaLibraryLoadData""",
    "graph_build": """cudaGraphInstantiate cudaGraphInstantiateWithFlags cuGraphInstantiateWithFlags cudaGraphExecUpdate
        cuGraphExecUpdate_v2 cudaGraphUpload cuGraphUpload cudaGraphExecKernelNodeSetParams cudaGraphCreate
        cudaGraphClone cudaGraphAddNode cudaGraphAddKernelNode cudaGraphAddDependencies cudaGraphKernelNodeSetParams""",
    "cuda_api": """cudaEventRecord cudaEventQuery cudaStreamWaitEvent cudaEventCreateWithFlags cudaGetDevice
        cudaSetDevice cudaStreamIsCapturing cudaStreamGetCaptureInfo cudaFuncGetAttributes cudaMemsetAsync
        cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpyPeerAsync cudaMemcpyBatchAsync cudaMemcpy3DWithAttributesAsync
        cuMemcpyHtoDAsync_v2 cudaMemGetInfo cudaMemPrefetchAsync
        cudaMemAdvise cudaStreamCreate cudaLaunchKernel cudaHostGetDevicePointer cuModuleGetFunction
        cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaIpcOpenEventHandle cudaGetLastError cudaStreamDestroy
        cudaGraphDestroy cudaGraphGetNodes cudaMemPoolSetAttribute cuArrayGetDescriptor_v2 cuCtxSetCurrent""",
}
SUFFIXES = ("_v3020", "_v7000_ptsz", "_v10000", "_ptsz", "_ptds", "_v3020_ptds")

OS_CALLS = {
    "lock_wait": """pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_clocklock pthread_rwlock_rdlock
        pthread_rwlock_wrlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock
        pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_timedwait_relative_np
        pthread_barrier_wait pthread_spin_lock sem_wait sem_timedwait sem_clockwait sem_clockwait_np semop semtimedop
        futex futex_wait sched_yield pthread_yield flockfile flock lockf lockf64 __pthread_mutex_lock __sem_wait""",
    "io_wait": """read write pread pread64 pwrite pwrite64 readv writev preadv pwritev preadv64 preadv2 preadv64v2
        pwritev64v2 recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg sendfile sendfile64 splice vmsplice tee
        process_vm_readv process_vm_writev copy_file_range open open64 openat openat64 openat2 creat creat64 close
        closedir opendir readdir readdir64 readdir_r readdir64_r scandir scandir64 sync fsync fdatasync syncfs msync
        sync_file_range fopen fopen64 freopen fdopen fmemopen fclose fcloseall fread fwrite fflush fseek fseeko
        fseeko64 ftell ftello ftello64 fgetpos fgetpos64 fsetpos fgets fgetc fputs fputc getc getchar putc putchar puts
        gets getline getdelim ungetc fgetws fgetwc getwc getwchar fputws fputwc putwc putwchar ungetwc perror printf
        fprintf vprintf vfprintf dprintf fwprintf scanf fscanf lseek lseek64 stat lstat fstat stat64 statx fstatat
        fstatat64 access faccessat readlink poll ppoll select pselect pselect6 epoll_wait epoll_pwait epoll_pwait2
        epoll_ctl accept accept4 connect socket socketpair bind listen shutdown ioctl fcntl fcntl64 pipe pipe2 dup dup2
        dup3 mq_send mq_receive mq_timedsend mq_timedreceive msgsnd msgrcv io_submit io_getevents io_setup aio_read
        aio_suspend getaddrinfo gethostbyname rename renameat renameat2 unlink unlinkat truncate ftruncate ftruncate64
        mkdir mkfifo mkfifoat mknod mknodat rmdir getrandom __read_chk fread_unlocked __fread_unlocked_chk""",
    "os_memory": """mmap mmap64 munmap mremap madvise posix_madvise brk sbrk mprotect pkey_mprotect mlock mlock2
        mlockall munlock munlockall mbind shmat shmdt shmget shmctl shm_open shm_unlink memfd_create posix_fallocate
        posix_fallocate64 __mmap""",
    "sleep": """nanosleep clock_nanosleep usleep sleep pause sigsuspend rt_sigsuspend sigwait sigtimedwait sigwaitinfo
        alarm fork vfork clone clone3 posix_spawn posix_spawnp execl execle execlp execv execve execvp execvpe fexecve
        system popen pclose daemon pthread_create pthread_join pthread_tryjoin_np pthread_timedjoin_np
        pthread_clockjoin_np pthread_kill pthread_cancel thrd_create thrd_join thrd_sleep waitpid wait wait3 wait4
        waitid __nanosleep""",
    "": """pthread_cond_signal pthread_cond_broadcast pthread_mutex_unlock pthread_rwlock_unlock sem_post
        pthread_mutex_trylock pthread_spin_trylock pthread_barrier_init sigaction getpid reader mmapped sleepy""",
}
NEVER_A_WAIT = """pthread_cond_signal pthread_cond_broadcast pthread_cond_init pthread_cond_destroy pthread_mutex_unlock
    pthread_mutex_trylock pthread_mutex_init pthread_mutex_destroy pthread_rwlock_unlock pthread_rwlock_tryrdlock
    pthread_rwlock_trywrlock pthread_rwlock_init pthread_rwlock_destroy pthread_spin_unlock pthread_spin_trylock
    pthread_detach pthread_attr_init pthread_setname_np pthread_getaffinity_np pthread_setaffinity_np pthread_self
    pthread_equal __pthread_mutex_unlock sem_post sem_trywait sem_init sem_destroy sem_getvalue __sem_post
    sched_getaffinity sched_setscheduler signal sigaction raise kill"""
"""OS calls that return at once."""

pairs = [(cause, name) for cause, names in CUDA_CALLS.items() for name in names.split()]
os_pairs = [(cause, name) for cause, names in OS_CALLS.items() for name in names.split()]


def expected(cause: str) -> dict[str, int]:
    return {cause: 50_000, "uncovered": 120_000, **CALL}


def in_gaps_of_their_own(add: Callable[[TraceBuilder, str, int, int], object], names: list[str]) -> TraceBuilder:
    """
    device  [==)........................[==)........................[==)
    thread       [first  ] [launch]          [second ] [launch]            each 50 µs
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 2_000))
    for number, name in enumerate(names, 1):
        at = number * 100_000
        add(trace, name, at, at + 50_000)
        trace.kernel(at + 90_000, at + 100_000, launch=(at + 70_000, at + 80_000))
    return trace


def causes(trace: TraceBuilder, path: Path) -> list[str]:
    """What took the 50 µs of each gap, "" where nothing did."""
    (device,) = analyze(trace.write(path), Settings(gaps=1_000)).devices
    gaps = sorted(device.gaps, key=lambda gap: gap.start_ns)
    return ["".join(part.cause for part in gap.slices if part.ns == 50_000) for gap in gaps]


def check(found: list[str], named: list[tuple[str, str]]) -> None:
    assert [(cause, name) for cause, (_, name) in zip(found, named, strict=True)] == named


@pytest.mark.slow
def test_every_cuda_call(tmp_path: Path) -> None:
    trace = in_gaps_of_their_own(TraceBuilder.api, [name for _, name in pairs])
    check(causes(trace, tmp_path / "trace.sqlite"), pairs)


@pytest.mark.slow
def test_every_cuda_call_inside_a_launch(tmp_path: Path) -> None:
    """
    device  [==)..................................[==)
    thread       [launch: 60 µs             ]
                   [the call: 50 µs]               what is no cause of its own stays with the launch
    """
    trace = TraceBuilder().kernel(10_000, 20_000, launch=(1_000, 2_000))
    nested = [(cause, name) for cause, name in pairs if cause != "cuda_api"]
    for number, (_, name) in enumerate(nested, 1):
        at = number * 100_000
        trace.kernel(at + 90_000, at + 100_000, launch=(at + 20_000, at + 80_000))
        trace.api(name, at + 25_000, at + 75_000)
    check(causes(trace, tmp_path / "trace.sqlite"), nested)


@pytest.mark.slow
def test_every_os_call(tmp_path: Path) -> None:
    trace = in_gaps_of_their_own(TraceBuilder.osrt, [name for _, name in os_pairs])
    check(causes(trace, tmp_path / "trace.sqlite"), os_pairs)


def out_in(trace: TraceBuilder, name: str, start: int, end: int) -> None:
    """Scheduled out while in an OS call, and in no known state around that."""
    trace.osrt(name, start, end).sched(start, False).sched(end, True).sched(end, False)


def test_out_in_a_call_that_returns_at_once_is_preempted(tmp_path: Path) -> None:
    names = NEVER_A_WAIT.split()
    trace = in_gaps_of_their_own(out_in, names)
    check(causes(trace, tmp_path / "trace.sqlite"), [("off_cpu", name) for name in names])


def test_out_in_a_call_that_may_wait_is_blocked(tmp_path: Path) -> None:
    names = ["pthread_once", "dlopen", "semctl", "sigqueue"]
    trace = in_gaps_of_their_own(out_in, names)
    check(causes(trace, tmp_path / "trace.sqlite"), [("blocked", name) for name in names])


@pytest.mark.sampled(quick=5)
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
    assert label_of(name).words == label
