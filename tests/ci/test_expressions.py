"""Budgets as they are written: what each part means, and where a mistake is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.ci.expressions import parse
from nsysdiag.ci.measuring import COUNT, NS, SHARE, measures
from nsysdiag.messages import UsageError


def refused(text: str) -> UsageError:
    with pytest.raises(UsageError) as raised:
        parse(text, "--fail-on")
    return raised.value


@pytest.mark.parametrize(
    ("operator", "below", "equal", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        ("==", False, True, False),
        ("!=", True, False, True),
    ],
)
@pytest.mark.parametrize("blank", ["", "  "])
def test_each_operator(operator: str, below: bool, equal: bool, above: bool, blank: str) -> None:
    made = parse(f"gap_count{blank}{operator}{blank}5", "")
    assert [made.holds(value) for value in (4, 5, 6)] == [below, equal, above]


@pytest.mark.parametrize(
    ("operator", "nearest_first"), [(">", [7, 5, 1]), ("<", [1, 5, 7]), ("==", [5, 7, 1]), ("!=", [1, 7, 5])]
)
def test_what_breaks_it_most(operator: str, nearest_first: list[float]) -> None:
    made = parse(f"gap_count {operator} 5", "")
    assert sorted([1, 5, 7], key=made.distance, reverse=True) == nearest_first


@pytest.mark.parametrize(
    ("text", "limit", "unit"),
    [
        ("idle_ns > 20", 20, NS),
        ("idle_ns > 20ns", 20, NS),
        ("idle_ns > 1.5us", 1_500, NS),
        ("idle_ns > 1.5 µs", 1_500, NS),
        ("idle_ns > 20 ms", 20_000_000, NS),
        ("idle_ns > 0.25s", 250_000_000, NS),
        ("ledger.sync > 3ms", 3_000_000, NS),
        ("idle_share > 20%", 0.2, SHARE),
        ("idle_share > 0.7 %", 0.007, SHARE),
        ("idle_share > 0.2", 0.2, SHARE),
        ("copies.total_share > 120%", 1.2, SHARE),
        ("ledger.sync_share > 1%", 0.01, SHARE),
        ("coverage < 50%", 0.5, SHARE),
        ("gpu_metrics.sm_active < 10%", 0.1, SHARE),
        ("gpu_metrics.gpc_clock.kernels < 1000000000", 1e9, COUNT),
        ("findings.high > 0", 0, COUNT),
        ("memory.churn.per_iteration > -1.5", -1.5, COUNT),
    ],
)
def test_each_unit(text: str, limit: float, unit: str) -> None:
    made = parse(text, "")
    assert (made.limit, made.unit, made.per_iteration) == (limit, unit, False)


@pytest.mark.parametrize(
    "text", ["idle_ns > 3ms/iter", "idle_ns>3ms / iter ", "gap_count > 3/iter", "ops.kernel>1/iter"]
)
def test_per_iteration(text: str) -> None:
    assert parse(text, "").per_iteration


@pytest.mark.parametrize(
    ("text", "operator", "limit", "unit"),
    [
        ("idle_ns:+10%", "+", 0.1, SHARE),
        ("idle_ns : + 10us", "+", 10_000, NS),
        ("length:-5%", "-", 0.05, SHARE),
        ("root_ledger.data_loading:+1ms/iter", "+", 1_000_000, NS),
        ("exposed_comm_ns:+0", "+", 0, SHARE),
    ],
)
def test_changes(text: str, operator: str, limit: float, unit: str) -> None:
    made = parse(text, "")
    assert made.of_change
    assert (made.operator, made.limit, made.unit) == (operator, limit, unit)


MISTAKES = [
    ("", 0, "expected a name"),
    ("> 3", 0, "expected a name"),
    ("idle_share", 10, "expected one of > >= < <= == !="),
    ("idle_share = 3%", 11, "expected one of > >= < <= == !="),
    ("idle_share => 3%", 11, "expected one of > >= < <= == !="),
    ("idle_share >> 3%", 12, "expected a value"),
    ("idle_share > x", 13, "expected a value"),
    ("idle_share > 20", 13, "a share is from 0 to 1"),
    ("idle_share > 2ms", 14, "idle_share is a share: expected % or nothing"),
    ("idle_share > 20% of", 17, "expected nothing more"),
    ("idle_share > 20%/iter", 16, "idle_share has no value for each iteration"),
    ("iterations.p95_ns > 2ms/iter", 23, "iterations.p95_ns has no value for each iteration"),
    ("findings.high > 2/iter", 17, "findings.high has no value for each iteration"),
    ("idle_ns > 20%", 12, "idle_ns is a time, and idle_share a share: expected ns, us, ms or s"),
    ("idle_ns > 20 sec", 13, "there is no unit 'sec': expected ns, us, ms or s"),
    ("idle_ns > 2ms/iters", 13, "expected /iter or nothing more"),
    ("gap_count > 5ms", 13, "gap_count is a number: expected no unit"),
    ("gap_count > 5%", 13, "gap_count is a number: expected no unit"),
    ("idle_ns > -", 10, "expected a value"),
    ("idle_shar > 20%", 0, "there is no 'idle_shar'; did you mean 'idle_share'?"),
    ("  ledger.snyc > 2ms", 2, "there is no 'ledger.snyc'; did you mean 'ledger.sync'?"),
    ("sync > 2ms", 0, "there is no 'sync'; did you mean 'ledger.sync'?"),
    ("ledger.data_loading > 2ms", 0, "there is no 'ledger.data_loading'; did you mean 'root_ledger.data_loading'?"),
    ("iterations.p95_share > 2%", 0, "there is no 'iterations.p95_share'"),
    ("qqq > 2", 0, "there is no 'qqq'"),
    ("length > 2ms", 0, "length is for changes alone"),
    ("idle_ns:10%", 8, "expected + or -"),
    ("idle_ns:+10", 11, "expected a unit: % of what was, ns, us, ms or s"),
    ("idle_ns:+-10%", 9, "expected a value"),
    ("idle_ns:+10%/iter", 12, "expected nothing more"),
    ("idle_share:+10%", 0, "a change of idle_share cannot be distinguished from chance; write 'idle_ns:+10%'"),
    (
        "ledger.sync_share:+1%",
        0,
        "a change of ledger.sync_share cannot be distinguished from chance; write 'ledger.sync:+10%'",
    ),
    ("gap_count:+10%", 0, "a change of gap_count cannot be distinguished from chance"),
    ("\x1bidle_ns > 1", 0, "expected a name"),
]


@pytest.mark.parametrize(("text", "place", "words"), MISTAKES)
def test_each_mistake_is_marked(text: str, place: int, words: str) -> None:
    error = refused(text)
    assert error.exit_code == 2
    assert error.message.startswith(f"--fail-on: {words}")
    assert error.shown == (text, " " * place + "^")


def test_the_mark_stands_right_below_what_does_not_print() -> None:
    assert refused("idle_ns \x1b").shown[1].index("^") == len("idle_ns ")
    assert refused("gap_count\t> 1 %").shown[1].index("^") == len("gap_count\\t> 1 ")


def test_a_very_long_one() -> None:
    assert "200 characters at most" in refused("idle_ns > " + "1" * 300).message


def test_every_name_can_be_written() -> None:
    """In every form that it has."""
    for name, measure in measures().items():
        assert parse(f"{name} > 0", "").measure == measure
        if measure.adds_up:
            assert parse(f"{name} > 0/iter", "").per_iteration


@pytest.mark.parametrize(
    ("name", "unit", "adds_up"),
    [
        ("idle_ns", NS, True),
        ("gap_count", COUNT, True),
        ("ops.kernel", COUNT, True),
        ("ledger.lock_wait", NS, True),
        ("root_ledger.data_loading", NS, True),
        ("copies.exposed_ns", NS, True),
        ("launch.launch_bound.causes.sync", NS, True),
        ("sync_drained.ns", NS, True),
        ("launch.kernel.p50_ns", NS, False),
        ("launch.median_interval_ns", NS, False),
        ("launch_latency_ns", NS, False),
        ("floor_ns", NS, False),
        ("iterations.p95_ns", NS, False),
        ("iterations.steady", COUNT, False),
        ("utilization.util_time_share", SHARE, False),
        ("coverage", SHARE, False),
        ("sm_count", COUNT, False),
        ("memory.peak_bytes", COUNT, False),
        ("gpu_metrics.clocks.limit", SHARE, False),
        ("gpu_metrics.dram_read.gaps", SHARE, False),
        ("cost.step", COUNT, False),
    ],
)
def test_what_names_mean(name: str, unit: str, adds_up: bool) -> None:
    found = measures()[name]
    assert (found.unit, found.adds_up) == (unit, adds_up)
    assert (f"{name.removesuffix('_ns')}_share" in measures()) >= (unit == NS and adds_up)


@given(st.text(alphabet="idle_ns share.:+-%<>=! 0123456789/mut\t\x1bé", max_size=30))
def test_whatever_is_written_is_understood_or_refused(text: str) -> None:
    refusal = None
    try:
        assert parse(text, "").text == text.strip()
    except UsageError as error:
        refusal = error
    assert refusal is None or (refusal.shown[0], refusal.shown[1].strip()) == (text, "^")
