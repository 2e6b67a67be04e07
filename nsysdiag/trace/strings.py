"""StringIds, resolved lazily: only requested ids are fetched."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.limits import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from nsysdiag.trace.columns import IntArray


class Strings:
    """The texts behind the ids of names. An id that the file does not know reads as `<string 17>`."""

    def __init__(self, rows: Callable[[list[int]], Iterable[tuple[int, str]]] | None) -> None:
        """`rows` returns the ids and texts of existing ids; None if the file has no such table."""
        self._rows = rows
        self._known: dict[int, str | None] = {}
        self._lock = Lock()

    def text(self, string_id: int) -> str:
        """The text of one id, as it is mentioned (limits.short_name)."""
        self._fetch([int(string_id)])
        return short_name(self._name(int(string_id)))

    def known(self, string_id: int) -> bool:
        """Whether the file has a text for this id."""
        self._fetch([int(string_id)])
        return self._known.get(int(string_id)) is not None

    def texts(self, ids: npt.ArrayLike) -> list[str]:
        """The text of every id as it is mentioned (limits.short_name), in the order given."""
        return [short_name(text) for text in self.whole(ids)]

    def whole(self, ids: npt.ArrayLike) -> list[str]:
        """The text of every id as far as it is read (limits.TEXT_BYTES), in the order given: for lists that hold each
        name once."""
        distinct, inverse = np.unique(np.asarray(ids, np.int64), return_inverse=True)
        self._fetch(distinct.tolist())
        names = [self._name(string_id) for string_id in distinct.tolist()]
        return [names[index] for index in inverse.tolist()]

    def ids_where(self, predicate: Callable[[str], bool], among: IntArray) -> IntArray:
        """Those of the ids, distinct and sorted, whose text fulfils the predicate. Unknown ids never do."""
        distinct = np.unique(np.asarray(among, np.int64))
        self._fetch(distinct.tolist())
        chosen = [predicate(text) if text is not None else False for text in map(self._known.get, distinct.tolist())]
        found: IntArray = distinct[np.array(chosen, np.bool_)]
        return found

    def _name(self, string_id: int) -> str:
        text = self._known.get(string_id)
        return f"<string {string_id}>" if text is None else text

    def _fetch(self, ids: Sequence[int]) -> None:
        """Make these ids known, or known to be absent."""
        with self._lock:
            missing = [string_id for string_id in ids if string_id not in self._known]
            if not missing:
                return
            found = dict.fromkeys(missing)
            if self._rows is not None:
                found.update(self._rows(missing))
            self._known.update(found)
