"""Accepted regressions: what they cover, until when, and the command that accepts one."""

from __future__ import annotations

import shlex
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.ci.acceptances import Acceptance, _rounded, accept, acceptance, anchors, command_to_accept
from nsysdiag.ci.budgets import Judgement
from nsysdiag.ci.expressions import parse
from nsysdiag.ci.facts import BudgetResult
from nsysdiag.comparison.facts import Change, Comparison
from nsysdiag.messages import UsageError
from tests.output.batch_samples import budget
from tests.output.compare_samples import COMPARISONS

DAY = date(2030, 1, 15)


def one(what: str, days: int = 10) -> Acceptance:
    return acceptance(what, "known", DAY + timedelta(days), "test")


def regressed(low: int = 60, high: int = 140) -> Comparison:
    """Of 1,000 ns a step takes 100 more, by `low` to `high`."""
    made = COMPARISONS["one"]()
    length = Change(
        before_ns=1000, after_ns=1100, change_ns=100, low_ns=low, high_ns=high, least_ns=20, verdict="regressed"
    )
    return replace(made, devices=[replace(made.devices[0], length=length)])


def broken(text: str = "length:+5%", value: float = 0.1, **changes: object) -> BudgetResult:
    return replace(budget(text, value=value, limit=parse(text, "").limit, unit=parse(text, "").unit), **changes)  # type: ignore[arg-type]


def outcome(result: BudgetResult, accepted: Acceptance, comparison: Comparison | None = None) -> tuple[str, bool]:
    """What becomes of the acceptance, and whether the budget still counts."""
    judged, (told,) = accept(Judgement([result]), comparison or regressed(), [accepted], DAY)
    return told.status, bool(judged.results)


@pytest.mark.parametrize(
    ("what", "days", "status", "counts"),
    [
        ("length:+12%", 10, "used", False),
        ("length:+12%", 0, "used", False),
        ("length:+12%", -1, "expired", True),
        ("length:+9%", 10, "used", False),  # 10% is not more than 9% beyond chance
        ("length:+7%", 10, "used", False),
        ("length:+5.9%", 10, "exceeded", True),
        ("length:+120ns", 10, "used", False),
        ("length:+50ns", 10, "exceeded", True),
        ("length:-12%", 10, "unused", True),
        ("compute_ns:+12%", 10, "unused", True),
        ("idle_share > 12%", 10, "unused", True),
    ],
)
def test_what_an_acceptance_covers(what: str, days: int, status: str, counts: bool) -> None:
    assert outcome(broken(), one(what, days)) == (status, counts)


@pytest.mark.parametrize(
    ("before_ns", "status"),
    [
        ({}, "used"),
        ({"gpu0": 1000}, "used"),
        ({"gpu0": 950}, "used"),  # 1,060 at least: 12% of 950 more is 1,064
        ({"gpu0": 940}, "exceeded"),  # and of 940 1,053
        ({"gpu0": 2000}, "used"),
        ({"gpu1": 900}, "used"),
    ],
)
def test_a_change_is_accepted_from_where_it_began(before_ns: dict[str, int], status: str) -> None:
    assert outcome(broken(), replace(one("length:+12%"), before_ns=before_ns))[0] == status


def test_a_faster_baseline_gives_no_room() -> None:
    """It is 1,000 now and was 2,000: what grows by 10% is no 7%."""
    accepted = replace(one("length:+5.9%"), before_ns={"gpu0": 2000})
    assert outcome(broken(), accepted)[0] == "exceeded"


def test_what_a_change_is_accepted_from() -> None:
    made = regressed()
    assert anchors(made, parse("length:+9%", "")) == {"gpu0": 1000}
    assert anchors(made, parse("idle_share > 26%", "")) == {}
    sync = next(row.change.before_ns for row in made.devices[0].ledger if row.id == "sync")
    assert anchors(made, parse("ledger.sync:+9%", "")) == {"gpu0": sync}


@pytest.mark.parametrize(
    ("text", "value", "what", "status"),
    [
        ("idle_share > 20%", 0.25, "idle_share > 26%", "used"),
        ("idle_share > 20%", 0.25, "idle_share >= 26%", "used"),
        ("idle_share > 20%", 0.27, "idle_share > 26%", "exceeded"),
        ("coverage < 50%", 0.4, "coverage < 40%", "used"),
        ("coverage < 50%", 0.39, "coverage < 40%", "exceeded"),
        ("idle_ns > 5ms", 6e6, "idle_ns > 7ms", "used"),
        ("idle_ns > 5ms/iter", 6e6, "idle_ns > 7ms", "unused"),
    ],
)
def test_budgets_of_the_capture_after(text: str, value: float, what: str, status: str) -> None:
    assert outcome(broken(text, value), one(what)) == (status, status != "used")


def test_any_device_that_grew_further_exceeds() -> None:
    made = regressed()
    worse = replace(made.devices[0].length, change_ns=300, after_ns=1300, low_ns=250, high_ns=350)
    both = replace(made, devices=[*made.devices, replace(made.devices[0], key="gpu1", length=worse)])
    assert outcome(broken(), one("length:+12%"), both) == ("exceeded", True)


def test_kept_budgets_and_others_stay() -> None:
    results = [broken(), broken(broken=False), broken("compute_ns:+5%"), broken(nvtx="step")]
    judged, (told,) = accept(Judgement(results), regressed(), [one("length:+12%")], DAY)
    assert judged.results == results[1:]
    assert told.sentence.endswith("; accepted up to length:+12% until 2030-01-25")


@pytest.mark.parametrize("text", ["idle_ns == 3", "idle_ns != 3"])
def test_no_bound_is_no_acceptance(text: str) -> None:
    with pytest.raises(UsageError, match="says no bound"):
        one(text)
    assert command_to_accept(broken(text), "main", [], DAY) is None


@pytest.mark.parametrize(
    ("text", "value", "what"),
    [
        ("length:+5%", 0.0831, "length:+8.4%"),
        ("length:+5ms", 15_120_000.0, "length:+16ms"),
        ("length:-5%", -0.0831, "length:-8.4%"),
        ("idle_share > 20%", 0.2534, "idle_share > 26%"),
        ("coverage < 50%", 0.4377, "coverage < 43%"),
        ("idle_ns > 5ms/iter", 6_010_000.0, "idle_ns > 6.1ms/iter"),
        ("idle_ns > 500", 612.0, "idle_ns > 620ns"),
        ("gap_count > 1000", 1_234_567.0, "gap_count > 1300000"),
    ],
)
def test_the_command_accepts_a_little_more(text: str, value: float, what: str) -> None:
    command = command_to_accept(broken(text, value), "main", ["--baselines", "a b"], DAY)
    assert command is not None
    words = shlex.split(command)
    assert words[:4] == ["nsysdiag", "baseline", "accept", "main"]
    assert words[words.index("--baselines") + 1] == "a b"
    assert words[words.index("--what") + 1] == what
    assert words[words.index("--until") + 1] == "2030-02-14"


@given(st.floats(1e-4, 1e15), st.sampled_from(["ns", "share", "count"]))
def test_the_bound_is_beyond_the_value(value: float, unit: str) -> None:
    """And can be read back as a budget."""
    name = {"ns": "idle_ns", "share": "idle_share", "count": "gap_count"}[unit]
    up, down = (parse(f"{name} > {_rounded(value, unit, up=up)}", "").limit for up in (True, False))
    assert down <= value * (1 + 1e-9)
    assert value <= up * (1 + 1e-9)
    assert up - down <= 0.11 * value + 1e-9
