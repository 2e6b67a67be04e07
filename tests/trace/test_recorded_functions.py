"""Operators and Python functions of a profiler's trace: they say what the launching thread did."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze, whatif
from nsysdiag.causes import CAUSES
from nsysdiag.replay.facts import Transform
from nsysdiag.share.cut import SliceCut
from nsysdiag.share.redaction import redacted
from nsysdiag.trace.kineto.functions import Recorded, stretches
from tests.share.slice.cutting import cut_file
from tests.trace.kineto_traces import write

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

ACQUIRE = "<built-in method acquire of _thread.lock object at 0x7f00>"
STEP_US, KERNEL_US, LAUNCH_US, STEPS = 1_000, 300, 10, 40


def found(*recorded: tuple[int, int, str, bool]) -> list[tuple[int, int, str, bool]]:
    return [tuple(each) for each in stretches([Recorded(*each) for each in recorded])]


def test_the_innermost_function_counts() -> None:
    assert found((0, 100, "/a/model.py(7): forward", False), (20, 40, "/b/nn.py(9): linear", False)) == [
        (0, 20, "model.forward:7", False),
        (20, 40, "nn.linear:9", False),
        (40, 100, "model.forward:7", False),
    ]


def test_an_operator_speaks_for_the_functions_inside_it() -> None:
    inside = (30, 50, "/b/ops.py(3): moe", False)
    assert found((0, 100, "/a/model.py(7): forward", False), (20, 60, "vllm::moe", True), inside) == [
        (0, 20, "model.forward:7", False),
        (20, 60, "vllm::moe", False),
        (60, 100, "model.forward:7", False),
    ]


def test_built_in_functions_count_for_their_callers_unless_they_wait() -> None:
    functions = (0, 100, "/a/data.py(7): get", False), (10, 20, "<built-in function len>", False)
    assert found(*functions, (50, 90, ACQUIRE, False)) == [
        (0, 50, "data.get:7", False),
        (50, 90, "lock.acquire", True),
        (90, 100, "data.get:7", False),
    ]
    assert found((0, 9, "<built-in method get of dict object at 0x1>", False)) == []


@pytest.mark.parametrize("seed", range(30))
def test_stretches_are_what_runs_last(seed: int) -> None:
    """Nested functions of chance: at each moment the innermost one with a name, by a slow walk."""
    rng = random.Random(seed)
    recorded: list[Recorded] = []

    def nest(start: int, end: int, depth: int) -> None:
        while start < end - 2 and depth < 5:
            begin = rng.randint(start, end - 2)
            until = rng.randint(begin + 1, end)
            kind = rng.random()
            name = f"/a/m.py({depth}): f{rng.randint(0, 2)}" if kind < 0.5 else ACQUIRE if kind < 0.6 else "op"
            recorded.append(Recorded(begin, until, name, operator=name == "op"))
            nest(begin, until, depth + 1)
            start = until

    nest(0, 200, 0)

    def named(time: int) -> str | None:
        around = [each for each in recorded if each.start <= time < each.end]
        operators = [at for at, each in enumerate(around) if each.operator]
        if around and around[-1].name == ACQUIRE:
            return "lock.acquire"
        if operators:
            waits = [at for at, each in enumerate(around) if each.name == ACQUIRE and at > operators[-1]]
            return "lock.acquire" if waits else "op"
        return None if not around else around[-1].name

    rng.shuffle(recorded)
    recorded.sort(key=lambda each: (each.start, -each.end))
    result = list(stretches(recorded))
    assert all(a.end <= b.start for a, b in itertools.pairwise(result))
    for time in range(200):
        mine = [each.name for each in result if each.start <= time < each.end]
        expected = named(time)
        if expected is None:
            assert mine == []
        elif "/a/m.py" not in expected:
            assert mine == [expected]
        else:
            assert len(mine) == 1


def loop(*inside: tuple[str, str, int, int]) -> dict[str, Any]:
    """A training loop: in each step a kernel is launched, the rest of the step is host time. `inside`: category, name,
    begin and length in µs in each step."""
    events: list[dict[str, Any]] = []
    thread = {"pid": 7, "tid": 7, "ph": "X"}
    for step in range(STEPS):
        at = step * STEP_US
        args = {"correlation": step + 1}
        place = {"device": 0, "context": 1, "stream": 7, "grid": [99, 1, 1], "block": [128, 1, 1]}
        launch_at = at + STEP_US - LAUNCH_US
        events += [
            {**thread, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": STEP_US},
            {**thread, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch_at, "dur": 8, "args": args},
            {
                **thread,
                "cat": "kernel",
                "name": "gemm",
                "ts": launch_at + 9,
                "dur": KERNEL_US,
                "args": {**args, **place},
            },
            *({**thread, "cat": cat, "name": name, "ts": at + begin, "dur": ns} for cat, name, begin, ns in inside),
        ]
    return {"schemaVersion": 1, "traceEvents": events}


def report_of(folder: Path, *inside: tuple[str, str, int, int]) -> Report:
    return analyze(write(loop(*inside), folder / "a.pt.trace.json"))


def shares(report: Report) -> dict[str, float]:
    device = report.devices[0]
    return {cause: ns / device.idle_ns for cause, ns in device.ledger.items() if ns}


@pytest.mark.slow
def test_host_code_is_named_by_operators_and_functions(tmp_path: Path) -> None:
    assert max(shares(plain := report_of(tmp_path)), key=shares(plain).__getitem__) == "uncovered"
    forward, mm = ("python_function", "/a/model.py(7): forward", 0, 990), ("cpu_op", "aten::mm", 350, 600)
    report = report_of(tmp_path, forward, mm)
    assert shares(report)["host_compute"] > 0.95
    finding = next(each for each in report.findings if each.cause == "host_compute")
    assert finding.call == "aten::mm"
    assert any(line.startswith("recorded functions: aten::mm 86.8%") for line in finding.evidence)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (ACQUIRE, "lock_wait"),
        ("<built-in method get of _queue.SimpleQueue object at 0x7f>", "lock_wait"),
        ("<built-in function sleep>", "sleep"),
        ("<built-in method recv_into of _socket.socket object at 0x7f>", "io_wait"),
        ("<built-in method poll of select.poll object at 0x7f>", "io_wait"),
        ("<built-in method readinto of _io.FileIO object at 0x7f>", "io_wait"),
        ("<built-in method get of dict object at 0x7f>", "host_compute"),
    ],
)
def test_built_in_functions_that_wait(function: str, cause: str, tmp_path: Path) -> None:
    caller = ("python_function", "/a/data.py(7): fetch", 0, 990)
    report = report_of(tmp_path, caller, ("python_function", function, 320, 660))
    found = shares(report)
    assert max(found, key=found.__getitem__) == cause, (CAUSES[cause].title, found)


@pytest.mark.slow
def test_a_saving_of_host_time_is_a_bound(tmp_path: Path) -> None:
    """Recording slows the host; nobody knows how much of it."""
    trace = write(loop(("cpu_op", "aten::mm", 0, 990)), tmp_path / "a.pt.trace.json")
    finding = next(each for each in analyze(trace).findings if each.cause == "host_compute")
    assert finding.saves is not None
    assert finding.saves.low_ns <= 0 < finding.saves.high_ns
    answer = whatif(trace, [Transform("finding", finding.id)])
    assert any("slows the host" in reason for reason in answer.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, (0, 8)])
def test_the_headline_says_what_recording_adds_and_which_rank_it_is(
    rank: tuple[int, int] | None, tmp_path: Path
) -> None:
    """A part of the trace says it, too. Without functions nothing makes the host slower."""
    forward = ("python_function", "/a/model.py(7): forward", 0, 990)
    more = {} if rank is None else {"distributedInfo": {"rank": rank[0], "world_size": rank[1]}}
    trace = write({**loop(forward), **more}, tmp_path / "a.pt.trace.json")
    cut = cut_file(trace, tmp_path / "part.sqlite", SliceCut(5_000_000, 25_000_000))
    slows, others = "Operators and functions were recorded: this makes the host slower", "The trace holds rank 0 of 8"
    for each in (trace, cut):
        headline = analyze(each).diagnosis.headline
        assert slows in headline
        assert (others in headline) is (rank is not None)
    assert slows not in report_of(tmp_path).diagnosis.headline


def test_names_of_functions_are_redacted(tmp_path: Path) -> None:
    report = report_of(tmp_path, ("python_function", "/home/ann/secret_model.py(7): secret_fn", 0, 990))
    assert "secret" in report.to_json()
    assert "secret" not in redacted(report).to_json()


def operators(count: int, every_us: int) -> dict[str, Any]:
    """A thread that issues an operator with a short kernel each `every_us`."""
    events: list[dict[str, Any]] = []
    thread = {"pid": 7, "tid": 7, "ph": "X"}
    for at in range(count):
        begin, args = at * every_us, {"correlation": at + 1}
        place = {"device": 0, "context": 1, "stream": 7, "grid": [99, 1, 1], "block": [128, 1, 1]}
        launch, kernel = begin + every_us - 9, begin + every_us - 2
        events += [
            {**thread, "cat": "cpu_op", "name": "aten::mul", "ts": begin, "dur": every_us - 3},
            {**thread, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch, "dur": 5, "args": args},
            {**thread, "cat": "kernel", "name": "mul", "ts": kernel, "dur": 10, "args": {**args, **place}},
        ]
    return {"schemaVersion": 1, "traceEvents": events}


@pytest.mark.parametrize(("every_us", "one_by_one"), [(60, True), (2_000, False)])
def test_operators_one_by_one_are_a_variant_of_host_code(every_us: int, one_by_one: bool, tmp_path: Path) -> None:
    report = analyze(write(operators(400, every_us), tmp_path / "a.pt.trace.json"))
    finding = next(each for each in report.findings if each.cause == "host_compute")
    assert ("operators run one by one" in finding.title) is one_by_one
    assert ("longer to run operators one by one" in " ".join(finding.advice)) is one_by_one
