"""Causes and findings before and after a fix: pairs of simulated programs, and what nsysdiag says of both.

`docs/cause-examples.md` has a section for each, which `scripts/update_goldens` writes. The site copies it to the page
of the cause. No figure is typed by hand.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nsysdiag import analyze, whatif
from nsysdiag.arrays.intervals import Intervals, coverage, union
from nsysdiag.replay.facts import text_of
from nsysdiag.units import format_ns, format_share
from tests.replay.pairs import PAIRS, Pair
from tests.replay.pairs.pair import is_of_steps, length, simulated
from tests.replay.pairs.prediction import SETTINGS, transforms
from tests.simulator import EVERYTHING
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.report import Report
    from tests.diagnosis.programs.registry import Marks
    from tests.simulator import Capture, Simulation
    from tests.simulator.device import Gpu, Op


class Example(NamedTuple):
    """A pair of `tests/replay/pairs` by its name, what its program does wrong, and the fix.

    The timelines show so many `steps` of the program before the fix. `seen` is the finding that shows the cause, if the
    cause has none of its own."""

    pair: str
    wrong: str
    fix: str
    steps: float = 2
    seen: str = ""


class Recaptured(NamedTuple):
    """A scenario of `tests/simulator/scenarios` whose trace lacks evidence, the option that brings it, and a capture
    with it."""

    scenario: str
    wrong: str
    option: str
    capture: Capture


class Missing(NamedTuple):
    """Why there is no pair."""

    why: str


EXAMPLES: dict[str, Example | Recaptured | Missing] = {
    "dispatch": Missing("The hardware needs this time between any two operations, and it is short."),
    "unified_memory": Missing("The pairs with page migrations fix other causes."),
    "intra_graph": Missing("The time is inside a graph that the program launches as a whole."),
    "graph_untraced": Recaptured(
        "graph_untraced",
        "the capture has no rows of CUDA graphs",
        "`--cuda-graph-trace=node`",
        SCENARIOS["graph_untraced"].capture.but(graphs="node"),
    ),
    "launch_unknown": Missing("The rows of the launches are lost, and only another capture can have them."),
    "profiler_overhead": Example(
        "the profiler writes in each step", "the profiler saves its buffers in each step", "the buffers are saved later"
    ),
    "exposed_mpi": Example(
        "wait in MPI", "the thread waits in `MPI_Sendrecv` in each step", "the messages are there when they are needed"
    ),
    "host_function": Example(
        "host function between queued kernels",
        "a host function runs between two kernels of a stream",
        "the host function does nothing",
    ),
    "sync": Example(
        "sync after each kernel of 60 µs",
        "the program waits for the device after each kernel, and then computes the next launch",
        "the program does not wait",
        steps=0.5,
    ),
    "blocking_copy": Example(
        "value read back a step later",
        "a blocking `cudaMemcpy` reads a value back at the end of each step",
        "the value is read a step later",
    ),
    "memory_allocation": Example(
        "cudaMalloc in each step", "`cudaMalloc` is called in each step", "the memory is allocated once"
    ),
    "context_init": Example(
        "start without its context",
        "a short program makes its CUDA context",
        "the context exists before",
        seen="before_work",
    ),
    "queue_full": Missing("The host is ahead of the GPU there, so the time is seldom a loss."),
    "module_load": Example(
        "kernel loaded in each step", "a kernel is loaded in each step", "the kernel is loaded before the loop"
    ),
    "graph_build": Example(
        "graph built in each step", "a CUDA graph is built in each step", "the graph is built once and launched again"
    ),
    "cuda_api": Example(
        "time in a library", "a library call takes long before each launch", "the call is taken out of the step"
    ),
    "lock_wait": Example(
        "lock that another thread holds",
        "another thread holds a lock while it computes, and the launching thread needs the lock",
        "the other thread computes without the lock",
    ),
    "io_wait": Example("file read", "the launching thread reads a file in each step", "the file is not read there"),
    "os_memory": Example(
        "memory unmapped", "the launching thread unmaps memory in each step", "the buffer is kept and used again"
    ),
    "sleep": Example("sleep", "the launching thread sleeps in each step", "the thread does not sleep"),
    "off_cpu": Example(
        "core shared with a busy process", "a busy process has the same core", "the core has no other process"
    ),
    "blocked": Recaptured(
        "blocked",
        "the capture has no OS calls",
        "`--trace=cuda,nvtx,osrt`. Half of the time is in a call that nsys does not record. "
        "The second report takes it for a wait for a CPU ([Known limits](limits.md))",
        SCENARIOS["blocked"].capture.but(osrt=True),
    ),
    "host_compute": Example(
        "host code between launches", "the host computes before each launch", "the host only launches"
    ),
    "uncovered": Recaptured(
        "uncovered",
        "the capture has CUDA and NVTX alone",
        "`--trace=cuda,nvtx,osrt --cpuctxsw=process-tree --sample=process-tree`",
        EVERYTHING,
    ),
    "launch_call": Example(
        "graph in place of slow launches",
        "each kernel is shorter than the call that launches it",
        "one CUDA graph launches all kernels of a step",
        steps=0.5,
    ),
    "launch_latency": Example(
        "graph in place of tiny launches",
        "the GPU waits for each of many tiny kernels to arrive",
        "one CUDA graph launches all kernels of a step",
        steps=0.5,
    ),
    "stream_wait": Example(
        "kernel halved of the first GPU in a row",
        "the second GPU waits by an event for a slower kernel of the first",
        "that kernel takes half the time",
    ),
    "stream_barrier": Example(
        "barriers of the legacy default stream",
        "some kernels run on the legacy default stream, and all other streams wait for them",
        "no kernel runs on the legacy default stream",
    ),
    "gpu_context_switch": Missing("The other process is no part of the program."),
    "device_stall": Example(
        "queued kernels that start late", "queued kernels start late for no recorded reason", "they start at once"
    ),
    "data_loading": Example(
        "two workers in place of one", "one worker decodes the batches, and is slower than a step", "two workers decode"
    ),
    "exposed_copy": Example(
        "upload in the stream of the kernels",
        "uploads are in the stream of the kernels, so no kernel runs meanwhile",
        "uploads have a stream of their own",
    ),
    "exposed_comm": Example(
        "exchange shorter than the kernels",
        "gradients are exchanged after all kernels of a step",
        "the exchange overlaps with kernels",
    ),
    "before_work": Example(
        "start before the first work, as its finding says",
        "a short program spends most of its time before its first kernel",
        "what was before the first kernel is gone",
    ),
    "late_rank": Example(
        "slow host of one of two ranks",
        "the host code of one rank is slower, and the other rank waits for it",
        "both ranks are equally fast",
    ),
    "other_gpu": Example(
        "sync between halves on two GPUs",
        "the host waits for one GPU before it launches on the other",
        "the host does not wait",
    ),
    "slow_iterations": Example(
        "checkpoint every tenth step",
        "every tenth step writes a checkpoint",
        "no checkpoint is written",
        steps=12,
    ),
}
WIDTH = 72
"""Characters of a timeline."""
SHOWN, LEAST = 3, 0.005
"""So many causes and findings are named, with this share or more."""
DEVICES = 2
"""So many GPUs have a timeline."""
FULL, PART = 0.75, 0.25
"""From these shares on, a character shows work, and work for a part of its time."""
WORK = {"kernels", "unfused", "single_precision"}
"""Findings on kernels themselves, which the table leaves out."""


def section(name: str) -> str:
    """The text of an example."""
    found = EXAMPLES[name]
    if isinstance(found, Missing):
        return f"The tests have no pair of programs that shows `{name}` before and after a fix. {found.why}"
    with TemporaryDirectory() as folder:
        return recaptured(found, Path(folder)) if isinstance(found, Recaptured) else fixed(found, Path(folder))


class Ran(NamedTuple):
    """A simulated program that has run, and the report about its trace."""

    simulation: Simulation
    marks: Marks
    report: Report


def runs(example: Example, folder: Path) -> tuple[Ran, Ran, Path]:
    """The program before and after the fix, and the trace of the one before."""
    pair, found = PAIRS[example.pair], []
    for side, build in (("before", pair.before), ("after", pair.after)):
        simulation, marks = simulated(build, pair.gpus, pair.capture)
        found.append(Ran(simulation, marks, analyze(simulation.write(folder / f"{side}.sqlite"), SETTINGS)))
    return found[0], found[1], folder / "before.sqlite"


def fixed(example: Example, folder: Path) -> str:
    """A program as it is, and fixed."""
    pair = PAIRS[example.pair]
    before, after, trace = runs(example, folder)
    lengths = [length(each.simulation, each.marks, pair.steps, pair.warm) for each in (before, after)]
    unit = "step" if pair.steps else "run"
    span = round(example.steps * lengths[0] if pair.steps else lengths[0])
    rows = [[f"a {unit}, by the program's own clock", *(format_ns(round(each)) for each in lengths)]]
    saved = f"The fix saves {format_share(lengths[0] - lengths[1], lengths[0])} of a {unit}."
    return "\n\n".join(
        (
            f"Simulated pair “{example.pair}”. Before: {example.wrong}. After: {example.fix}.",
            timelines(pair, before, after, span),
            table(("", "before", "after"), [*rows, *said(before.report, after.report)]),
            f"{saved} {prediction(pair, trace, before.report, unit)}",
        )
    )


def prediction(pair: Pair, trace: Path, report: Report, unit: str) -> str:
    """What the replay of the trace before the fix says."""
    changes = transforms(pair, report)
    command = f"`nsysdiag whatif TRACE {'--finding ID' if pair.finding else text_of(changes)}`"
    found = whatif(trace, changes, SETTINGS)
    if found.refused:
        return f"{command} refuses to predict it: {found.refused}."
    shares = [format_share(found.now_ns - ns, found.now_ns) for ns in (found.predicted_ns, found.high_ns, found.low_ns)]
    return f"From the trace before the fix, {command} predicts {shares[0]} ({shares[1]} to {shares[2]})."


def recaptured(example: Recaptured, folder: Path) -> str:
    """The same program, captured with less and with more."""
    reports = both(example, folder)
    return "\n\n".join(
        (
            f"Simulated scenario `{example.scenario}`, captured twice. In the first trace {example.wrong}. "
            f"The fix is another capture, with {example.option}.",
            table(("", "first trace", "second trace"), said(*reports)),
        )
    )


def both(example: Recaptured, folder: Path) -> list[Report]:
    """The reports about both traces."""
    scenario = SCENARIOS[example.scenario]
    simulation = scenario.run()
    captures = (scenario.capture, example.capture)
    paths = [simulation.write(folder / f"{number}.sqlite", each) for number, each in enumerate(captures)]
    return [analyze(path, SETTINGS) for path in paths]


def said(*reports: Report) -> list[list[str]]:
    """Rows of the table: what the reports say."""
    return [
        ["GPU busy", *(format_share(*busy(each)) for each in reports)],
        ["idle time by cause", *(", ".join(named(ledger(each))) or "–" for each in reports)],
        ["findings", *(", ".join(named(findings(each))) or "–" for each in reports)],
        ["the report begins", *(opening(each) for each in reports)],
    ]


def busy(report: Report) -> tuple[int, int]:
    """Time in which GPUs were not idle, and all of their time, ns."""
    whole = sum(each.window.end_ns - each.window.start_ns for each in report.devices)
    return whole - sum(each.idle_ns for each in report.devices), whole


def ledger(report: Report) -> dict[str, float]:
    """The share of each cause in the time of all GPUs."""
    found: Counter[str] = Counter()
    for device in report.devices:
        found.update(device.ledger)
    return {cause: ns / busy(report)[1] for cause, ns in found.items()}


def findings(report: Report) -> dict[str, float]:
    """The share of the judged time that is charged to the findings of each cause."""
    found: Counter[str] = Counter()
    for each in report.findings:
        if each.cause not in WORK:
            found[each.cause] += each.share
    return dict(found)


def named(shares: dict[str, float]) -> list[str]:
    """The largest of them."""
    largest = sorted(shares, key=lambda each: (-shares[each], each))[:SHOWN]
    return [f"`{each}` {format_share(shares[each], 1)}" for each in largest if shares[each] >= LEAST]


def opening(report: Report) -> str:
    """The first sentence of the headline."""
    return f"{report.diagnosis.headline.replace('#', 'N').partition('. ')[0].rstrip('.')}."


def timelines(pair: Pair, before: Ran, after: Ran, span: int) -> str:
    """The GPUs of both programs in the same span of time, from the middle of the run on."""
    lines = []
    for side, ran in (("before", before), ("after", after)):
        for gpu in ran.simulation.gpus[:DEVICES]:
            name = f"{side}, gpu{gpu.number}" if pair.gpus > 1 else side
            lines.append((name, timeline(gpu, begin(pair, ran, gpu), span)))
    most = max(len(name) for name, _ in lines)
    drawn = "\n".join(f"{name:{most}}  {line}".rstrip() for name, line in lines)
    legend = "`█` kernels, `▓` copies or communication alone, `▒` work for a part of the time, `·` idle"
    return f"```text\n{drawn}\n```\n\n{format_ns(span)} of each: {legend}."


def begin(pair: Pair, ran: Ran, gpu: Gpu) -> int:
    """When a step in the middle begins on a GPU; without steps, when the program does. In ns."""
    if not pair.steps:
        assert ran.marks.start_ns is not None
        return ran.marks.start_ns
    ops = [op for op in gpu.ops if is_of_steps(op) and op.enqueued >= (ran.marks.start_ns or 0)]
    return ops[len(ops) // pair.steps * (pair.steps // 2)].start


def timeline(gpu: Gpu, start: int, span: int) -> str:
    """A character for each part of the span."""
    edges = start + np.arange(WIDTH + 1, dtype=np.int64) * span // WIDTH
    parts = Intervals(edges[:-1], edges[1:])
    kernels = [op for op in gpu.ops if op.kind == "kernel" and op.collective is None]
    shares = [coverage(spans(ops), parts) / np.diff(edges) for ops in (kernels, gpu.ops)]
    return "".join(map(character, *shares))


def spans(ops: Sequence[Op]) -> Intervals:
    """When any of them ran."""
    found = np.array([(op.start, op.end) for op in ops], np.int64).reshape(-1, 2)
    return union(Intervals(found[:, 0], found[:, 1]))


def character(kernels: float, work: float) -> str:
    """What shows these shares of kernels, and of any work."""
    if work < PART:
        return "·"
    if work < FULL:
        return "▒"
    return "█" if 2 * kernels >= work else "▓"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
