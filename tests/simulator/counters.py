"""The GPU's own counters: what they would have shown of a simulation, sampled as nsys samples them.

kernels    |== gemm 90% ===|     |= copy 40% ==|
samples   [----)[----)[----)[----)[----)[----)[----)     each the average over the interval that ends at its time
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.builder import TraceBuilder
    from tests.simulator.device import Gpu

CLOCK = "GPC Clock Frequency [MHz]"
SHORT_PAUSE = 50 * US
"""No clock goes down in less."""
NEVER = 1 << 62
Span = tuple[int, int]


@dataclass
class Course:
    """A value over time: `levels` are (start, end, value), in order and apart; `otherwise` holds in between."""

    levels: list[tuple[int, int, float]]
    otherwise: float = 0.0
    _starts: list[int] = field(init=False)
    _above: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._starts = [start for start, _, _ in self.levels]
        extra = ((end - start) * (value - self.otherwise) for start, end, value in self.levels)
        self._above = list(accumulate(extra, initial=0.0))

    def _until(self, time: int) -> float:
        last = bisect_right(self._starts, time) - 1
        if last < 0:
            return 0.0
        start, end, value = self.levels[last]
        return self._above[last] + (min(time, end) - start) * (value - self.otherwise)

    def mean(self, spans: Iterable[Span]) -> float:
        """The average over some times."""
        times = list(spans)
        length = sum(end - start for start, end in times)
        return self.otherwise + sum(self._until(end) - self._until(start) for start, end in times) / length


@dataclass
class Counters:
    """`activity`: per cent by the name of a metric, then of a kernel; `clock` in Hz by kernel time: (from, Hz), the
    last that has begun; `idle_clock` while nothing runs. `foreign` is what GPUs that the program leaves alone show."""

    activity: dict[str, dict[str, float]]
    clock: list[tuple[int, int]]
    idle_clock: int
    foreign: dict[str, float]
    period: int = 100 * US
    first: int = 37 * US

    def course(self, metric: str, gpu: Gpu) -> Course:
        """What a metric really was on a GPU at each moment."""
        if not gpu.ops:
            return Course([], self.foreign.get(metric, 0.0))
        ops = sorted((op.start, op.end, op.name) for op in gpu.ops if op.kind == "kernel")
        if metric == CLOCK:
            spans = _without_pauses([(start, end) for start, end, _ in ops], SHORT_PAUSE)
            cuts = [
                (max(start, since), min(end, until), hertz)
                for start, end in spans
                for since, until, hertz in self._eras()
            ]
            return Course([cut for cut in cuts if cut[0] < cut[1]], self.idle_clock)
        by_name = self.activity[metric]
        return Course([(start, end, by_name[name]) for start, end, name in ops])

    def _eras(self) -> list[tuple[int, int, int]]:
        begins = [since for since, _ in self.clock]
        return [(since, until, hertz) for (since, hertz), until in zip(self.clock, [*begins[1:], NEVER], strict=True)]

    def write(self, trace: TraceBuilder, gpus: list[Gpu], end: int) -> None:
        """Sample all metrics of all GPUs up to `end`, in whole per cent and whole Hz, as nsys writes them."""
        if not trace.knows("GPU_METRICS"):
            return
        times = range(self.first + self.period, end, self.period)
        for gpu in gpus:
            for metric in (*self.activity, CLOCK):
                course = self.course(metric, gpu)
                samples = [(time, round(course.mean([(time - self.period, time)]))) for time in times]
                trace.gpu_metric(metric, samples, gpu=gpu.number)


def _without_pauses(spans: list[Span], shortest: int) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start - joined[-1][1] < shortest:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
