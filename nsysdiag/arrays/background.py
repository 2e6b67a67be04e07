"""A second thread for what does not depend on what the first is working on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")


class Background:
    """Runs tasks one after the other on a second thread. NumPy releases the GIL in its loops over large arrays.

    ```
    caller  [classify][roots       ][signatures][launches]...
    beside  [iterations][counters           ][utilization]
    ```
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nsysdiag-beside")

    def begin(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> Future[T]:
        """Begin this once what was begun before is done. The result raises what the work raised."""
        return self._pool.submit(work, *args, **named)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Begin no more, and wait for what runs."""
        self._pool.shutdown(cancel_futures=True)
