"""What a profiler was asked to record: each switch is a kind of evidence that can be left out."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Capture:
    """`graphs`: node, graph or none (launches that leave no operation at all). `osrt_threshold` in ns. Without
    `sync_device` synchronizations name device 0 whatever context they wait for, as real exports do. Operations whose
    name begins with `lost` have no row."""

    schema: str = "3.24.8"
    api: bool = True
    osrt: bool = True
    sched: bool = True
    samples: bool = True
    nvtx: bool = True
    overhead: bool = True
    sync_rows: bool = True
    sync_device: bool = True
    event_rows: bool = True
    context_switches: bool = True
    libraries: bool = True
    gpu_metrics: bool = True
    graphs: str = "node"
    lost: str = ""
    osrt_threshold: int = 1_000
    sampling_period: int = 1_000_000
    idle_loop: bool = False

    def but(self, **changes: bool | int | str) -> Capture:
        """The same with some switches set otherwise."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def version(self) -> tuple[int, ...]:
        """The export schema version as numbers; (0,) for the schemas before there were versions."""
        return (0,) if self.schema == "2020" else tuple(int(part) for part in self.schema.split("."))

    def records_overhead(self, kind: str) -> bool:
        """Whether such overhead leaves a row: before 3.24 only PROFILER_OVERHEAD exists, which knows no full queue."""
        return self.overhead and (self.version >= (3, 24) or kind not in {"buffer_full", "jit"})

    @property
    def graph_rows(self) -> str:
        """How graph launches show: before 3.7 there is no table for whole graphs."""
        return "none" if self.graphs == "graph" and self.version < (3, 7) else self.graphs


EVERYTHING = Capture()
CUDA_ONLY = Capture(osrt=False, sched=False, samples=False)
