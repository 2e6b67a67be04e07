"""A step without the profiler beside those of the trace."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.iterations.facts import StepReference
from nsysdiag.iterations.report import referenced
from nsysdiag.messages import UsageError
from nsysdiag.report import Report
from tests.output import samples

MS = 1_000_000


def report(*medians: int, **changes: object) -> Report:
    """Devices whose median steps take so long."""
    made = samples.one_device()
    devices = [
        replace(
            made.devices[0],
            key=f"gpu{at}",
            iterations=replace(samples.iterations(), p50_ns=median, **changes),  # type: ignore[arg-type]
        )
        for at, median in enumerate(medians)
    ]
    return replace(made, devices=devices)


def found(made: Report, reference_ns: int) -> StepReference:
    reference = referenced(made, reference_ns).step_reference
    assert reference is not None
    return reference


@pytest.mark.parametrize(
    ("measured", "factor", "told"),
    [
        (200, 1.098901, "which is 9.9% more here: up to 18.0 ms of each step may be the profiler's."),
        (273, 1.5, "It lengthens host calls and launches, hardly kernels and copies"),
        (184, 1.010989, "the profiler hardly distorts it."),
        (180, 0.989011, "the profiler hardly distorts it."),
        (91, 0.5, "A profiler makes nothing faster: the reference is of other steps"),
    ],
)
def test_how_much_the_profiler_distorts(measured: int, factor: float, told: str) -> None:
    reference = found(report(measured * MS), 182 * MS)
    assert (reference.reference_ns, reference.measured_ns) == (182 * MS, measured * MS)
    assert reference.factor == factor
    assert told in reference.sentence
    assert ("hardly kernels" in reference.sentence) == (factor >= 1.1)


def test_the_slowest_device_counts() -> None:
    reference = found(report(100 * MS, 300 * MS, 200 * MS), 150 * MS)
    assert (reference.device, reference.factor) == ("gpu1", 2.0)


@pytest.mark.parametrize("changes", [{"steady": 0}, {"closed": False}, {"kind": "layer"}])
def test_without_whole_steps_it_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"no whole steps were found in train\.sqlite") as caught:
        referenced(report(100 * MS, **changes), 150 * MS)
    assert "NVTX ranges around the steps" in (caught.value.hint or "")


def test_nothing_is_said_unless_asked() -> None:
    made = report(100 * MS)
    assert referenced(made, None) is made
    with pytest.raises(UsageError):
        referenced(samples.SAMPLES["no_device"](), 1)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["txt", "md", "html"])
@pytest.mark.parametrize("details", [False, True])
def test_every_format_says_it_once(name: str, details: bool) -> None:
    made = referenced(samples.one_device(), MS)
    assert made.step_reference is not None
    beginning = made.step_reference.sentence.partition(",")[0]
    text = " ".join(FORMATS[name].render(made, RenderOptions(details=details)).decode().split())
    assert text.count(beginning) == 1


def test_the_command_has_it() -> None:
    assert "--reference-step 182000000ns" in command_of(
        replace(samples.one_device(), settings={"reference_step_ns": 182 * MS})
    )
