"""Python stacks out of the marks that nsys writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.events.callchains import Origin
from nsysdiag.events.nvtx import read_ranges
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.events.samples import PythonStacks, decoded, named_in, renumbered
from nsysdiag.trace.trace import open_trace
from tests.builder import MAIN, TraceBuilder, global_tid
from tests.causes.example import NEIGHBOUR, STRANGER, first, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import CallSite
    from nsysdiag.trace.columns import Strings
    from tests.builder import ThreadId

SCHEMA = "3.17.2"
SAMPLER: ThreadId = (4242, 4299)
"""The thread of the profiler that takes the samples of the process."""
TRAIN = "/home/me/train.py"
THREADING = "/usr/lib/python3.11/threading.py"
STEP = [("load", TRAIN, 8), ("step", TRAIN, 14), ("&lt;module&gt;", TRAIN, 20)]
WORK = [("work", TRAIN, 30), ("run", THREADING, 982), ("_bootstrap", THREADING, 1002)]

CAPTURED = (
    "010000000100000003000000f97f0000"
    "ac00000000000000a4000000000000000f000000fd030000"
    "8e00000000000000a4000000000000001300000000000000"
    "8f00000000000000a4000000000000001400000000000000"
)
"""A payload that nsys 2023.4.4 recorded with --python-sampling: train_step at line 15, main at 19, the module at 20."""
CAPTURED_NAMES = {172: "train_step", 142: "main", 143: "&lt;module&gt;", 164: "/home/me/prog.py"}


class Names:
    """The strings of the capture."""

    def known(self, number: int) -> bool:
        return number in CAPTURED_NAMES

    def texts(self, numbers: list[int]) -> list[str]:
        return [CAPTURED_NAMES[number] for number in numbers]


def names() -> Strings:
    return Names()  # type: ignore[return-value]


def wrapped(payload: str) -> str:
    """A payload behind the header that exports put before it."""
    return "00" * 32 + payload


class TestDecoding:
    def test_a_captured_payload(self) -> None:
        frames = decoded(wrapped(CAPTURED), names())
        assert [(frame.symbol, frame.module, frame.line) for frame in frames] == [
            ("train_step", "prog.py", 15),
            ("main", "prog.py", 19),
            ("<module>", "prog.py", 20),
        ]
        assert all(frame.python and frame.origin is Origin.PROGRAM for frame in frames)

    def test_other_ids_in_a_payload(self) -> None:
        payload = bytes.fromhex(wrapped(CAPTURED))
        made = renumbered(payload, lambda function: function + 1000, lambda file: file + 2000)
        assert named_in(payload) == [172, 142, 143, 164, 164, 164]
        assert made is not None
        assert named_in(made) == [1172, 1142, 1143, 2164, 2164, 2164]

    @pytest.mark.parametrize("payload", ["", wrapped(""), wrapped(CAPTURED[:-2]), wrapped(CAPTURED[:-48])])
    def test_no_other_ids_in_what_is_no_stack(self, payload: str) -> None:
        assert named_in(bytes.fromhex(payload)) == []
        assert renumbered(bytes.fromhex(payload), int, int) is None

    def test_the_count_in_the_other_place(self) -> None:
        moved = "0100000001000000ffff000003000000" + CAPTURED[32:]
        assert len(decoded(wrapped(moved), names())) == 3

    @pytest.mark.parametrize(
        "payload",
        [
            "",
            "no hexadecimal",
            "00",
            wrapped(""),
            wrapped(CAPTURED[:32]),
            # A frame less, and a byte less, than the count says.
            wrapped(CAPTURED[:-48]),
            wrapped(CAPTURED[:-2]),
            wrapped(CAPTURED + "00" * 24),
            # An id that is no string.
            wrapped(CAPTURED.replace("ac00", "ffff")),
            # NCCL: a communicator and a size.
            wrapped("0807060504030201" + "0010000000000000"),
        ],
    )
    def test_what_is_no_stack(self, payload: str) -> None:
        assert decoded(payload, names()) == ()


def site(trace: TraceBuilder, folder: Path) -> CallSite | None:
    (gap,) = only_device(trace, folder).gaps
    return gap.call_site


def lines(found: CallSite | None) -> list[tuple[str, str, int | None]]:
    assert found is not None
    assert found.source == "python"
    return [(frame.symbol, frame.module, frame.line) for frame in found.frames]


def computing() -> TraceBuilder:
    return late(schema=SCHEMA).sched(500, True).python_domain()


class TestSites:
    def test_samples_of_the_main_thread(self, tmp_path: Path) -> None:
        """
        MAIN      ------- host code -------[launch B]
        SAMPLER     . load:8      . load:9              step:14, the module:20
        """
        trace = computing()
        trace.python_stack(150_000, STEP, thread=SAMPLER)
        trace.python_stack(180_000, STEP, thread=SAMPLER)
        trace.python_stack(210_000, [("load", TRAIN, 9), *STEP[1:]], thread=SAMPLER)
        found = site(trace, tmp_path)
        assert lines(found) == [("load", "train.py", 8), ("step", "train.py", 14), ("<module>", "train.py", 20)]
        assert found is not None
        assert (found.chains, found.of) == (3, 3)

    def test_libraries_are_left_out(self, tmp_path: Path) -> None:
        library = "/venv/lib/python3.11/site-packages/torch/utils/data.py"
        trace = computing().python_stack(150_000, [("__next__", library, 630), *STEP], thread=SAMPLER)
        assert lines(site(trace, tmp_path))[0] == ("load", "train.py", 8)

    def test_another_python_thread_is_told_apart_by_its_category(self, tmp_path: Path) -> None:
        trace = computing()
        for time in (150_000, 180_000, 210_000):
            trace.python_stack(time, WORK, thread=SAMPLER, category=2)
            trace.python_stack(time + 1, STEP, thread=SAMPLER)
        found = site(trace, tmp_path)
        assert lines(found)[0][0] == "load"
        assert found is not None
        assert found.of == 3

    def test_nobody_says_which_of_two_is_the_main_thread(self, tmp_path: Path) -> None:
        """A thread that C++ code made and that entered Python does not begin in threading.py."""
        trace = computing().python_stack(150_000, STEP, thread=SAMPLER)
        trace.python_stack(150_001, [("callback", TRAIN, 50)], thread=SAMPLER, category=2)
        assert site(trace, tmp_path) is None

    def test_samples_tell_nothing_of_other_launching_threads(self, tmp_path: Path) -> None:
        trace = first(SCHEMA).kernel(300_000, 400_000, launch=(280_000, 290_000), thread=NEIGHBOUR)
        trace.sched(500, True, thread=NEIGHBOUR).python_domain().python_stack(150_000, STEP, thread=SAMPLER)
        assert site(trace, tmp_path) is None

    def test_another_process(self, tmp_path: Path) -> None:
        trace = computing().python_domain(pid=STRANGER[0])
        assert site(trace.python_stack(150_000, STEP, thread=(STRANGER[0], 5099)), tmp_path) is None

    @pytest.mark.parametrize("time", [100_000, 310_000])
    def test_outside_the_gap(self, time: int, tmp_path: Path) -> None:
        assert site(computing().python_stack(time, STEP, thread=SAMPLER), tmp_path) is None

    def test_a_back_trace_of_a_call_in_the_gap(self, tmp_path: Path) -> None:
        """
        MAIN      [cudaStreamSynchronize .]     the mark is on the thread itself
        """
        trace = late(schema=SCHEMA).python_domain().api("cudaStreamSynchronize", 120_000, 270_000)
        assert lines(site(trace.python_stack(121_000, STEP, thread=MAIN), tmp_path))[0][0] == "load"

    def test_a_back_trace_of_the_launch(self, tmp_path: Path) -> None:
        trace = late(schema=SCHEMA).python_domain().osrt("read", 112_000, 278_000)
        found = site(trace.python_stack(281_000, STEP, thread=MAIN), tmp_path)
        assert lines(found)[0][0] == "load"
        assert found is not None
        assert found.launch

    def test_a_launch_long_before_the_work(self, tmp_path: Path) -> None:
        """
        MAIN    [first][launch]                      stacks of both calls, 9 ms before the first operation
        device                    [==A==)....[==B==)
        """
        trace = TraceBuilder(schema=SCHEMA).python_domain().nvtx("step", 290_000, 600_000)
        for at, function in enumerate(("prepare", "train")):
            called, begun = 100_000 + 200_000 * at, 9_500_000 + 400_000 * at
            trace.kernel(begun, begun + 100_000, launch=(called, called + 5_000))
            trace.python_stack(called + 500, [(function, TRAIN, 4), *STEP[1:]])
        (gap,) = only_device(trace, tmp_path).gaps
        assert lines(gap.call_site)[0][0] == "train"
        assert gap.nvtx == ["step"]

    def test_python_says_more_than_the_stack_of_its_interpreter(self, tmp_path: Path) -> None:
        trace = computing().python_stack(150_000, STEP, thread=SAMPLER)
        trace.sample(151_000, symbols=["_PyEval_EvalFrameDefault"], module="/usr/lib/libpython3.11.so")
        (row,) = only_device(trace, tmp_path).signatures
        assert lines(row.call_site)[0][0] == "load"
        assert [each.symbol for each in row.host_code] == ["_PyEval_EvalFrameDefault"]

    def test_without_payloads(self, tmp_path: Path) -> None:
        """The usual export: marks without what they hold."""
        trace = computing()
        row = {"start": 150_000, "eventType": 34, "globalTid": global_tid(SAMPLER), "domainId": 7, "category": 1}
        assert site(trace.row("NVTX_EVENTS", dict(row)), tmp_path) is None

    def test_an_export_without_the_column(self, tmp_path: Path) -> None:
        trace = late().sched(500, True).python_domain()
        row = {"start": 150_000, "eventType": 34, "globalTid": global_tid(SAMPLER), "domainId": 7, "category": 1}
        assert site(trace.row("NVTX_EVENTS", dict(row)), tmp_path) is None


def test_payloads_are_read_for_the_marks_asked_for(tmp_path: Path) -> None:
    trace = TraceBuilder(schema=SCHEMA).python_domain()
    for number in range(50):
        trace.python_stack(1_000 * number, [(f"f{number}", TRAIN, number + 1)], thread=MAIN)
    with open_trace(trace.write(tmp_path / "trace.sqlite", shuffle_seed=1)) as opened:
        stacks = PythonStacks(opened, read_ranges(opened).python)
        _, marks = stacks.on_axis(ThreadAxis.over(stacks.marks.thread, 0, 100_000))
        found = stacks.stacks(marks[[3, 40]])
    assert sorted(stack.frames[0].symbol for stack in found.values()) == ["f3", "f40"]
