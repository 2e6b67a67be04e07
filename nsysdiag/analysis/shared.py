"""What the analysis of every device of a trace draws on."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.activity.callchains import CallChains
from nsysdiag.activity.device import DeviceActivity
from nsysdiag.activity.memory import Memory
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.activity.python_stacks import PythonStacks
from nsysdiag.analysis.classify import LayeredEvidence
from nsysdiag.analysis.evidence import Layer
from nsysdiag.analysis.gpu_metrics.counters import Counters
from nsysdiag.analysis.leaves import LeafSymbols
from nsysdiag.analysis.missing import UnseenLaunches
from nsysdiag.analysis.roots.search import RootSearch
from nsysdiag.beside import Beside
from nsysdiag.config import Settings
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.trace.strings import Strings


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
    beside: Beside
