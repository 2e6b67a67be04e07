"""Which options of `nsys profile` a recording gets: what resolves most of those that are permitted here.

Also what the command line of a program says about it, and what the report of a recording is called."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from nsysdiag.capture.run import Host, Nsys, against_gpu_metrics, against_samples, against_scheduling
from nsysdiag.messages import OutputError, UsageError, printable

TRACED = ("cuda", "nvtx", "osrt")
LIBRARIES = ("cublas", "cudnn")
RANGE_OF_CUDA = "cudaProfilerApi"


class CapturePart(Struct, frozen=True):
    """One kind of evidence: the options that bring it and what they bring, or why it is left out."""

    options: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    left_out: str = ""
    basic: bool = False
    """Whether it is kept if nsys refuses the full set of options."""


class Plan(Struct, frozen=True):
    """All of it."""

    parts: tuple[CapturePart, ...]

    @property
    def options(self) -> list[str]:
        """For `nsys profile`."""
        return [option for part in self.parts for option in part.options]

    @property
    def brings(self) -> list[str]:
        """What is recorded, in words."""
        return [each for part in self.parts for each in part.brings]

    @property
    def left_out(self) -> list[str]:
        """What is not, why, and what would permit it: a sentence each."""
        return [part.left_out for part in self.parts if part.left_out]

    def basic(self) -> Plan:
        """Without what a version of nsys or a machine may refuse."""
        return Plan(tuple(part for part in self.parts if part.basic))


class RecordedSpan(Struct, frozen=True):
    """The part of the run that is recorded: seconds, and `cudaProfilerApi` or the name of an NVTX range."""

    delay: float | None = None
    duration: float | None = None
    capture_range: str | None = None

    @property
    def ends_program(self) -> bool:
        """Whether nsys ends the program when it has what it is to record."""
        return self.duration is not None or self.capture_range is not None

    @property
    def environment(self) -> dict[str, str]:
        """By default, nsys only finds registered names of NVTX ranges; PyTorch registers none."""
        by_name = self.capture_range not in (None, RANGE_OF_CUDA)
        return {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"} if by_name else {}


def require_whole(name: str) -> None:
    """Raise UsageError for a pattern in place of the name of a range: nsys compares whole names."""
    if name.endswith("*"):
        raise UsageError(
            f"--capture-range: nsys has no patterns such as '{printable(name)}'",
            hint="name one range, as 'step 20'; for many steps, call cudaProfilerStart and cudaProfilerStop around them"
            f" and use --capture-range {RANGE_OF_CUDA}",
        )


def planned(nsys: Nsys, host: Host, span: RecordedSpan, *, python: bool, mpi: bool) -> Plan:
    """The options for this nsys on this machine."""
    sampled = against_samples(nsys, host)
    return Plan(
        (
            _traced(nsys, mpi=mpi),
            _cpus(against_scheduling(nsys, host), sampled),
            _span(nsys, span),
            _known(nsys, "--cuda-graph-trace", "node", "kernels inside CUDA graphs"),
            _known(nsys, "--cuda-memory-usage", "true", "GPU memory"),
            *([] if sampled else [_known(nsys, "--cudabacktrace", "all", "callers of CUDA calls")]),
            _gpu_metrics(nsys),
            *([_python(nsys)] if python else []),
        )
    )


def _traced(nsys: Nsys, *, mpi: bool) -> CapturePart:
    known = nsys.traceable or frozenset(TRACED)
    more = [name for name in (*LIBRARIES, *(["mpi"] if mpi else [])) if name in known]
    names = ["CUDA", "NVTX", "OS calls", *(["cuBLAS and cuDNN calls"] if set(LIBRARIES) <= known else [])]
    names += ["MPI"] if "mpi" in more else []
    return CapturePart((f"--trace={','.join((*TRACED, *more))}",), tuple(names), basic=True)


def _cpus(unscheduled: str | None, unsampled: str | None) -> CapturePart:
    """What the threads did on the CPUs, by the reasons against either; nothing is sampled without scheduling."""
    if unscheduled is not None:
        left_out = f"without scheduling and CPU samples: {unscheduled}"
        return CapturePart(("--cpuctxsw=none", "--sample=none"), left_out=left_out, basic=True)
    if unsampled is not None:
        left_out = f"without CPU samples: {unsampled}"
        return CapturePart(("--cpuctxsw=process-tree", "--sample=none"), ("scheduling",), left_out, basic=True)
    return CapturePart(("--cpuctxsw=process-tree", "--sample=process-tree"), ("scheduling", "CPU samples"), basic=True)


def _span(nsys: Nsys, span: RecordedSpan) -> CapturePart:
    """nsys ends the program when it has recorded what it is to record. Versions differ in whether they do unasked."""
    options = [f"--delay={span.delay:g}"] if span.delay is not None else []
    options += [f"--duration={span.duration:g}"] if span.duration is not None else []
    if span.capture_range == RANGE_OF_CUDA:
        options += [f"--capture-range={RANGE_OF_CUDA}"]
    elif span.capture_range is not None:
        name = span.capture_range.replace("\\", "\\\\").replace("@", "\\@")
        options += ["--capture-range=nvtx", f"--nvtx-capture={name}@*"]
    if span.capture_range is not None and "--capture-range-end" in nsys.options:
        options += ["--capture-range-end=stop-shutdown"]
    if span.ends_program and "--kill" in nsys.options:
        options += ["--kill=sigterm"]
    return CapturePart(tuple(options), basic=True)


def _known(nsys: Nsys, option: str, value: str, brings: str) -> CapturePart:
    """A part that depends on the version alone."""
    if option in nsys.options:
        return CapturePart((f"{option}={value}",), (brings,))
    return CapturePart(left_out=f"without {brings}: nsys {nsys.version} has no option {option}")


def _gpu_metrics(nsys: Nsys) -> CapturePart:
    reason = against_gpu_metrics(nsys)
    if reason is not None:
        return CapturePart(left_out=f"without GPU metrics: {reason}")
    return CapturePart((f"{nsys.metrics_option}=all",), ("GPU metrics",))


def _python(nsys: Nsys) -> CapturePart:
    """Python's own stacks, which are of use only if the export holds them."""
    options = {"--python-sampling": "true", "--python-backtrace": "cuda"}
    known = [f"{option}={value}" for option, value in options.items() if option in nsys.options]
    if known and nsys.exports_blobs:
        return CapturePart(tuple(known), ("Python functions",))
    what = "export" if known else "record"
    return CapturePart(left_out=f"without Python functions: nsys {nsys.version} cannot {what} them, newer versions can")


def in_words(names: Sequence[str]) -> str:
    """As `CUDA, NVTX and OS calls`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# What the command line of a program says about it.

_PYTHON = re.compile(r"python[\d.]*")
MPI_LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun")
MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")
"""What Open MPI, MPICH and their kin set for each rank that they start."""


def require_program(words: Sequence[str]) -> None:
    """Raise UsageError if the first word is not an executable program."""
    program = words[0]
    if shutil.which(program):
        return
    shown = printable(program)
    if not Path(program).is_file():
        raise UsageError(f"there is no program '{shown}'", hint="name one of the PATH, or the path of a file")
    better = f"python {shown}" if program.endswith(".py") else f"chmod +x {shown}"
    hint = f"nsysdiag record -- {better}" if program.endswith(".py") else better
    raise UsageError(f"'{shown}' is a file that cannot be executed", hint=hint)


def is_python(words: Sequence[str]) -> bool:
    """Whether Python runs it: by a word of the command line, or by the first line of a script such as torchrun."""
    return any(is_interpreter(word) or word.endswith(".py") for word in words) or _has_python_line(words[0])


def is_interpreter(word: str) -> bool:
    return _PYTHON.fullmatch(Path(word).name) is not None


def _has_python_line(program: str) -> bool:
    try:
        with open(shutil.which(program) or program, "rb") as file:  # noqa: PTH123
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def uses_mpi(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> bool:
    """Whether it is a rank of MPI, or starts ranks."""
    return Path(words[0]).name in MPI_LAUNCHERS or any(name in environment for name in MPI_VARIABLES)


# What the report of a recording is called, and how it gets a name that nothing else has.

_UNFIT = re.compile(r"[^\w.+-]+")


def name_of(words: Sequence[str]) -> str:
    """A name for what is recorded: `train` for `python train.py` and `python -m train`, else that of the program."""
    name = next((Path(word).stem for word in words if word.endswith(".py")), "")
    if not name and is_interpreter(words[0]) and "-m" in words[1:-1]:
        name = words[words.index("-m") + 1]
    return _UNFIT.sub("-", name or Path(words[0]).name).strip(".-") or "program"


# Ranks of one job record side by side, in one folder.

RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Where launchers say the rank of a process and how many there are, the innermost launcher first: torchrun, Open MPI,
MPICH and its kin, srun."""


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank of this process, if it is one of several."""
    for rank, size in RANKS:
        number, count = environment.get(rank, ""), environment.get(size, "")
        if number.isdecimal() and count.isdecimal() and int(count) > 1:
            return int(number)
    return None


def with_rank(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The name, as `train.rank3` for a rank."""
    rank = rank_of(environment)
    return name if rank is None else f"{name}.rank{rank}"


_PATTERN = re.compile(r"%(?:q\{(\w+)\}|([hp%]))")


def filled_in(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """A name with the patterns of nsys filled in: `%q{NAME}` a variable of the environment, `%h` the host, `%p` this
    process and `%%` a percent sign. Raises UsageError if a variable is not set."""

    def value(found: re.Match[str]) -> str:
        variable, letter = found.groups()
        if letter is not None:
            return {"h": socket.gethostname(), "p": str(os.getpid()), "%": "%"}[letter]
        if variable not in environment:
            raise UsageError(f"'{printable(name)}': the environment has no {variable}")
        return environment[variable]

    return _PATTERN.sub(value, name)


SUFFIX, STREAM = ".nsys-rep", ".qdstrm"
"""A report, and what nsys leaves if it has no importer that makes one."""


def free_stem(name: str, suffixes: tuple[str, ...]) -> str:
    """The name, or with the first number behind it, as `train-2`, that no file here has with any of the suffixes."""
    stems = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(stem for stem in stems if not any(os.path.lexists(stem + suffix) for suffix in suffixes))


def beside(path: Path) -> Path:
    """Where nsys writes first: in the same folder, under a name unique to this process."""
    return path.absolute().with_name(f".nsysdiag-{secrets.token_hex(8)}{SUFFIX}")


def keep(written: Path, path: Path, *, force: bool) -> Path:
    """Rename a file atomically, and return its name: without `force` the next free one, if another process has taken it
    since. On failure raises OutputError, which names the file's current path."""
    suffix = path.suffix
    try:
        while not force:
            with suppress(FileExistsError):
                _link(written, path)
                return path
            path = Path(free_stem(str(path).removesuffix(suffix), (suffix,)) + suffix)
        return written.replace(path)
    except OSError as error:
        message = f"cannot write {printable(path)}: {error.strerror}"
        raise OutputError(message, hint=f"the report is in {printable(written)}") from error


def _link(written: Path, path: Path) -> None:
    """A hard link fails if the name is taken; on a file system without links, the name is only checked."""
    try:
        path.hardlink_to(written)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        written.rename(path)
    else:
        written.unlink()
