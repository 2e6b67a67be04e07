"""Names that everybody has: functions of CUDA, NCCL, MPI, the OS and the Python interpreter, and their libraries.

They tell nothing about a program and stay. The lists are narrow: a name that only looks like one of theirs
(`cudaSolveHeat`, `PyInit_secret`) is a name of the program.
"""

from __future__ import annotations

import re

from nsysdiag.activity.operations import copy_name

MOST_KINDS = 91
"""Kinds of copies by number, known or not: no higher one is told apart."""
_CUDA = re.compile(
    r"(_*cuda_?)(Malloc|Free|Mem|Memcpy|Memset|Launch|Stream|Event|Graph|Device|Get|Set|Peek|Func|Host|Ipc|Choose|Ctx"
    r"|Occupancy|Driver|Runtime|Thread|Profiler|Import|External|Destroy|Create|Register|Unregister|Bind|Unbind|Pointer"
    r"|Library|Kernel|Array|User|Wait|Signal|PushCall|PopCall|Module|Enable|Init)([A-Z_]\w*)?"
    r"|cu(Init|Ctx|Mem|Memcpy|Memset|Module|Launch|Stream|Event|Graph|Device|Func|Kernel|Library|Link|Get|Set|Tex|Surf"
    r"|Array|Pointer|Occupancy|Ipc|Profiler|Mipmapped|External|Import|Wait|Signal|User|Multicast|Green|Param|Driver"
    r"|Flush|Thread|Checkpoint)([A-Z_]\w*)?"
)
_LIBRARIES = re.compile(
    r"p?nccl(AllReduce|AllGather|ReduceScatter|Reduce|Broadcast|Bcast|Send|Recv|AllToAll|Alltoall|Gather|Scatter"
    r"|Group(Start|End)|Comm([A-Z]\w*)?|Get[A-Z]\w*|Mem[A-Z]\w*)"
    r"|cublas(Lt|Xt)?(Create|Destroy|Set|Get|[SDCHZ]?[gs]e?[my][mv]m?|Gemm|[SDCHZ]gemm|Matmul|GemmEx)\w*"
    r"|cudnn(Create|Destroy|Set|Get|Convolution|Pooling|Activation|BatchNorm|Normalization|Backend|RNN|Softmax|Op)\w*"
    r"|P?MPI_(Init|Finalize|Comm|Send|Recv|[IBRSP]*[Ss]end|I?[Rr]ecv|Wait|Test|Probe|Iprobe|I?[Bb]arrier|I?[Bb]cast"
    r"|I?[Rr]educe|I?[Aa]ll|I?[Gg]ather|I?[Ss]catter|I?[Ss]can|Exscan|Win|Put|Get|Accumulate|Fence|File|Type|Sendrecv"
    r"|Start|Request|Cancel|Pack|Unpack|Wtime|Abort|Group|Cart|Graph|Dist|Neighbor|Op|Mprobe|Improbe|Mrecv)\w*"
)
_OS = frozenset(
    re.findall(
        r"\w+",
        """
        accept accept4 access bind brk cfree chdir chmod clock_nanosleep clone clone3 close closedir connect
        copy_file_range creat dlclose dlopen dlsym dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait
        epoll_wait eventfd eventfd_read eventfd_write execve exit_group fallocate fclose fcntl fdatasync fdopen
        fflush fgetc fgets fileno flock fopen fopen64 fork fprintf fputc fputs fread freopen fseek fstat fsync
        ftell ftruncate futex fwrite getaddrinfo getc getdelim getdents getdents64 gethostbyname getline getpid
        getrandom gettid io_getevents io_submit io_uring_enter ioctl kill listen lseek lseek64 lstat madvise
        malloc calloc realloc free memalign posix_memalign memcpy memmove memset mkdir mkstemp mlock mlock2
        mlockall mmap mmap64 mprotect mremap msgrcv msgsnd msync munlock munmap nanosleep open open64 openat
        openat64 opendir pause pclose pipe pipe2 poll popen posix_fadvise posix_fallocate ppoll prctl pread
        pread64 preadv process_vm_readv process_vm_writev pselect putc pwrite pwrite64 pwritev read readahead
        readdir readlink readv recv recvfrom recvmmsg recvmsg rename rmdir rt_sigaction rt_sigprocmask
        rt_sigtimedwait sched_yield sbrk select semget semop semtimedop send sendfile sendfile64 sendmmsg sendmsg
        sendto setsockopt shm_open shm_unlink shmat shmctl shmdt shmget shutdown sigaction sigsuspend sigtimedwait
        sigwait sigwaitinfo sleep socket socketpair splice stat statx strlen strcmp syscall system tee
        timerfd_settime truncate unlink usleep vfork vmsplice wait wait3 wait4 waitid waitpid write writev
        """,
    )
)
_POSIX = re.compile(
    r"pthread_(attr|barrier|cancel|cond|create|detach|exit|getspecific|join|key|kill|mutex|once|rwlock|self|setname"
    r"|sigmask|spin|tryjoin|timedjoin)\w*|sem_(wait|timedwait|trywait|clockwait|post|open|close|init|destroy|unlink)"
    r"|mq_(open|close|send|receive|timedsend|timedreceive|notify|unlink)|aio_(read|write|suspend|fsync|return|error)"
    r"|__(poll|read|write|select|memcpy\w*|memset\w*|memmove\w*|libc_start_main|libc_start_call_main|clone3?)"
    r"|_start|start_thread|clone3?|__GI_\w+|NSYS_OSRT_\w+"
)
_PYTHON = re.compile(
    r"_?Py_?(Eval|Object|Unicode|Dict|List|Tuple|Long|Type|Frame|Gen|GC|Function|Method|CFunction|Bytes|Import|Err|Call"
    r"|Vectorcall|Run|Mem|Arg|Number|Sequence|Iter|Set|Slice|Float|Bool|Code|Interpreter|Thread|Main|Gil|GIL)[A-Z_]\w*"
    r"|gc_collect_(main|region|generations)|gc_collect_with_callback|subtract_refs|visit_(decref|reachable)"
    r"|deduce_unreachable|(method|cfunction|_PyFunction)?_?vectorcall\w*|(take|drop)_gil"
    r"|_bootstrap(_inner)?|<(module|lambda|listcomp|dictcomp|setcomp|genexpr)>"
)
_PLACES = frozenset({"[Unknown]", "[Broken backtraces]", "[Max depth]", "[vdso]", "[vsyscall]", "[kernel.kallsyms]"})
_MODULES = re.compile(
    r"ld-linux-x86-64\.so\.2|ld-[\d.]+\.so|\[(kernel\.kallsyms|vdso|vsyscall|Unknown)\]"
    r"|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|gomp|iomp5|tbb|tbbmalloc)([-.][\d.so-]*)?"
    r"|lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|curand|cusparse|cusolver|cupti|nccl|nvrtc|nvidia-ml)[-.][\w.+-]*"
    r"|libtorch(_cpu|_cuda|_python|_global_deps)?\.so[\d.]*|libc10(_cuda)?\.so[\d.]*"
    r"|libpython[\d.]+m?\.so[\d.]*|python[\d.]*"
)
_CLASSES = frozenset({*(copy_name(kind) for kind in range(MOST_KINDS)), "memset", "graph"})


def is_public_function(name: str) -> bool:
    """A function of CUDA and its libraries, of MPI, the C library or the interpreter."""
    return name in _OS or name in _PLACES or any(p.fullmatch(name) for p in (_CUDA, _LIBRARIES, _POSIX, _PYTHON))


def is_public_module(name: str) -> bool:
    """A library that programs share, or the kernel."""
    return _MODULES.fullmatch(name) is not None


def is_class_of_operation(name: str) -> bool:
    """What operations other than kernels go by: `memcpy HtoD`, `memset`, `graph`."""
    return name in _CLASSES
