"""Tables read in the background, while what was read before is worked on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.trace.columns import Columns

Request = tuple[str, tuple[str, ...]]
"""A table and its columns, in the order in which they will be read."""
WORKERS = 2
"""The driver reads without Python's lock. More at a time would only hold more memory at once."""


class ReadAhead:
    """Reads in the background, each kept until it is taken once.

    ```
    worker 1   [kernels         ][ranges ][samples]
    worker 2   [calls        ][switches][OS calls]
    main                        [work on kernels and calls      ][...
    ```
    """

    def __init__(self, read: Callable[..., Columns], requests: Sequence[Request]) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="nsysdiag-read")
        self._begun: dict[Request, Future[Columns]] = {}
        try:
            for table, columns in requests:
                self._begun[table, columns] = self._pool.submit(read, table, *columns)
        except BaseException:  # no thread could be started
            self.close()
            raise

    def take(self, table: str, columns: tuple[str, ...]) -> Columns | None:
        """What was read, waiting for it where need be; None for what was not begun. Raises what reading raised."""
        begun = self._begun.pop((table, columns), None)
        return None if begun is None else begun.result()

    def close(self) -> None:
        """Begin no more reads, wait for running ones, and drop results that were not taken."""
        self._pool.shutdown(cancel_futures=True)
        self._begun.clear()
