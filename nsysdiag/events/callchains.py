"""Call chains: the functions on a thread's stack, read for a few chosen chains only (the CALLCHAINS tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import ApiCalls
from nsysdiag.events.program_code import Origin, file_name, name_of, origin_of
from nsysdiag.events.rows import distinct

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

TABLES = {"cuda": "CUDA_CALLCHAINS", "osrt": "OSRT_CALLCHAINS", "sampling": "SAMPLING_CALLCHAINS"}
"""The tables of call chains by what the chains belong to: CUDA calls, OS calls, CPU samples."""
MOST_FRAMES = 12
NO_CHAIN = 0
"""What an export writes for a call whose chain was not recorded."""


class Frame(Struct, frozen=True):
    """A function on a stack: its name, empty if the trace has only an address; the file name of its module, or of its
    Python source (then `line` is known too); and the owner of the code."""

    symbol: str
    module: str
    origin: Origin
    python: bool = False
    line: int | None = None


class Stack(Struct, frozen=True):
    """A call chain: its innermost frames of the program's own, innermost first, or, where it has none, its innermost
    frame. `leaf` is that innermost frame in any case."""

    frames: tuple[Frame, ...]
    own: bool
    leaf: Frame


Stacks = dict[int, Stack]
"""Stacks by the id of their chain; a chain that is not in the trace, or holds no function, is not in it."""


class CallChains(Struct):
    """The call chains of a trace, read on demand, and only the requested ones."""

    trace: Trace
    api_calls: ApiCalls
    _os_ids: IntArray | None = None

    def ids(self, source: str) -> IntArray:
        """The chain id of every row of the table of CUDA calls (`cuda`) or OS calls (`osrt`), NO_CHAIN or below for
        none; empty if the trace holds no chains of this kind."""
        if not self.trace.has(TABLES[source]):
            return np.empty(0, dtype=np.int64)
        if source == "cuda":
            return self.api_calls.chain
        if self._os_ids is None:
            self._os_ids = self.trace.read("OSRT_API", "callchainId").integers("callchainId")
        return self._os_ids

    def stacks(self, source: str, ids: IntArray) -> Stacks:
        """The stacks of these chains of one table."""
        wanted = np.unique(ids[ids > NO_CHAIN] if source != "sampling" else ids)
        rows = self.trace.read_chosen(TABLES[source], "id", wanted, "id", "symbol", "module", "stackDepth")
        if len(rows) == 0:
            return {}
        order = np.lexsort((rows["stackDepth"], rows["id"]))
        frames, code = self._frames(rows["symbol"][order], rows["module"][order])
        return _stacks(rows["id"][order], frames, code)

    def _frames(self, symbol: IntArray, module: IntArray) -> tuple[list[Frame], IntArray]:
        """The distinct frames, and the code of each row. An address counts as its module, so that all addresses of a
        module are one frame."""
        strings = self.trace.strings
        symbols, symbol_code = distinct(symbol)
        modules, module_code = distinct(module)
        pairs, code = distinct(symbol_code * len(modules) + module_code)
        names, paths = strings.texts(symbols), strings.texts(modules)
        known: dict[Frame, int] = {}
        place = []
        for pair in pairs.tolist():
            name, path = names[pair // len(modules)], paths[pair % len(modules)]
            frame = Frame(name_of(name), file_name(path), origin_of(name, path))
            place.append(known.setdefault(frame, len(known)))
        return list(known), np.array(place, dtype=np.int64)[code]


def _stacks(chain: IntArray, frames: list[Frame], code: IntArray) -> Stacks:
    """Rows sorted by chain, innermost first, as stacks. A function that calls itself counts once, and an address not at
    all where its caller says more.

    ```
    chain     poll  cuEvent..  cudaEvent..  wait_all  wait_all  train  main  __libc_start  _start
    stack                                   wait_all            train  main
    ```
    """
    real = np.array([frame.origin is not Origin.NONE for frame in frames])[code]
    chain, code = chain[real], code[real]
    if len(chain) == 0:
        return {}
    leaf = np.flatnonzero(np.append(True, chain[1:] != chain[:-1]))
    leaves = dict(zip(chain[leaf].tolist(), (frames[each] for each in code[leaf].tolist()), strict=True))
    own = np.flatnonzero(np.array([frame.origin is Origin.PROGRAM for frame in frames])[code])
    own = own[np.append(True, (np.diff(chain[own]) != 0) | (np.diff(code[own]) != 0))[: len(own)]]
    own = own[_informative(chain[own], code[own], frames)]
    own = own[_rank(chain[own]) < MOST_FRAMES]
    tops: dict[int, list[Frame]] = {}
    for each, at in zip(chain[own].tolist(), code[own].tolist(), strict=True):
        tops.setdefault(each, []).append(frames[at])
    return {
        each: Stack(tuple(tops.get(each, [innermost])), each in tops, innermost) for each, innermost in leaves.items()
    }


def _informative(chain: IntArray, code: IntArray, frames: list[Frame]) -> BoolArray:
    """False for an address whose caller is a function of the same module with a name, which says more."""
    named = np.array([bool(frame.symbol) for frame in frames])[code]
    numbers: dict[str, int] = {}
    module = np.array([numbers.setdefault(frame.module, len(numbers)) for frame in frames], dtype=np.int64)[code]
    result = np.ones(len(chain), dtype=np.bool_)
    same = (chain[1:] == chain[:-1]) & (module[1:] == module[:-1])
    result[:-1] = named[:-1] | ~(same & named[1:])
    return result


def _rank(chain: IntArray) -> IntArray:
    """The place of each row among those of its chain; chains stand together."""
    begin = np.flatnonzero(np.append(True, chain[1:] != chain[:-1])[: len(chain)])
    return np.arange(len(chain)) - np.repeat(begin, np.diff(np.append(begin, len(chain))))
