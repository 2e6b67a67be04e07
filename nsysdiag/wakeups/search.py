"""The search for roots, as one device asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.arrays.spill import let_go
from nsysdiag.ledger.assignment import Slices
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.wakeups.host_trace import View, World
from nsysdiag.wakeups.levels import follow
from nsysdiag.wakeups.root_attribution import Rooted, recut
from nsysdiag.wakeups.thread_names import People
from nsysdiag.wakeups.waits import Files
from nsysdiag.wakeups.wake_chain import ChainTeller


@dataclass(frozen=True, slots=True)
class RootSearch:
    """What all devices share: the trace's world, the launching threads, names, files, the least confidence of a hop
    that is followed, and the causes that are nobody's root."""

    world: World
    launching: View
    people: People
    files: Files
    floor: float
    disabled: tuple[str, ...] = ()

    def roots(self, slices: Slices, lane: IntArray, symbols: LeafSymbols) -> tuple[Rooted, ChainTeller]:
        """The root ledger's slices, and who tells the chain behind a gap. `lane` is each gap's launching thread."""
        chains = follow(slices, lane, self.launching, self.world, self.floor, self.disabled)
        let_go()
        found = recut(slices, chains, self.people)
        calls = self.world.tables.os_calls.names
        return found, ChainTeller(slices, chains, self.people, self.files, symbols, calls, self.floor)
