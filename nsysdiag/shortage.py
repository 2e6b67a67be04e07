"""Memory that runs out: how it shows in the libraries that are used, and the error that it becomes."""

from __future__ import annotations

import errno
import re

from nsysdiag.messages import MemoryShortError

TYPE_CHECKING = False  # the module is imported before most others
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

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


def memory_short(error: BaseException, tried: str, hint: str | None = None) -> MemoryShortError:
    """The error for the user: what was tried, and how much memory was asked for if that is known."""
    amount = next((found for each in _chain(error) if (found := _AMOUNT.search(str(each)))), None)
    asked = f": {amount[1].rstrip('.')} {amount[2]} could not be allocated" if amount else ""
    return MemoryShortError(f"not enough memory to {tried}{asked}", hint=hint)


class Attempt:
    """A context within which memory that runs out is a MemoryShortError about what was tried. The outermost one wins.

    ```
    with Attempt("analyze 'a.sqlite'") as attempt:
        analyze(progress=attempt.noting(progress))
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
