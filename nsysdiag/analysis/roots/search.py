"""The search for roots, as one device asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.leaves import LeafSymbols
from nsysdiag.analysis.roots.chain import ChainTeller
from nsysdiag.analysis.roots.files import Files
from nsysdiag.analysis.roots.levels import follow
from nsysdiag.analysis.roots.people import People
from nsysdiag.analysis.roots.recut import Rooted, recut
from nsysdiag.analysis.roots.world import View, World
from nsysdiag.paged import let_go
from nsysdiag.timeline.intervals import IntArray


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
