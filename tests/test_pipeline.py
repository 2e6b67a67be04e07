"""The two entrances for programs: what they take, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag import analyze, compare
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.comparison.facts import Comparison
from nsysdiag.config.settings import Settings
from nsysdiag.messages import InputError, NotComparableError, UsageError
from nsysdiag.share.redaction import redacted
from tests.builder import TraceBuilder
from tests.comparison.samples import beside

STEPS = 20


def steps(path: Path, kernel_ns: int) -> Path:
    """Each of one kernel, with 400 µs for the host."""
    trace, period = TraceBuilder(), kernel_ns + 400_000
    for at in range(0, STEPS * period, period):
        trace.nvtx(f"step {at}", at, at + period - 1_000)
        trace.kernel(at + 20_000, at + 20_000 + kernel_ns, launch=(at + 10_000, at + 15_000))
    return trace.write(path)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Kernels of 600 µs before, of 300 µs after."""
    folder = tmp_path_factory.mktemp("pair")
    return steps(folder / "before.sqlite", 600_000), steps(folder / "after.sqlite", 300_000)


def compute(made: Comparison) -> tuple[int, int]:
    """What an iteration computes, before and after."""
    ((change,),) = ([part.change for part in device.parts if part.id == "compute"] for device in made.devices)
    return change.before_ns, change.after_ns


class TestCompare:
    @pytest.mark.slow
    def test_traces_reports_and_several_of_either(self, pair: tuple[Path, Path]) -> None:
        before, after = pair
        report = analyze(before)
        for one, two in ((before, after), (str(before), after), (report, after), ([report], [after, str(after)])):
            assert compute(compare(one, two)) == (600_000, 300_000)  # type: ignore[arg-type]

    @pytest.mark.slow
    def test_better_on_one_gpu_and_worse_on_another(self, pair: tuple[Path, Path]) -> None:
        slow, fast = (analyze(path) for path in pair)
        made = compare(beside([slow, fast, slow]), beside([fast, slow, slow]))
        assert (made.verdict, made.sentence) == ("mixed", "Better on gpu0, worse on gpu1.")
        assert [device.verdict for device in made.devices] == ["improved", "regressed", "same"]

    def test_a_side_without_work(self, pair: tuple[Path, Path]) -> None:
        report = analyze(pair[0])
        idle = replace(report, devices=[replace(report.devices[0], window_ns=0)])
        with pytest.raises(NotComparableError, match=r"before\.sqlite has no GPU work to compare"):
            compare(report, idle)

    def test_damaged_iterations(self, pair: tuple[Path, Path]) -> None:
        report = analyze(pair[0])
        (device,) = report.devices
        assert device.iterations is not None
        assert device.iterations.packed is not None
        broken = replace(device.iterations, packed=replace(device.iterations.packed, lengths="!"))
        with pytest.raises(InputError, match=r"the iterations of before\.sqlite cannot be read"):
            compare(report, replace(report, devices=[replace(device, iterations=broken)]))

    @pytest.mark.slow
    def test_what_cannot_be_compared(self, pair: tuple[Path, Path], tmp_path: Path) -> None:
        with pytest.raises(InputError):
            compare(pair[0], tmp_path / "nothing.sqlite")
        with pytest.raises(NotComparableError):
            compare(redacted(analyze(pair[0])), pair[1])


class TestDisabled:
    def test_a_cause_that_there_is_not(self, pair: tuple[Path, Path]) -> None:
        with pytest.raises(UsageError, match="there is no cause 'synk'") as caught:
            analyze(pair[0], Settings(disabled=("sync", "synk")))
        assert caught.value.hint == f"known causes: {', '.join(CAUSES)}"

    def test_the_one_that_remains(self, pair: tuple[Path, Path]) -> None:
        with pytest.raises(UsageError, match="cannot be disabled: it is what remains"):
            analyze(pair[0], Settings(disabled=("sync", FALLBACK)))
