"""Which waits and host time a finding is about: those of its cause, in its range and of its variant, and no others."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.causes import CAUSES, PLACE
from nsysdiag.findings.facts import Finding, Joined
from nsysdiag.pipeline.changes import Replayed
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.fixes import apply_fix
from nsysdiag.replay.model import Model
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.making import VARIED, modelled, replay_of_pair, replay_of_program
from tests.replay.pairs.pair import loop, ranged
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body


@cache
def two_places() -> Replayed:
    """Each step waits for the device in one range and for its stream in another, and reads back before a wait.

    T   <solve [l][sync]> <check [l][stream sync][sleep]> <norm [l][read-back][sync][sleep]>
    """

    def build(simulation: Simulation, marks: Marks) -> None:
        stream = solver(simulation).stream()

        def solve(t: Thread) -> Body:
            yield from t.launch("relax", 60 * US, stream)
            yield from t.synchronize()

        def check(t: Thread) -> Body:
            yield from t.launch("residual", 40 * US, stream)
            yield from t.synchronize(stream)
            yield from t.free(4 * US)
            yield from t.sleep(90 * US)

        def norm(t: Thread) -> Body:
            yield from t.launch("dot", 30 * US, stream)
            yield from t.blocking_copy("DtoH", 8, 3 * US, stream, host="pinned")
            yield from t.synchronize()
            yield from t.sleep(70 * US)

        def step(t: Thread, number: int) -> Body:
            yield from ranged(t, "solve", solve(t))
            yield from ranged(t, "check", check(t))
            yield from ranged(t, "norm", norm(t))

        loop(simulation, marks, step, steps=12, process=stream.context.process)

    return replay_of_program(build)


def of_cause(cause: str, path: tuple[str, ...] = (), variant: str = "") -> Finding:
    """A finding about a cause, in a range and of a variant."""
    return replace(two_places().report.findings[0], cause=cause, nvtx=list(path), variant=variant, joined=[])


def fixed(finding: Finding) -> Changes:
    """The changes that fix it."""
    changes = Changes.none(modelled(two_places()))
    assert apply_fix(changes, finding) == ""
    return changes


def calls_gone(changes: Changes) -> list[str]:
    """The names of the calls that no longer wait, each once."""
    model, gone = changes.model, changes.model.threads.held.call[~changes.held]
    calls = model.host.host.api_calls
    return sorted({calls.names[each] for each in calls.rows.name[gone].tolist()})


def ranges_of(model: Model, times: np.ndarray) -> set[str]:
    """The innermost ranges at some times."""
    rows, names = model.names.ranges.rows, model.names.ranges.names
    inside = [np.flatnonzero((rows.start <= time) & (rows.end > time)) for time in times.tolist()]
    return {names[rows.name[each[np.argmin((rows.end - rows.start)[each])]]] for each in inside if len(each)}


@pytest.mark.parametrize(
    ("path", "calls"),
    [
        ((), ["cudaDeviceSynchronize", "cudaMemcpy", "cudaStreamSynchronize"]),  # the read-back is in a row with one
        (("step #", "solve"), ["cudaDeviceSynchronize"]),
        (("step #", "check"), ["cudaStreamSynchronize"]),
        (("step #",), ["cudaDeviceSynchronize", "cudaMemcpy", "cudaStreamSynchronize"]),
    ],
)
def test_the_waits_in_the_range_of_a_finding(path: tuple[str, ...], calls: list[str]) -> None:
    changes = fixed(of_cause("sync", path))
    held = changes.model.threads.held
    assert calls_gone(changes) == calls
    inner = ranges_of(changes.model, held.begin[~changes.held])
    assert inner == ({path[-1]} if path[1:] else {"solve", "check", "norm"})


@pytest.mark.parametrize(
    ("variant", "places"),
    [("stream", {"check"}), ("device", {"solve"}), ("read_back", {"norm"})],
)
def test_the_waits_of_the_variant_of_a_finding(variant: str, places: set[str]) -> None:
    changes = fixed(of_cause("sync", variant=variant))
    assert ranges_of(changes.model, changes.model.threads.held.begin[~changes.held]) == places


@pytest.mark.parametrize(("path", "places"), [((), {"check", "norm"}), (("step #", "norm"), {"norm"})])
def test_the_host_time_in_the_range_of_a_finding(path: tuple[str, ...], places: set[str]) -> None:
    changes = fixed(of_cause("sleep", path))
    gone = changes.time == 0
    pieces = changes.model.pieces
    assert (pieces.cause[gone] == PLACE["sleep"]).all()
    assert ranges_of(changes.model, changes.model.host.host.axis.time(pieces.start[gone])) == places


def places_of_sleep(finding: Finding, *others: Finding) -> set[str]:
    """The ranges in which the threads no longer sleep when a finding among others is fixed."""
    changes = Changes.none(modelled(two_places()))
    assert apply_fix(changes, finding, [finding, *others]) == ""
    pieces = changes.model.pieces
    gone = changes.time == 0
    return ranges_of(changes.model, changes.model.host.host.axis.time(pieces.start[gone]))


@pytest.mark.parametrize(
    ("path", "variant", "places"),
    [
        ((), "sleeps", {"check"}),
        (("step #",), "sleeps", {"check"}),
        (("step #",), "", {"check"}),
        (("step #", "norm"), "sleeps", {"norm"}),
    ],
)
def test_what_is_left_to_a_finding_further_inside(path: tuple[str, ...], variant: str, places: set[str]) -> None:
    inner = replace(of_cause("sleep", ("step #", "norm"), "sleeps"), id="f-inner")
    assert places_of_sleep(of_cause("sleep", path, variant), inner) == places


@pytest.mark.parametrize(
    "change", [{"cause": "sync"}, {"variant": "processes"}, {"nvtx": ["step #"]}, {"nvtx": ["other"]}], ids=str
)
def test_other_findings_take_nothing_away(change: dict[str, object]) -> None:
    other = replace(of_cause("sleep", ("step #", "norm"), "sleeps"), id="f-other", **change)  # type: ignore[arg-type]
    assert places_of_sleep(of_cause("sleep", ("step #",), "sleeps"), other) == {"check", "norm"}


def test_what_was_joined_with_another_finding_is_left_to_it() -> None:
    joined = Joined(cause="sleep", variant="sleeps", nvtx=["step #", "check"])
    other = replace(of_cause("sync"), id="f-other", joined=[joined])
    assert places_of_sleep(of_cause("sleep"), other) == {"norm"}
    late = replace(other, cause="late_rank")
    assert places_of_sleep(of_cause("sleep"), late) == {"check", "norm"}


def test_a_finding_of_which_nothing_is_left_is_not_replayed() -> None:
    model = modelled(two_places())
    inner = [replace(of_cause("sleep", ("step #", each), "sleeps"), id=each) for each in ("check", "norm")]
    changes = Changes.none(model)
    assert apply_fix(changes, of_cause("sleep", (), "sleeps"), inner)  # a reason
    assert_unchanged(changes)


@pytest.mark.parametrize("variant", ["garbage_collector", "interpreter"])
def test_variants_that_only_samples_tell_are_not_replayed(variant: str) -> None:
    assert apply_fix(Changes.none(modelled(two_places())), of_cause("host_compute", variant=variant))  # a reason


@pytest.mark.parametrize("cause", [each.id for each in CAUSES.values() if each.unresolved or each.side == "device"])
def test_what_no_advice_takes_away_is_not_replayed(cause: str) -> None:
    assert apply_fix(Changes.none(modelled(two_places())), of_cause(cause))  # a reason


@pytest.mark.parametrize("cause", ["kernels", "exposed_mpi", "late_rank", "exposed_comm", "no such cause"])
def test_what_is_not_there_is_not_fixed(cause: str) -> None:
    changes = Changes.none(modelled(two_places()))
    assert apply_fix(changes, of_cause(cause))  # a reason
    assert_unchanged(changes)


@pytest.mark.slow
def test_copies_that_dwarf_the_kernels_are_not_hidden() -> None:
    found = replay_of_pair("blocking copies that dwarf the kernels")
    changes = Changes.none(modelled(found))
    assert apply_fix(changes, replace(found.report.findings[0], cause="exposed_copy"))  # a reason
    assert_unchanged(changes)


def assert_unchanged(changes: Changes) -> None:
    """What cannot be fixed is left as it was."""
    before = Changes.none(changes.model)
    for name in ("time", "lag", "length", "cost", "held", "full", "woken", "dropped", "eager"):
        assert np.array_equal(getattr(changes, name), getattr(before, name)), name


def test_the_rest_of_mpi_is_what_kernels_cannot_hide() -> None:
    found = replay_of_pair("wait in MPI")
    (finding,) = [each for each in found.report.findings if each.cause == "exposed_mpi"]
    changes = Changes.none(modelled(found))
    assert apply_fix(changes, finding) == ""
    assert ((changes.time >= 0) & (changes.time <= 1)).all()
    assert (changes.time < 1).any()


@pytest.mark.parametrize("name", VARIED)
def test_findings_about_the_host_are_fixed(name: str) -> None:
    found = replay_of_pair(name)
    for finding in found.report.findings:
        cause = CAUSES.get(finding.cause)
        if cause is not None and cause.side == "host" and not cause.unresolved:
            assert apply_fix(Changes.none(modelled(found)), finding) == ""


START = "start before the first work, as its finding says"


@pytest.mark.slow
def test_a_start_may_save_nothing_of_its_initialization() -> None:
    """A context is created and code is loaded in any case, so no lower bound is above 0; other fixes have one."""
    found = replay_of_pair(START).report.findings
    startup = [each for each in found if each.bottleneck == "startup" and each.saves is not None]
    assert {"before_work", "module_load"} <= {each.cause for each in startup}
    assert [each.saves.low_ns for each in startup if each.saves] == [0] * len(startup)
    others = [each for each in found if each.bottleneck != "startup" and each.saves is not None]
    assert any(each.saves.low_ns for each in others if each.saves)


@pytest.mark.parametrize("cause", ["module_load", "context_init", "memory_allocation", "host_compute"])
def test_a_fix_leaves_what_comes_before_the_first_work(cause: str) -> None:
    """That is for the findings on the time before it."""
    found = replay_of_pair(START)
    model, finding = modelled(found), replace(found.report.findings[0], cause=cause, nvtx=[], variant="", joined=[])
    changes = Changes.none(model)
    _ = apply_fix(changes, finding)
    time = model.host.host.axis.time(model.pieces.end)
    assert (changes.time[time <= int(model.work.start.min())] == 1).all()
