"""What the analysis of every device of a trace draws on."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes.evidence import Layer
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Counters
from nsysdiag.diagnosis.missing import UnseenLaunches
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.memory import Memory
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.python_stacks import PythonStacks
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.trace.strings import Strings
from nsysdiag.wakeups.search import RootSearch


@dataclass(frozen=True, slots=True)
class Shared:
    """What the analysis of every device draws on."""

    activity: DeviceActivity
    ranges: NvtxRanges
    layered: LayeredEvidence
    draining: list[Layer]
    untraced: dict[int, Intervals]
    strings: Strings
    thread_names: dict[int, str]
    settings: Settings
    batched_launches: bool
    leaf_symbols: LeafSymbols
    roots: RootSearch
    call_chains: CallChains
    python_stacks: PythonStacks
    counters: Counters
    memory: Memory
    unseen: UnseenLaunches
    sharing: dict[str, str]
    events_dropped: bool
    beside: Background
