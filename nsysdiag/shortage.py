"""Memory that runs out: how it shows in the libraries that are used, and the error that it becomes."""

from __future__ import annotations

import errno
import os
import re

from nsysdiag.errors import MemoryShortError

TYPE_CHECKING = False  # the module is imported before most others
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

START_BYTES = 192 << 20
"""Address space that the libraries map before a trace is read, with some reserve. 176 MiB were measured with NumPy,
pandas, the columnar driver and one thread of OpenBLAS. With less, OpenBLAS ends the process."""
SPARE_BYTES = 512 << 20
"""Address space that must remain for a second thread or the columnar driver. If they get no memory, glibc or the C++
library aborts the process. A single thread that reads with sqlite3 gets an error instead. A thread maps 8 MiB of stack
and 128 MiB of heap."""
LAST_WORDS = b"nsysdiag: not enough memory\n"
"""Prepared, as there may be no memory to make a sentence."""
_OPENBLAS = "OPENBLAS_NUM_THREADS"
_added: set[str] = set()
"""Variables of the environment that this program has set."""
_SQLITE_NOMEM, _PRIMARY = 7, 0xFF
_BY_MESSAGE = {"sqlite3", "adbc_driver_manager", "nanoarrow", "zlib"}
"""Packages whose errors say it in words only."""
_WORDS = re.compile(
    r"out of memory|not enough memory|(?:cannot|can't|failed to|unable to) allocate"
    r"|failed to map segment(?!.*not permitted)|can't start new thread|error -4\b",
    re.IGNORECASE | re.DOTALL,
)
_AMOUNT = re.compile(r"Unable to allocate ([\d.]+) (bytes|[KMGTPE]iB)")


def is_shortage(error: BaseException) -> bool:
    """Whether the error, or one that it was raised for, says that memory could not be had."""
    return any(map(_is_one, _chain(error)))


def _is_one(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if getattr(error, "sqlite_errorcode", 0) & _PRIMARY == _SQLITE_NOMEM:
        return True
    kind = type(error)
    if kind not in (RuntimeError, ImportError, SystemError) and kind.__module__.split(".")[0] not in _BY_MESSAGE:
        return False
    return _WORDS.search(str(error)) is not None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [each.__context__, each.__cause__]


def released(error: BaseException) -> BaseException:
    """The error without tracebacks, whose frames hold what took the memory."""
    for each in _chain(error):
        each.__traceback__ = None
    return error


def memory_short(error: BaseException, tried: str, hint: str | None = None) -> MemoryShortError:
    """The error for the user: what was tried, and how much memory was asked for where that is known."""
    amount = next((found for each in _chain(error) if (found := _AMOUNT.search(str(each)))), None)
    asked = f": {amount[1].rstrip('.')} {amount[2]} could not be allocated" if amount else ""
    return MemoryShortError(f"not enough memory to {tried}{asked}", hint=hint)


class Attempt:
    """A context within which memory that runs out is a MemoryShortError about what was tried. The outermost one wins.

    ```
    with Attempt("analyse 'a.sqlite'") as attempt:
        analyse(progress=attempt.noting(progress))
    ```
    """

    def __init__(self, tried: str, hint: str | None = None) -> None:
        self._tried = tried
        self._hint = hint
        self._step = ""

    def noting(self, progress: Callable[[str, float], None] | None) -> Callable[[str, float], None]:
        """A progress function that also keeps the current step, for the message."""

        def note(step: str, share: float) -> None:
            self._step = f" ({step})"
            if progress is not None:
                progress(step, share)

        return note

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and is_shortage(error):
            raise memory_short(error, self._tried + self._step, self._hint) from error


def has_room(size: int) -> bool:
    """Whether this process could get `size` bytes of memory now, by a test mapping that is released at once."""
    import mmap

    if not hasattr(mmap, "MAP_PRIVATE"):
        return True
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        return error.errno != errno.ENOMEM
    return True


def has_spare() -> bool:
    """Whether there is memory enough for a second thread and the columnar driver."""
    return has_room(SPARE_BYTES)


def require_start() -> None:
    """Raise MemoryShortError where the libraries could not be loaded."""
    if not has_room(START_BYTES):
        raise MemoryShortError(
            f"not enough memory to start: the libraries alone take {START_BYTES >> 20} MiB of address space",
            hint="raise the limit (ulimit -v, or that of the job or container)",
        )


def one_thread_of_openblas() -> None:
    """On import, NumPy's OpenBLAS maps 40 MiB and starts a thread for each CPU; if it cannot, it interrupts the
    process. One thread is enough here. A number set by the user is kept."""
    if _OPENBLAS not in os.environ:
        os.environ[_OPENBLAS] = "1"
        _added.add(_OPENBLAS)


def given_environment() -> dict[str, str]:
    """The environment without what this program has added for itself, for a program that it starts for the user."""
    return {name: value for name, value in os.environ.items() if name not in _added}
