"""The search for roots, as one device asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.arrays.spill import evict
from nsysdiag.ledger.assignment import Slices
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.wakeups.host_trace import HostTrace, WaitingThreads
from nsysdiag.wakeups.levels import follow
from nsysdiag.wakeups.root_attribution import RootSlices, attribute_roots
from nsysdiag.wakeups.thread_names import ThreadNames
from nsysdiag.wakeups.waits import Files
from nsysdiag.wakeups.wake_chain import WakeChains


@dataclass(frozen=True, slots=True)
class RootSearch:
    """What all devices share: the host trace, the launching threads, names, files, the least confidence of a hop
    that is followed, and the causes that are nobody's root."""

    host_trace: HostTrace
    launching: WaitingThreads
    names: ThreadNames
    files: Files
    floor: float
    disabled: tuple[str, ...] = ()

    def roots(self, slices: Slices, lane: IntArray, symbols: LeafSymbols) -> tuple[RootSlices, WakeChains]:
        """The root ledger's slices, and who tells the chain behind a gap. `lane` is each gap's launching thread."""
        chains = follow(slices, lane, self.launching, self.host_trace, self.floor, self.disabled)
        evict()
        found = attribute_roots(slices, chains, self.names)
        calls = self.host_trace.tables.os_calls.names
        return found, WakeChains(slices, chains, self.names, self.files, symbols, calls, self.floor)
