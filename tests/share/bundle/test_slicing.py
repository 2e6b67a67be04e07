"""A slice says the same as its trace: the same verdict, the same leading cause, the same gaps."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag import Settings, analyze
from nsysdiag.report import Verdict
from nsysdiag.share import slicing
from nsysdiag.share.bundle import differences
from nsysdiag.share.cut import SliceCut
from nsysdiag.share.slicing import Candidate, SlicePair, TraceSlice, candidates
from nsysdiag.trace.trace import Trace
from tests.builder import TraceBuilder
from tests.levels import some
from tests.output.samples import device
from tests.share.bundle.bundling import assert_gaps_are_those_of_the_trace, sliced
from tests.simulator.fixtures import FIXTURES
from tests.simulator.scenarios import SCENARIOS, scenario

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "fixtures"
MS = 1_000_000


def assert_true(found: TraceSlice, source: Path) -> None:
    """The claims of a slice, read from its file again."""
    again = analyze(found.path, Settings(timeline=False))
    assert [pair.part for pair in found.pairs] == again.devices
    for pair in found.pairs:
        assert pair.part is not None
        assert pair.part.verdict.id == pair.full.verdict.id
        assert_gaps_are_those_of_the_trace(pair)
    assert found.alike
    assert found.path.stat().st_size < source.stat().st_size


@pytest.mark.parametrize("name", FIXTURES)
def test_simulated_fixtures(name: str, tmp_path: Path) -> None:
    source = tmp_path / "trace.sqlite"
    source.write_bytes(gzip.decompress((FOLDER / name).read_bytes()))
    found = sliced(source, tmp_path / "slices")
    assert_true(found, source)
    assert not found.whole


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize("name", some(list(SCENARIOS), 8, thorough=2))
def test_every_scenario(name: str, tmp_path: Path) -> None:
    """Others are sliced under other names in test_redacted."""
    source = scenario(name).write(tmp_path / "trace.sqlite", SCENARIOS[name].capture)
    found = sliced(source, tmp_path / "slices")
    assert_true(found, source)


def steps(count: int, idle: int, *, start: int = 10 * MS, schema: str = "3.13.2") -> TraceBuilder:
    """
    device  [==A==)......[==A==)......[==A==)......      A takes 1 ms; reads take what is idle of the 10 ms of a step
    T           [read   ]    [read   ]
    """
    trace = TraceBuilder(schema=schema).gpu().process()
    for step in range(count):
        begin = start + step * 10 * MS
        trace.kernel(begin, begin + MS, launch=(begin - 20_000, begin - 10_000))
        trace.osrt("read", begin + MS + 100_000, begin + MS + 100_000 + idle)
        trace.nvtx(f"step {step}", begin - 30_000, begin + 9 * MS)
    return trace


def test_six_of_forty_like_iterations(tmp_path: Path) -> None:
    source = steps(40, 8 * MS).write(tmp_path / "trace.sqlite")
    found = sliced(source, tmp_path / "slices")
    assert_true(found, source)
    assert found.span is not None
    assert found.span.iterations is not None
    first, behind = found.span.iterations
    assert behind - first == 6
    assert found.span.end_ns - found.span.start_ns == 60 * MS
    assert (found.whole, found.lean) == (False, False)


def rare_pauses() -> TraceBuilder:
    """Every tenth of 120 steps of 2 ms waits 30 ms for input, which takes most of the time; the others wait 40 µs, and
    those before the first pause tell another story."""
    trace = TraceBuilder().gpu().process()
    begin = 10 * MS
    for step in range(120):
        trace.kernel(begin, begin + 2 * MS, launch=(begin - 20_000, begin - 10_000))
        trace.nvtx(f"step {step}", begin - 30_000, begin + 2 * MS)
        pause = 30 * MS if step % 10 == 9 else 40_000
        trace.osrt("read", begin + 2 * MS, begin + 2 * MS + pause - 25_000)
        begin += 2 * MS + pause
    return trace


def test_it_grows_until_the_verdict_is_that_of_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was tried before it leaves nothing behind."""
    tried = []
    original = slicing.write_cut

    def remembered(trace: Trace, path: Path, cut: SliceCut) -> None:
        tried.append(path)
        original(trace, path, cut)

    monkeypatch.setattr(slicing, "write_cut", remembered)
    source = rare_pauses().write(tmp_path / "trace.sqlite")
    monkeypatch.setattr(slicing, "candidates", lambda report: [Candidate(10 * MS, 28 * MS), *candidates(report)])
    found = sliced(source, tmp_path / "slices")
    assert found.pairs[0].full.verdict.id == "input-bound"
    assert_true(found, source)
    assert len(tried) > 1
    assert [path for path in tried if path.exists()] == [found.path] == list((tmp_path / "slices").iterdir())


def test_without_a_part_that_stands_for_it_the_whole_is_kept_lean(tmp_path: Path) -> None:
    """Two kernels with a gap between: no part of that has a gap."""
    trace = TraceBuilder().kernel(10 * MS, 11 * MS, launch=(9 * MS, 9 * MS + 10)).sample(15 * MS, thread=(4242, 4300))
    trace.osrt("read", 11 * MS, 19 * MS, chain=("load",)).kernel(20 * MS, 21 * MS, launch=(19 * MS, 19 * MS + 10))
    source = trace.write(tmp_path / "trace.sqlite")
    found = sliced(source, tmp_path / "slices")
    assert (found.whole, found.lean, found.alike) == (True, True, True)


def test_without_gpu_work_everything_is_kept(tmp_path: Path) -> None:
    source = TraceBuilder().osrt("read", 10, 20, chain=("main",)).write(tmp_path / "trace.sqlite")
    found = sliced(source, tmp_path / "slices")
    assert (found.span, found.whole, found.lean, found.pairs, found.alike) == (None, True, False, [], True)


def test_a_device_that_is_not_asked_for_need_not_be_alike(tmp_path: Path) -> None:
    source = scenario("two_gpus").write(tmp_path / "trace.sqlite", SCENARIOS["two_gpus"].capture)
    found = sliced(source, tmp_path / "slices", Settings(device="gpu1"))
    assert [pair.full.key for pair in found.pairs] == ["gpu1"]
    assert found.alike


def test_what_is_not_alike_is_told_of_each_device() -> None:
    whole = device()
    other = replace(whole, root_ledger={**whole.root_ledger, "io_wait": whole.window_ns})
    busy = replace(whole, verdict=Verdict(id="busy", sentence=""))
    idle = replace(whole, window_ns=0)
    pairs = [
        SlicePair(whole, whole),
        SlicePair(whole, None),
        SlicePair(idle, None),
        SlicePair(whole, busy),
        SlicePair(whole, other),
    ]
    assert [pair.alike for pair in pairs] == [True, False, True, False, False]
    said = whole.verdict.id
    assert differences(TraceSlice(Path("slice.sqlite"), None, whole=True, lean=False, pairs=pairs)) == [
        f"gpu0 is {said} in the trace, and nothing of it is in the slice",
        f"gpu0 is {said} in the trace and busy in the slice",
        f"gpu0 is {said} in both, but another cause leads in the slice",
    ]
