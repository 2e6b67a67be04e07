"""The bottlenecks that a device's time is charged to, over idle time and work: one record for each."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

BottleneckId = Literal[
    "kernels",
    "parallelism",
    "communication",
    "copies",
    "input",
    "host",
    "sync",
    "launch",
    "memory",
    "startup",
    "other_process",
    "profiler",
    "unknown",
]

FEW_KERNELS = 0.05
"""Share of the judged time: a smaller part of the kernels' time, on a full or on a mostly empty GPU, is shown as one
with the rest of it."""


class Bottleneck(Struct, frozen=True, kw_only=True):
    """What time is charged to.

    `noun` is its name inside a sentence, `label` that of bars and legends: the noun if empty. `takes` begins a
    headline, before the share. `color` is that of the light theme, and `shades` how many shades of it tell causes
    apart. `part` is the part of a window with that colour in all themes, and `work` its id in ledgers of iterations:
    both empty for idle time. `verdict` is its verdict on a device; if empty, that of the cause with most time.
    `promised`: a fix of the program can save its time.

    `in_start` is what a program does with such time before its first GPU work, `advice` how to shorten that. `running`
    is what another GPU that is waited for is busy with, empty if it idles. `differs` is what a late GPU may have of its
    own, if this is what made it late.
    """

    id: BottleneckId
    noun: str
    takes: str
    label: str = ""
    color: str = ""
    shades: int = 1
    part: str = ""
    work: str = ""
    verdict: str = ""
    promised: bool = True
    in_start: str = ""
    advice: tuple[str, ...] = ()
    running: str = ""
    differs: str = "its share of the data, the CPU cores and NUMA node of its process, other load on these cores"

    @property
    def title(self) -> str:
        """Its name where it stands alone."""
        return self.label or self.noun[:1].upper() + self.noun[1:]

    def shade(self, number: int) -> str:
        """The colour of its cause with this number: its own for the first, unless work has it, then lighter and darker
        ones in turn. If all shades are taken they begin again: causes that share one differ by their names."""
        place = number % self.shades + bool(self.part)
        step = SHADE_STEP * ((place + 1) // 2)
        toward = WHITE if place % 2 else 0
        channels = (int(self.color[at : at + 2], 16) for at in (1, 3, 5))
        return "#" + "".join(f"{round(each + (toward - each) * step):02x}" for each in channels)


SHADE_STEP = 0.2
"""By how much of the way to white or black shades of a colour differ: enough to tell five apart in grey."""
WHITE = 255


SHARE_OF_WORK = "its share of the work, its clocks, temperature and power limit"

BOTTLENECKS: dict[str, Bottleneck] = {
    each.id: each
    for each in (
        Bottleneck(
            id="kernels",
            noun="kernels",
            takes="Kernels take",
            color="#2b6cb8",
            part="compute",
            work="compute",
            verdict="gpu-bound",
            running="kernels of ",
            differs=SHARE_OF_WORK,
        ),
        Bottleneck(
            id="parallelism",
            noun="kernels that leave most of the GPU empty",
            takes="Kernels that leave most of the GPU empty take",
            label="Kernels on a mostly empty GPU",
            color="#f16d58",
            verdict="parallelism-bound",
            running="small kernels of ",
            differs=SHARE_OF_WORK,
        ),
        Bottleneck(
            id="communication",
            noun="communication",
            takes="Communication takes",
            color="#47207a",
            part="communication",
            work="exposed_comm",
            verdict="comm-bound",
            in_start="MPI",
            running="communication of ",
        ),
        Bottleneck(
            id="copies",
            noun="copies",
            takes="Copies take",
            color="#9c640c",
            part="copies",
            work="exposed_copy",
            verdict="copy-bound",
            running="copies of ",
            differs="the bytes that it copies, the PCIe generation and width of its link, its NUMA node",
        ),
        Bottleneck(
            id="input",
            noun="waiting for input",
            takes="Waiting for input takes",
            color="#67482b",
            shades=2,
            verdict="input-bound",
            in_start="reading input",
            advice=("Read in larger pieces, on several threads, or from a format that needs no parsing.",),
            differs="its share of the data, where the data is read from, the CPU cores of its workers",
        ),
        Bottleneck(
            id="host",
            noun="waiting for the host",
            takes="The host keeps the GPU waiting for",
            color="#cf274a",
            shades=4,
            in_start="host code",
            advice=(
                "Profile this host code. Run it on more threads, prepare the data on the GPU, or run it once and save "
                "the result.",
            ),
        ),
        Bottleneck(
            id="sync",
            noun="synchronization",
            takes="Synchronization keeps the GPU idle for",
            color="#8058f0",
            shades=3,
            verdict="sync-bound",
        ),
        Bottleneck(
            id="launch",
            noun="launch overhead",
            takes="Launch overhead takes",
            color="#9f71a5",
            shades=5,
            verdict="launch-bound",
        ),
        Bottleneck(
            id="memory",
            noun="memory management",
            takes="Memory management takes",
            color="#9a491a",
            shades=4,
            in_start="allocation",
            advice=("Allocate and pin less, and in fewer calls: one large allocation instead of many.",),
        ),
        Bottleneck(
            id="startup",
            noun="start-up",
            takes="Start-up takes",
            color="#228c72",
            shades=3,
            in_start="CUDA initialization and code loading",
            advice=(
                "Load less code: binaries for the architecture of this GPU alone. Kernels load when they are first "
                "used (lazy loading is the default since CUDA 12.2; CUDA_MODULE_LOADING=LAZY before that). Keep the "
                "driver initialized (nvidia-smi -pm 1), and use one process for more work.",
            ),
        ),
        Bottleneck(
            id="other_process",
            noun="another process on the GPU",
            takes="Another process uses the GPU for",
            color="#883c7f",
        ),
        Bottleneck(
            id="profiler",
            noun="the profiler's overhead",
            takes="The profiler itself takes",
            label="Profiler overhead",
            color="#afa3a3",
            promised=False,
        ),
        Bottleneck(
            id="unknown",
            noun="unexplained idle time",
            takes="Unexplained idle time takes",
            color="#7c8491",
            shades=5,
            verdict="unresolved",
            promised=False,
            in_start="unexplained in the trace",
        ),
    )
}
UNKNOWN = "unknown"
IN_GRAPHS, WITH_GRAPHS = "graphs", "graphs_and_kernels"
"""How `kernels` are shown if CUDA graphs that were recorded as a whole are nearly all of them, or most. What runs
inside these is not in the trace. Reports hold neither."""
NOT_STARTED, NO_LAUNCH = "not_started", "no_launch"
BUILDING_GRAPHS = "building_graphs"
IN_UNTRACED_GRAPHS, IN_UNTRACED_CALLS = "in_untraced_graphs", "in_untraced_calls"
"""How `unknown` is shown if most of it has one known reason, of which the trace lacks the rest. Reports hold none of
these."""
_SHOWN: dict[str, Bottleneck] = BOTTLENECKS | {
    IN_GRAPHS: replace(
        BOTTLENECKS["kernels"], noun="CUDA graphs, recorded as a whole", takes="CUDA graphs, recorded as a whole, take"
    ),
    WITH_GRAPHS: replace(
        BOTTLENECKS["kernels"],
        noun="kernels and CUDA graphs, these recorded as a whole",
        takes="Kernels and CUDA graphs, these recorded as a whole, take",
    ),
    BUILDING_GRAPHS: replace(
        BOTTLENECKS["startup"],
        noun="building and updating CUDA graphs",
        takes="Building and updating CUDA graphs takes",
    ),
    NOT_STARTED: replace(
        BOTTLENECKS["unknown"],
        noun="queued work that the GPU has not started",
        takes="The GPU does not start queued work for",
        label="Queued work not started",
    ),
    NO_LAUNCH: replace(
        BOTTLENECKS["unknown"],
        noun="idle time before work whose launch is not in the trace",
        takes="The launch of the next work is not in the trace for",
        label="Idle, launch not in the trace",
    ),
    IN_UNTRACED_GRAPHS: replace(
        BOTTLENECKS["unknown"],
        noun="CUDA graphs whose kernels are not in the trace",
        takes="CUDA graphs whose kernels are not in the trace take",
    ),
    IN_UNTRACED_CALLS: replace(
        BOTTLENECKS["unknown"],
        noun="waiting in calls that were not traced",
        takes="Waiting in calls that were not traced takes",
    ),
}
BOTTLENECK_IDS: tuple[BottleneckId, ...] = get_args(BottleneckId)
"""All of them; a bottleneck's number in columns is its place here."""
BOTTLENECK_NUMBER: dict[str, int] = {name: number for number, name in enumerate(BOTTLENECK_IDS)}
OF_WORK: dict[str, str] = {each.work: each.id for each in BOTTLENECKS.values() if each.work}
"""The bottleneck of each kind of work, by its id in ledgers of iterations."""


def noun_of(bottleneck: str) -> str:
    """A bottleneck inside a sentence; one of a later version stands for itself."""
    return _SHOWN[bottleneck].noun if bottleneck in _SHOWN else bottleneck.replace("_", " ")


def title_of(bottleneck: str) -> str:
    """A bottleneck as a label; one of a later version stands for itself."""
    return _SHOWN[bottleneck].title if bottleneck in _SHOWN else bottleneck.replace("_", " ")


def takes_of(bottleneck: str) -> str:
    """What begins a headline about a bottleneck, before its share."""
    return _SHOWN[bottleneck].takes


def shown(bottleneck: str) -> Bottleneck | None:
    """What a bottleneck is shown as; None for one of a later version."""
    return _SHOWN.get(bottleneck)


def promised(bottleneck: str) -> bool:
    """Whether a fix of the program can save time that is charged to this bottleneck."""
    return bottleneck not in BOTTLENECKS or BOTTLENECKS[bottleneck].promised
