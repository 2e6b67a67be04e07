"""Entry point of the program: signals are answered before slow imports, and names are UTF-8."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from nsysdiag.signals import Ended, ignore, raise_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

UTF8 = "utf8"
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
SORTS, PROCESSOR = "NPY_DISABLE_CPU_FEATURES", "/proc/cpuinfo"
SLOW_SORTS, SLOW_STORES = "X86_V4", (b"AuthenticAMD", b"cpu family\t: 25\n")
"""What NumPy is not to use of processors of this vendor and family. On these, Zen 4, to store some of the numbers of a
register of 512 bits is microcode: a million random numbers were sorted in 52 ms, without it in 8 to 14."""
GARBAGE_SEARCHED = 1_000_000
"""Python looks for cycles among new objects once there are so many: more than imports and a page of eight devices make,
of which one in a hundred is in a cycle."""


def process() -> NoReturn:
    """`main`, and the end of the process. Python would first free what is left, object by object: a twentieth of the
    CPU time for a small trace."""
    try:
        main()
    except SystemExit as ended:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(int(ended.code or 0))


def main() -> NoReturn:
    """Run the command line of this process, and exit with its code, or with that of a signal."""
    try:
        raise_ended()
        _in_utf8()
        _with_one_thread_of_blas()
        _with_fast_sorts()
        gc.set_threshold(GARBAGE_SEARCHED)
        from nsysdiag.cli.app import main as run

        run()
    except Exception as error:
        if Ended.last is None:
            raise
        raise SystemExit(_said(Ended.last)) from error
    except Ended as ended:
        raise SystemExit(_said(ended)) from None
    finally:
        ignore()
        gc.freeze()  # all that is left goes with the process


def _said(ended: Ended) -> int:
    ignore()
    if sys.stderr is not None:
        print(f"nsysdiag: {ended.sentence}", file=sys.stderr)
    return ended.exit_code


def _with_one_thread_of_blas() -> None:
    """Let OpenBLAS multiply in the thread that asks. Its other threads wait for the next product at full load, and the
    products here are short. Programs that are recorded get `os.environ`, which does not change."""
    if BLAS_THREADS not in os.environ:
        os.putenv(BLAS_THREADS, "1")


def _with_fast_sorts() -> None:
    """Let NumPy sort as it does without registers of 512 bits if that is faster."""
    if SORTS in os.environ:
        return
    try:
        with open(PROCESSOR, "rb", buffering=0) as system:  # noqa: PTH123, pathlib would have to be imported
            said = system.read(4096)
    except OSError:
        return
    if all(each in said for each in SLOW_STORES):
        os.putenv(SORTS, SLOW_SORTS)


def _in_utf8() -> None:
    """Start this process again in Python's UTF-8 mode if the locale has another encoding.

    Python has decoded the arguments by then, and later decodes file names and the environment in the same way. Names
    would be shown, compared and sorted differently than elsewhere. UTF-8 mode can only be set at the start, so such a
    locale takes one more start of the interpreter. Under the locale C, Python turns the mode on by default. An explicit
    `-X utf8=0` is respected.
    """
    if UTF8 not in sys._xoptions and sys.getfilesystemencoding() != "utf-8" and sys.executable:
        try:  # noqa: SIM105, contextlib would have to be imported
            os.execv(sys.executable, [sys.executable, "-X", UTF8, *sys.orig_argv[1:]])
        except OSError:
            pass
