"""Where in the program a gap comes from.

The gaps are those of `late`: [110_000, 300_000), the host's part until the launch at 280_000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.trace.trace import Trace
from tests.builder import MAIN, TraceBuilder
from tests.causes.example import NEIGHBOUR, first, issued, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.report import CallSite
    from nsysdiag.trace.columns import Columns

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
PYTHON = "/usr/lib/libpython3.11.so.1.0"
READ = [("read", LIBC), "load", "main"]


def site(trace: TraceBuilder, folder: Path) -> CallSite | None:
    (gap,) = only_device(trace, folder).gaps
    return gap.call_site


def symbols(found: CallSite | None) -> list[str]:
    assert found is not None
    return [frame.symbol for frame in found.frames]


def launched(trace: TraceBuilder, chain: Sequence[str | tuple[str, str]]) -> TraceBuilder:
    """B at 300_000, its launch call [280_000, 290_000) with a call chain."""
    trace.api("cudaLaunchKernel", 280_000, 290_000, correlation=500, chain=chain)
    return trace.kernel(300_000, 400_000, correlation=500)


class TestCalls:
    def test_a_cuda_call(self, tmp_path: Path) -> None:
        """
        thread   [cudaStreamSynchronize: wait_all <- main]   [launch B]
        """
        chain = [("0x7f", "/usr/lib/libcuda.so.1"), "cudaStreamSynchronize", "wait_all", "main"]
        found = site(late().api("cudaStreamSynchronize", 120_000, 270_000, chain=chain), tmp_path)
        assert symbols(found) == ["wait_all", "main"]
        assert found is not None
        assert (found.source, found.chains, found.of, found.own, found.launch) == ("cuda", 1, 1, True, False)

    def test_an_os_call(self, tmp_path: Path) -> None:
        found = site(late().osrt("read", 120_000, 270_000, chain=READ), tmp_path)
        assert symbols(found) == ["load", "main"]
        assert found is not None
        assert found.source == "osrt"
        assert {frame.module for frame in found.frames} == {"app"}

    def test_the_longest_call_of_the_cause(self, tmp_path: Path) -> None:
        """
        thread   [read: head][==== read: body ====][== sync: wait ==]       input and output: 90 µs, sync: 60 µs
        """
        trace = late().osrt("read", 120_000, 140_000, chain=[("read", LIBC), "head", "main"])
        trace.osrt("read", 140_000, 210_000, chain=[("read", LIBC), "body", "main"])
        trace.api("cudaStreamSynchronize", 210_000, 270_000, chain=["wait", "main"])
        assert symbols(site(trace, tmp_path)) == ["body", "main"]

    def test_a_longer_call_of_a_lesser_cause_tells_nothing(self, tmp_path: Path) -> None:
        """
        thread   [poll][poll][poll: 40 µs each]   [== sync: wait, 50 µs ==]       poll is the cause, by 120 µs
        """
        trace = late().api("cudaStreamSynchronize", 225_000, 275_000, chain=["wait", "main"])
        for number, start in enumerate((111_000, 147_000, 183_000)):
            trace.osrt("poll", start, start + 36_000, chain=[("poll", LIBC), f"turn{number}", "main"])
        assert symbols(site(trace, tmp_path))[0] in ("turn0", "turn1", "turn2")

    def test_of_nested_calls_the_one_with_a_chain(self, tmp_path: Path) -> None:
        """
        thread   [cudaFree, no chain         ]
                   [cuMemFree: release <- main]
        """
        trace = late().api("cudaFree", 120_000, 270_000)
        trace.api("cuMemFree_v2", 121_000, 269_000, chain=["cuMemFree_v2", "cudaFree", "release", "main"])
        assert symbols(site(trace, tmp_path)) == ["release", "main"]

    def test_another_thread_tells_nothing(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 120_000, 270_000).osrt("read", 120_000, 270_000, thread=NEIGHBOUR, chain=READ)
        assert site(trace, tmp_path) is None

    def test_a_call_after_the_gap_tells_nothing(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 120_000, 270_000).osrt("read", 310_000, 380_000, chain=READ)
        assert site(trace, tmp_path) is None

    def test_no_chain_was_recorded(self, tmp_path: Path) -> None:
        assert site(late().osrt("read", 120_000, 270_000), tmp_path) is None

    def test_the_chain_is_not_in_the_trace(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 120_000, 270_000, chain=READ)
        trace.call_chain("OSRT_CALLCHAINS", ["other"], 9)
        assert site(trace.drop_table("OSRT_CALLCHAINS"), tmp_path) is None

    def test_an_id_that_no_chain_has(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 120_000, 270_000)
        trace.call_chain("OSRT_CALLCHAINS", ["other"], 9)
        assert site(trace, tmp_path) is None

    def test_libraries_alone(self, tmp_path: Path) -> None:
        """A Python program: everything on its stack is the interpreter's."""
        chain = [("read", LIBC), ("os_read", PYTHON), ("_PyEval_EvalFrameDefault", PYTHON), ("Py_RunMain", PYTHON)]
        found = site(late().osrt("read", 120_000, 270_000, chain=chain), tmp_path)
        assert symbols(found) == ["read"]
        assert found is not None
        assert not found.own


class TestSamples:
    def test_host_code(self, tmp_path: Path) -> None:
        """
        thread   . norm <- solve   . norm <- solve   . read <- load     solve is what most have in common
        """
        trace = late().sched(500, True)
        for time, chain in (
            (130_000, ["norm", "solve", "main"]),
            (160_000, [("sqrt", "/usr/lib/libm.so.6"), "scale", "solve", "main"]),
            (190_000, ["norm", "solve", "main"]),
            (220_000, ["scale", "solve", "main"]),
        ):
            trace.sample(time, symbols=chain)
        found = site(trace, tmp_path)
        assert symbols(found) == ["norm", "solve", "main"]
        assert found is not None
        assert (found.source, found.chains, found.of) == ("sampling", 2, 4)

    def test_the_place_that_half_of_them_share(self, tmp_path: Path) -> None:
        trace = late().sched(500, True)
        for number in range(5):
            trace.sample(130_000 + 20_000 * number, symbols=[f"step{number}", "solve", "main"])
        found = site(trace, tmp_path)
        assert symbols(found) == ["solve", "main"]
        assert found is not None
        assert (found.chains, found.of) == (5, 5)

    def test_a_waiting_thread_may_be_sampled_too(self, tmp_path: Path) -> None:
        """No chain of the call itself: the samples inside it tell."""
        trace = late().api("cudaStreamSynchronize", 120_000, 270_000)
        trace.sample(150_000, symbols=[("0x7f", "/usr/lib/libcuda.so.1"), "cudaStreamSynchronize", "wait_all", "main"])
        found = site(trace, tmp_path)
        assert symbols(found) == ["wait_all", "main"]
        assert found is not None
        assert found.source == "sampling"

    def test_samples_outside_the_cause_tell_nothing(self, tmp_path: Path) -> None:
        trace = late().osrt("read", 120_000, 270_000)
        trace.sample(60_000, symbols=["before", "main"]).sample(350_000, symbols=["after", "main"])
        trace.sample(200_000, symbols=["elsewhere"], thread=NEIGHBOUR)
        assert site(trace, tmp_path) is None

    def test_only_their_chains_are_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of 1,003 samples three lie in the gap: the functions of the others are not read."""
        trace = late().sched(500, True)
        for number in range(500):
            trace.sample(12_000 + 150 * number, symbols=["before"])
            trace.sample(310_000 + 150 * number, symbols=["after"])
        for time in (150_000, 200_000, 250_000):
            trace.sample(time, symbols=["solve", "main"])
        asked: list[int] = []
        given: list[int] = []
        real = Trace.read_chosen

        def counted(self: Trace, table: str, key: str, ids: Sequence[int], *columns: str) -> Columns:
            rows = real(self, table, key, ids, *columns)
            if table == "SAMPLING_CALLCHAINS" and "symbol" in columns:
                asked.extend(ids)
                given.append(len(rows))
            return rows

        monkeypatch.setattr(Trace, "read_chosen", counted)
        assert symbols(site(trace, tmp_path)) == ["solve", "main"]
        assert set(asked) == {1_001, 1_002, 1_003}
        assert max(given) == 3 * len(["solve", "main"])


class TestLaunches:
    def test_device_side_causes_have_the_launch(self, tmp_path: Path) -> None:
        """The host was ahead: whatever the thread does in the gap is about later work."""
        trace = first().osrt("read", 112_000, 140_000, chain=READ)
        trace.api("cudaLaunchKernel", 6_000, 9_000, correlation=500, chain=["cudaLaunchKernel", "step", "main"])
        found = site(trace.kernel(150_000, 250_000, correlation=500), tmp_path)
        assert symbols(found) == ["step", "main"]
        assert found is not None
        assert found.launch

    def test_no_launch_chain(self, tmp_path: Path) -> None:
        assert site(issued().osrt("read", 112_000, 140_000, chain=READ), tmp_path) is None

    def test_the_launch_where_the_cause_has_none(self, tmp_path: Path) -> None:
        trace = launched(first(), ["cudaLaunchKernel", "step", "main"]).osrt("read", 120_000, 270_000)
        found = site(trace, tmp_path)
        assert symbols(found) == ["step", "main"]
        assert found is not None
        assert found.launch

    def test_the_cause_comes_before_the_launch(self, tmp_path: Path) -> None:
        trace = launched(first(), ["cudaLaunchKernel", "step", "main"]).osrt("read", 120_000, 270_000, chain=READ)
        found = site(trace, tmp_path)
        assert symbols(found) == ["load", "main"]
        assert found is not None
        assert not found.launch


class TestSignatures:
    @staticmethod
    def repeated(count: int) -> TraceBuilder:
        """A kernel of 100 µs every 300 µs, launched 10 µs before it starts: gaps of 200 µs, 180 of them the host's."""
        trace = TraceBuilder().sched(0, True)
        for number in range(count):
            start = 100_000 + 300_000 * number
            trace.kernel(start, start + 100_000, launch=(start - 20_000, start - 10_000))
        return trace

    def test_all_gaps_together(self, tmp_path: Path) -> None:
        """
        gap 0   . sum <- a <- main      . _PyEval..
        gap 1   . sum <- b <- main      . gc_collect_main
        gap 2   . sum <- c <- main      . gc_collect_main
        """
        trace = self.repeated(4)
        leaves = ("_PyEval_EvalFrameDefault", "gc_collect_main", "gc_collect_main")
        for number, (caller, leaf) in enumerate(zip("abc", leaves, strict=True)):
            start = 200_000 + 300_000 * number
            trace.sample(start + 50_000, symbols=["sum", caller, "main"])
            trace.sample(start + 100_000, symbols=[(leaf, PYTHON), ("Py_RunMain", PYTHON)])
        device = only_device(trace, tmp_path)
        (row,) = device.signatures
        assert [(each.symbol, each.kind, each.share) for each in row.host_code] == [
            ("sum", "program", 0.5),
            ("gc_collect_main", "garbage collector", 0.3333),
            ("_PyEval_EvalFrameDefault", "interpreter", 0.1667),
        ]
        assert symbols(row.call_site) == ["main"]
        assert row.call_site is not None
        assert (row.call_site.chains, row.call_site.of) == (3, 6)
        assert [symbols(gap.call_site)[1] for gap in sorted(device.gaps, key=lambda gap: gap.start_ns)] == [
            "a",
            "b",
            "c",
        ]

    def test_no_host_code_where_something_else_leads(self, tmp_path: Path) -> None:
        trace = late().api("cudaStreamSynchronize", 120_000, 270_000).sample(150_000, symbols=["spin", "main"])
        (row,) = only_device(trace, tmp_path).signatures
        assert row.cause == "sync"
        assert row.host_code == []
        assert symbols(row.call_site) == ["spin", "main"]

    def test_nothing_is_recorded(self, tmp_path: Path) -> None:
        (row,) = only_device(self.repeated(3), tmp_path).signatures
        assert row.call_site is None
        assert row.host_code == []

    def test_more_samples_than_are_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ten of the forty, evenly spread: both halves of the gaps have their part."""
        monkeypatch.setattr("nsysdiag.stacks.call_sites.MOST_CHAINS", 10)
        trace = self.repeated(5)
        for number in range(4):
            for part in range(10):
                time = 205_000 + 300_000 * number + 15_000 * part
                trace.sample(time, symbols=["early" if number < 2 else "late", "main"])
        (row,) = only_device(trace, tmp_path).signatures
        assert [(each.symbol, each.share) for each in row.host_code] == [("early", 0.5), ("late", 0.5)]
        assert row.call_site is not None
        assert row.call_site.of == 10

    def test_more_gaps_than_chains_are_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two chains for six gaps: the two longest have their place."""
        monkeypatch.setattr("nsysdiag.stacks.call_sites.MOST_CHAINS", 2)
        trace, start = TraceBuilder().sched(0, True), 100_000
        for number in range(7):
            trace.kernel(start, start + 10_000, launch=(start - 20_000, start - 10_000))
            trace.sample(start + 30_000, symbols=["solve", "main"])
            start += 100_000 + 10_000 * number
        gaps = only_device(trace, tmp_path, Settings(gaps=0)).gaps
        assert len(gaps) == 6
        assert [gap.call_site is not None for gap in gaps] == [True, True, False, False, False, False]


def test_threads_of_two_gaps(tmp_path: Path) -> None:
    """
    device           [==A==)......[==B==).........[==C==)
    MAIN                   [read: load ][B]
    NEIGHBOUR                             [read: feed][C]
    """
    trace = late().osrt("read", 120_000, 270_000, chain=READ)
    trace.kernel(600_000, 700_000, launch=(580_000, 590_000), thread=NEIGHBOUR)
    trace.osrt("read", 410_000, 570_000, thread=NEIGHBOUR, chain=[("read", LIBC), "feed", "worker"])
    trace.osrt("read", 405_000, 575_000, thread=MAIN, chain=[("read", LIBC), "later", "main"])
    gaps = sorted(only_device(trace, tmp_path).gaps, key=lambda gap: gap.start_ns)
    assert [symbols(gap.call_site) for gap in gaps] == [["load", "main"], ["feed", "worker"]]


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    """To make them safe is for the output."""
    odd = "<b>[/red]|`\x1b[31m"
    found = site(late().osrt("read", 120_000, 270_000, chain=[(odd, f"/home/me/{odd}"), "main"]), tmp_path)
    assert symbols(found)[0] == odd
