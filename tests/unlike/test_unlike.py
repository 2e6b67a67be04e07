"""Programs of classes that the rules were not made with: what is said of each is true, or said to be unsure."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from nsysdiag import analyze
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.diagnosis.facts import REPLAY
from nsysdiag.findings.facts import Finding
from nsysdiag.messages import UsageError
from nsysdiag.pipeline.changes import replayed, whatif
from nsysdiag.replay.bounds import MOST_APART
from nsysdiag.replay.facts import Transform
from nsysdiag.report import Report
from nsysdiag.trace.trace import open_trace
from tests.diagnosis.invariants import broken
from tests.diagnosis.report_json import as_json
from tests.iterations.known_loops.verdict import Verdict, judged
from tests.replay.pairs.prediction import ANY, SETTINGS
from tests.shared import made_once
from tests.simulator import Capture, Simulation
from tests.unlike import CLASSES, Fix
from tests.unlike.made import Loops, account, lengths, starts

SEEDS = range(6)
SLACK = 0.01
"""Of a step: how far outside of its bounds a truth may be."""
APART = 0.1
"""Of the time: how far the leading bottleneck may be behind the largest one."""
OF_THE_HOST = ("host", "sync", "launch")
"""What the same host code is charged to, by whether it is behind a wait."""
SEVERAL = (
    *("asynchronous_checkpoints", "streams_of_two_priorities", "a_convoy_of_launching_threads"),
    *("two_processes_on_one_gpu", "batches_by_timeout", "callbacks_of_streams", "coroutines_of_one_thread"),
    *("results_through_the_default_stream", "actors_and_a_learner", "prefill_and_decode_apart"),
)
"""Classes in which several threads launch, or one in several streams: without a wait, more work may overlap."""
OF_ONE_THREAD = ("a_synchronization_saves_idle_time_at_most", "no_saving_shortens_the_kernels")
"""Invariants that hold where one thread launches all work, in one stream."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of a fix, as shares of a step: between `low` and `high`. The truth is between `least` and
    `most`, by which steps are measured; nothing is promised that a fix which makes a program slower saves."""

    name: str
    low: float
    high: float
    least: float
    most: float

    @property
    def holds(self) -> bool:
        return self.most >= self.low - SLACK and self.least <= self.high + SLACK


@dataclass(frozen=True, slots=True)
class Seen:
    """What is said of a program, held against its truth. `refused` is how many fixes are not predicted."""

    verdict: Verdict
    certain: bool
    lead: str
    headline: str
    account: Mapping[str, float]
    broken: Sequence[str]
    promises: Sequence[Promise]
    refused: int


@lru_cache(maxsize=2)
def _ran(name: str, seed: int) -> tuple[Simulation, Loops]:
    """The program of a class and a seed, which has run: it is kept for other captures and each of its fixes."""
    kind = CLASSES[name]
    return kind.run(kind.made(seed))


@made_once
def seen(name: str, seed: int, capture: Capture | None = None) -> Seen:
    """The report about the program of a class and a seed, and its predictions; by another `capture` than its own."""
    kind = CLASSES[name]
    simulation, loops = _ran(name, seed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        trace = simulation.write(Path(folder) / "trace.sqlite", capture or kind.capture)
        with open_trace(trace) as opened:
            found = replayed(opened, SETTINGS, transforms=ANY)
        patch.setattr("nsysdiag.pipeline.changes.replayed", lambda *_: found)
        saved = [(fix, _saved(name, seed, number, lengths)) for number, fix in enumerate(kind.fixes(kind.made(seed)))]
        promises = [each for fix, truth in saved for each in _promises(fix, *truth, trace, found.report)]
    made_known = [each for each in promises if each is not None]
    return Seen(
        verdict=judged(found.report, starts(loops), kind.levels),
        certain=all(each.steps is None or each.steps.certain for each in found.report.phases if each.judged),
        lead=found.report.diagnosis.bottleneck,
        headline=str(found.report.diagnosis.headline),
        account=account(simulation, loops),
        broken=broken(as_json(found.report)),
        promises=made_known,
        refused=len(promises) - len(made_known),
    )


@cache
def _saved(name: str, seed: int, number: int, measure: Callable[[Loops, int], IntArray]) -> tuple[float, float]:
    """The least and the most that the fix of this number truly saves, as shares of a step as `measure` has it."""
    kind = CLASSES[name]
    made = kind.made(seed)
    fixed = made.but(**kind.fixes(made)[number].change)
    runs = (_ran(name, seed)[1], kind.run(fixed)[1])
    before, after = (np.concatenate([measure(loops, first) for first in (0, made.first)]) for loops in runs)
    saved = 1 - after / before
    return max(float(saved.min()), 0.0), max(float(saved.max()), 0.0)


def _promises(fix: Fix, least: float, most: float, trace: Path, report: Report) -> Iterator[Promise | None]:
    """What is predicted of the transforms, and of the one finding, that describe a fix which saves between `least` and
    `most`; None where that is refused."""
    if fix.transforms:
        try:
            told = whatif(trace, fix.transforms, SETTINGS)
        except UsageError:
            yield None
        else:
            low, high = (1 - ns / told.now_ns for ns in (told.high_ns, told.low_ns))
            yield None if told.refused else Promise(fix.name, low, high, least, most)
    for finding in _about(fix, report):
        saves = finding.saves
        if saves is not None and saves.method == REPLAY:
            low, high = (ns / saves.of_ns for ns in (saves.low_ns, saves.high_ns))
            yield Promise(f"{fix.name}: finding", low, high, least, most)


def _about(fix: Fix, report: Report) -> Sequence[Finding]:
    """The only finding that is about all that a fix changes."""
    cause, _, place = fix.finding.partition(":")
    found = [each for each in report.findings if each.cause == cause]
    return found if len(found) == 1 and found[0].nvtx[-1:] == [place] * bool(place) else []


every_class = pytest.mark.sampled(quick=4 * len(SEEDS), normal=len(SEEDS))
"""One program of each class runs in the normal level, and of every fourth class in the quick one."""
every_program = pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in CLASSES for seed in SEEDS])


@every_class
@every_program
def test_what_is_promised_holds(name: str, seed: int) -> None:
    assert [each for each in seen(name, seed).promises if not each.holds] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("a_prefetch_of_two", 1004),  # slow steps in a row were called a pause
        ("a_prefetch_of_two", 4202),  # the thread of the steps was one that loads data, as its samples are in `collate`
        ("a_prefetch_of_two", 4201),  # the same by a range of that name
        ("a_prefetch_of_two", 6409),  # a loader that works for most of a step was taken to be as fast as steps get
        ("a_prefetch_of_two", 7),  # stops in which the part of a step was its copy alone were pauses and a start
        ("copies_from_far_memory", 1003),  # uploads staged while their stream was busy, some of them late
        ("queries_that_yield", 2103),  # the last query of the trace said that its thread does not wait
        ("garbage_collections", 2103),  # stops in many steps, one behind a read-back, were called pauses
        ("copies_from_far_memory", 6311),  # uploads staged behind a short rest of their stream, which was their gap
        ("copies_from_far_memory", 3107),  # copies that run ahead left steps that were shorter than their kernels
        ("a_loss_that_branches", 1),  # steps without an update were none, though each has a range
        ("a_loss_that_branches", 3),  # they were a part of the next one for certain, at no regular distance
        ("a_loss_that_branches", 8),  # the same if the host reads back in each
        ("a_loss_that_branches", 6310),  # the same if most updates come after several steps
        ("asynchronous_checkpoints", 6311),  # the thread that writes copies was to need no wait for them
        ("requests_by_chance", 3106),  # the only waits for requests were before the replayed steps
        ("requests_by_chance", 3107),  # a server that is behind asked for one request in 40 steps
        ("requests_by_chance", 3227),  # and for none but the first
        ("a_convoy_of_launching_threads", 3100),  # one of three threads was ahead of the others, which took steps, too
        ("a_convoy_of_launching_threads", 6),  # the same with a range of its own for each step of each thread
        ("a_convoy_of_launching_threads", 3224),  # a lock was waited for in the same order once its holders are faster
        ("a_convoy_of_launching_threads", 3259),  # kernels of several threads ran at the same time more often
        ("evaluation_now_and_then", 3103),  # the replay held one evaluation more than times of training
        ("requests_in_one_batch", 7),  # steps in which a request begins were the only ones
        ("few_steps", 4),  # kernels of a window began before it without its copies; its layers were steps
        ("few_steps", 14),  # layers were steps, as the other ones are in a phase of mixed work
        ("few_steps", 15),  # the same, and a phase of few steps was no steady state
        ("few_steps", 21),  # each part of four steps was a phase
        ("rollouts_and_updates", 3),  # copies from pinned memory were to free the host of a wait for its results
        ("frames_decoded_by_the_gpu", 0),  # what a thread decodes was to be gone, and with it what others compute
        ("experts_of_uneven_load", 2),  # a late GPU was said to be late for itself
        ("a_slow_first_batch", 0),  # epochs were steps, though the steps in them have ranges
        ("a_slow_first_batch", 3),  # the same for certain if these have none
        ("a_slow_first_batch", 5),  # the loader of each epoch, most of the time, was left out as pauses
        ("prefills_among_tokens", 16),  # steps from prefill to prefill, and two phases that are called pauses
        ("simulators_in_processes", 7000),  # the write that ended a wait was the next one, behind its end: a clock did
        ("a_control_loop_by_a_clock", 7100),  # waits of a few µs for a tick were none, and the others too few
        ("a_tuner_before_the_steps", 5),  # the first step, 55 times as long as usual, was one of the others
        ("metrics_that_block", 16),  # copies that do not wait started as late as with the start of their call
        ("a_loss_that_branches", 9501),  # a step without an update shifted its host code, which was a wait for a clock
        ("a_slow_first_batch", 7100),  # epochs were steps for certain, as a range comes five times in each
        ("a_loss_that_branches", 9734),  # each repeat held two steps or more, and was a step for certain
        ("a_loss_that_branches", 9500),  # two repeats of several steps had one distance, and were evaluations
        ("a_quota_of_cpu_time", 1),  # stops by a limit of CPU time stayed as long, and were spared by shorter kernels
        ("a_quota_of_cpu_time", 9),  # the work between such stops was to end by a clock
        ("prefill_and_decode_apart", 7),  # a GPU that is ahead, and has work for several steps at once, was no limit
        ("shapes_without_a_graph", 7),  # 24 steps with a graph were all steps of a phase of 40 for certain
        ("tasks_of_a_pool", 3003),  # who takes a task in any steps was paced by a clock: nothing was to be saved
        ("a_log_through_a_pipe", 12),  # a pipe that is full was as long as ever: all that is saved was to be
        ("a_log_through_a_pipe", 18),  # the same if it is full in some steps only
        ("callbacks_of_streams", 6),  # a function that was not recorded ran until its stream had something else to do
        ("callbacks_of_streams", 3003),  # kernels of several streams that meet were to be as long together as before
        ("coroutines_of_one_thread", 8),  # who asks several events, and then waits for one, was to wait for none
        ("simulators_in_processes", 10003),  # a share of three steps was sure, one of which took longer
        ("prefills_among_tokens", 9504),  # and one of 18 steps with a single prefill
        ("an_optimizer_state_on_the_host", 11010),  # the thread of the steps ended waits that had what they asked for
        ("a_mix_of_queries", 17000),  # queries without a join were parts of others, for certain
        ("asynchronous_checkpoints", 16100),  # of equally long stops one or two were pauses, and the others steps
        ("a_gpu_shared_with_an_untraced_process", 18001),  # what the host had hidden of another process was no longer
        ("a_log_through_a_pipe", 23002),  # stops of 20 steps were pauses, as some of them are a little longer than that
        ("graphs_captured_again", 18501),  # a graph that is captured again in two of five steps was a start each time
        ("a_convoy_of_launching_threads", 18502),  # a lock was waited for before the replayed time only
        ("callbacks_of_streams", 25001),  # a thread that takes freed streams at once was never to wait for one
        ("coroutines_of_one_thread", 27003),  # 36 of 40 steps were all of a phase, of which they take 83%
        ("batches_in_bursts", 44),  # a producer that hands over four batches at once was to be no limit
        ("naps_until_there_is_a_batch", 5),  # who sleeps until there is a batch was to need none of these naps
        ("naps_until_there_is_a_batch", 13),  # the same if it sleeps more often in some steps
        ("a_flag_in_memory", 1),  # who asks a flag in memory did not wait for the kernel, which was to save nothing
        ("a_ring_that_is_polled", 5),  # who asks a ring in memory for a batch was to need none of that time
        ("a_ring_that_is_polled", 22),  # and a thread that makes batches all the time was no limit to faster steps
        ("a_queue_that_is_full", 1),  # calls that wait for room were work: faster kernels were to save nothing
    ],
)
def test_what_was_once_wrong(name: str, seed: int) -> None:
    found = seen(name, seed)
    assert [each for each in found.promises if not each.holds] == []
    assert found.broken == []
    assert not (found.verdict.confidently_wrong and found.certain)
    assert max(found.account, key=found.account.__getitem__) == found.lead or found.lead in OF_THE_HOST


@pytest.mark.slow
def test_what_is_behind_waits_is_ordered_by_what_it_saves() -> None:
    """Host code behind a wait had time of its own once the wait was seen to keep less, and stayed in its place."""
    assert seen("prefill_and_decode_apart", 27000).broken == []


@pytest.mark.slow
def test_slow_steps_that_only_compute_longer_promise_nothing() -> None:
    """A ceiling of 43 ns in 39 steps was more than the 1 ns that each was to save at most."""
    assert seen("kernels_that_slow_down", 32002).broken == []


@every_class
@every_program
def test_steps_are_those_of_the_program(name: str, seed: int) -> None:
    """Or it is said that others may be the steps."""
    found = seen(name, seed)
    assert not (found.verdict.confidently_wrong and found.certain)


@pytest.mark.slow
def test_many_steps_of_a_loop_are_no_warm_up(tmp_path: Path) -> None:
    """Twelve steps with a prefill between others were a pause of the server, and so was one such step before others."""
    kind = CLASSES["prefills_among_tokens"]
    simulation, _ = kind.run(kind.made(6100))
    found = analyze(simulation.write(tmp_path / "trace.sqlite", kind.capture))
    assert [phase.steps.count for phase in found.phases if phase.steps] == [12, 12, 7, 9]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [32, 56])
def test_steps_of_a_server_are_those_that_exchange_data(seed: int, tmp_path: Path) -> None:
    """Ten steps without a prefill were an evaluation, though no other run is as long; and only the steps from the
    twelfth one on were steps, as the first ones come at other distances. The last one is cut."""
    kind = CLASSES["prefills_among_tokens"]
    simulation, _ = kind.run(kind.made(seed).but(names="none"))
    found = analyze(simulation.write(tmp_path / "trace.sqlite", kind.capture))
    assert [phase.steps and (phase.steps.count, phase.steps.certain) for phase in found.phases] == [(39, True)]


@every_class
@every_program
def test_what_leads_takes_most_time(name: str, seed: int) -> None:
    """Host code may be charged to a wait before it in part: a lead of another kind is compared with half of it."""
    found = seen(name, seed)
    account = dict(found.account)
    of_host = sum(account.pop(each, 0.0) for each in OF_THE_HOST)
    said = of_host if found.lead in OF_THE_HOST else account.get(found.lead, 0.0)
    largest = max(*account.values(), of_host if found.lead in OF_THE_HOST else of_host / 2)
    assert found.lead in CLASSES[name].leads or said >= largest - APART, (found.lead, account, of_host)


@every_class
@every_program
def test_nothing_contradicts_the_rest(name: str, seed: int) -> None:
    told = seen(name, seed).broken
    assert [each for each in told if name not in SEVERAL or not each.startswith(OF_ONE_THREAD)] == []


@pytest.mark.slow
def test_a_late_gpu_that_waits_now_and_then_communicates_less() -> None:
    """What the latest one waited was both communication and what made the others late: 8.3% of 6.8%."""
    assert seen("a_straggler_that_changes", 10).broken == []


@pytest.mark.slow
def test_what_the_profiler_does_is_not_to_be_saved() -> None:
    """It empties its buffers in every fifth step: that was to be fixed first, and to save 72%."""
    assert seen("a_profiler_that_slows", 5).broken == []


@pytest.mark.slow
def test_copies_whose_calls_do_not_wait_are_launched() -> None:
    """Without the waits of six copies in each step, these were launched in no time."""
    assert [each for each in seen("metrics_that_block", 10001).promises if not each.holds] == []


@pytest.mark.slow
def test_parts_of_steps_of_two_threads_are_in_doubt() -> None:
    """Each third kernel, whichever of two threads launched it, began a step for certain."""
    found = seen("batches_by_timeout", 6101)
    assert [each for each in found.promises if not each.holds] == []
    assert not (found.verdict.confidently_wrong and found.certain)
    assert max(found.account, key=found.account.__getitem__) == found.lead


@pytest.mark.slow
def test_steps_that_take_twice_as_long_are_steps(tmp_path: Path) -> None:
    """Ten slow steps behind thirty others were none: "the same kernels take 2.05 times as long in 1 of 30 steps"."""
    kind = CLASSES["kernels_that_slow_down"]
    simulation, _ = kind.run(kind.made(8001).but(names="none"))
    headline = str(analyze(simulation.write(tmp_path / "trace.sqlite", kind.capture)).diagnosis.headline)
    assert "The same kernels take 2.14 times as long in 10 of 39 steps." in headline


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])])
def test_kernels_that_take_longer_are_said(seed: int) -> None:
    found = re.search(r"The same kernels take ([\d.]+) times as long in", seen("kernels_that_slow_down", seed).headline)
    assert found is not None
    assert float(found[1]) == pytest.approx(CLASSES["kernels_that_slow_down"].made(seed).slow, rel=0.05)


def test_a_range_behind_the_last_step_shortens_none(tmp_path: Path) -> None:
    """A compiler that runs between two phases was to save nothing of a step, for certain."""
    kind = CLASSES["a_compile_in_the_middle"]
    simulation, _ = kind.run(kind.made(0))
    trace = simulation.write(tmp_path / "trace.sqlite", kind.capture)
    with pytest.raises(UsageError, match="matches nothing in the replayed time") as error:
        whatif(trace, [Transform("host", "compile", 0.5)], SETTINGS)
    assert error.value.hint is not None
    assert "--from" in error.value.hint


FEWEST_PREDICTED, MOST_VAGUE, WIDEST = 0.9, 0.2, 0.05
"""Of all fixes so many are predicted; of these so many may have bounds more than a fourth of a step apart; and the
median distance of the bounds is no larger."""


@pytest.mark.thorough
def test_most_is_predicted_and_narrow() -> None:
    every = [seen(name, seed) for name in CLASSES for seed in SEEDS]
    widths = sorted(each.high - each.low for one in every for each in one.promises)
    assert len(widths) >= FEWEST_PREDICTED * (len(widths) + sum(each.refused for each in every))
    assert sum(each > MOST_APART for each in widths) <= MOST_VAGUE * len(widths)
    assert statistics.median(widths) <= WIDEST


def test_chance_makes_the_same_program_again() -> None:
    assert all(kind.made(3) == kind.made(3) != kind.made(4) for kind in CLASSES.values())
