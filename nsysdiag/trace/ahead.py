"""Tables that are read in the background, while what was read before is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.trace.columns import Columns, Place, arrays, concatenated, joined

if TYPE_CHECKING:
    from nsysdiag.trace.tables import ColumnSpec

Request = tuple[str, tuple[str, ...]]
"""A table and its columns, in the order in which they will be read."""
WORKERS = 2
"""The driver reads without Python's lock. More at a time would only hold more memory at once."""


class Parts(Struct, frozen=True):
    """What reads the parts of a table, in their order. `rows` is about how many rows each has."""

    reads: list[Callable[[Place | None], Columns]]
    rows: list[int]

    @classmethod
    def whole(cls, read: Callable[[], Columns]) -> Parts:
        """A table that is read at once."""
        return cls([lambda _: read()], [0])


class InPlace:
    """The memory of a table that is read in parts of so many `rows`: each part is read to its place, so that they are
    joined without a copy. What had to be read elsewhere is copied to its place."""

    def __init__(self, rows: Sequence[int]) -> None:
        self._borders = np.cumsum([0, *rows])
        self._whole: dict[str, npt.NDArray[Any]] = {}
        self._lock = Lock()

    def place(self, number: int, columns: Sequence[ColumnSpec]) -> list[npt.NDArray[Any]]:
        """Where the part of this number is read to."""
        with self._lock:
            new = [column for column in columns if column.name not in self._whole]
            self._whole.update(zip((column.name for column in new), arrays(new, int(self._borders[-1])), strict=True))
            return [self._whole[column.name][slice(*self._borders[number : number + 2])] for column in columns]

    def joined(self, name: str, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values of all parts of a column, in an array that is released here."""
        whole = self._whole.pop(name, None)
        if whole is None or not self._fit(whole, parts):
            return concatenated(name, parts)
        for begin, part in zip(self._borders.tolist(), parts, strict=False):
            if part.base is not whole:
                whole[begin : begin + len(part)] = part
        return whole

    def _fit(self, whole: npt.NDArray[Any], parts: Sequence[npt.NDArray[Any]]) -> bool:
        """Whether the parts have as many rows as was expected, of numbers that are as wide."""
        wide = {part.dtype for part in parts} - {whole.dtype}
        return not wide and np.array_equal(np.cumsum([0, *map(len, parts)]), self._borders)


class ReadAhead:
    """Reads in the background, each kept until it is taken once.

    ```
    worker 1   [kernels][calls     ][ranges][switches][OS calls][samples]
    worker 2   [kernels][calls     ][ranges][switches][OS calls][samples]
    main                                    [work on kernels and calls      ][...
    ```
    """

    def __init__(self, parts: Callable[..., Parts], requests: Iterable[Request]) -> None:
        """`parts` has what reads a table: as a whole, or a part of its rows each."""
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="nsysdiag-read")
        self._begun: dict[Request, tuple[InPlace, list[Future[Columns]]]] = {}
        self._wanted: set[Request] = set()
        try:
            for request in requests:
                self._begun[request] = self._begin(request, parts(request[0], *request[1]))
        except BaseException:  # no thread could be started
            self.close()
            raise

    def _begin(self, request: Request, parts: Parts) -> tuple[InPlace, list[Future[Columns]]]:
        together = InPlace(parts.rows)
        places = [partial(together.place, number) for number in range(len(parts.reads))]
        reads = zip(parts.reads, places, strict=True)
        return together, [self._pool.submit(self._read, request, read, place) for read, place in reads]

    def take(self, table: str, columns: tuple[str, ...]) -> Columns | None:
        """What was read, waiting for it where need be; None for what was not begun. Raises what reading raised."""
        self._wanted.add((table, columns))
        begun = self._begun.pop((table, columns), None)
        if begun is None:
            return None
        together, reads = begun
        parts = [each.result() for each in reads]
        reads.clear()
        return joined(parts, together.joined)

    def _read(self, request: Request, read: Callable[[Place | None], Columns], place: Place) -> Columns:
        """What waits for its step is kept in files; what is waited for is used at once."""
        if request in self._wanted:
            return read(place)
        columns = read(None)
        return columns if request in self._wanted else columns.in_files()

    def close(self) -> None:
        """Begin no more reads, wait for running ones, and drop results that were not taken."""
        self._pool.shutdown(cancel_futures=True)
        self._begun.clear()
