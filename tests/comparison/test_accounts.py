"""Devices by bottleneck as the job is, and words for what is not a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import AccountChange
from nsysdiag.comparison.job import _differs
from nsysdiag.comparison.rows import workload
from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.job import card
from nsysdiag.comparison.show.views import waterfall
from nsysdiag.comparison.sides import Capture
from nsysdiag.document.blocks import Table
from nsysdiag.document.view import Causes
from tests.comparison.samples import report_of
from tests.comparison.test_counts import layers, report
from tests.comparison.test_headline import PLAIN, SLOW
from tests.output.compare_samples import CAUSES, US, comparison, device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.report import Report


def charged(**times: tuple[int, int]) -> list[AccountChange]:
    return [
        AccountChange(bottleneck=name, before_ns=was * US, after_ns=now * US, change_ns=(now - was) * US)
        for name, (was, now) in times.items()
    ]


AS_CAUSES = charged(kernels=(600, 605), copies=(50, 10), sync=(400, 100), host=(0, 60), launch=(2, 2))
WAITED = charged(kernels=(600, 605), copies=(50, 10), sync=(300, 160), unknown=(102, 2))


def test_an_account_is_kept_where_it_differs_from_the_causes() -> None:
    assert not _differs(AS_CAUSES, device())
    assert _differs(WAITED, device())


def test_the_waterfall_has_the_parts_of_the_account() -> None:
    drawn = waterfall(replace(device(), account=WAITED), Causes(CAUSES))
    assert [bar.label for bar in drawn.bars] == [
        "Before", "Synchronization", "Unexplained idle time", "Copies", "Kernels", "After",
    ]  # fmt: skip
    assert (drawn.bars[1].to_ns - drawn.bars[1].from_ns) == -140 * US
    assert drawn.bars[-2].to_ns == device().length.after_ns


def renamed(report: Report) -> Report:
    """Its synchronization is charged to input."""
    phases = [
        replace(each, devices=[replace(one, account=_as_input(one.account)) for one in each.devices])
        for each in report.phases
    ]
    return replace(report, phases=phases)


def _as_input(account: dict[str, int]) -> dict[str, int]:
    return {"input" if name == "sync" else name: ns for name, ns in account.items()}


@pytest.mark.slow
def test_accounts_of_all_devices_add_up_to_their_lengths() -> None:
    """One device whose causes are charged otherwise is enough."""
    sides = [[report_of(each)] for each in (SLOW, PLAIN)]
    (plain,) = compare_reports(*sides).devices
    assert plain.account == []
    (found,) = compare_reports(*([renamed(each) for each in side] for side in sides)).devices
    assert "input" in {row.bottleneck for row in found.account}
    assert sum(row.change_ns for row in found.account) == found.length.change_ns
    assert sum(row.before_ns for row in found.account) == found.length.before_ns


def account_table(made: Comparison) -> Table:
    section = card(made, Causes(made.causes))
    assert section is not None
    return next(each for each in section.blocks if isinstance(each, Table) and "by bottleneck" in each.title)


def test_parts_of_an_unknown_change_are_unknown() -> None:
    made = comparison()
    assert made.job is not None
    for verdict, expected in (("unknown", {"unknown"}), ("improved", {"less", "more", "same"})):
        job = replace(made.job, verdict=verdict, account=AS_CAUSES)
        rows = account_table(replace(made, job=job)).rows
        assert {row[-1].value.word for row in rows} <= expected


@pytest.mark.slow
def test_what_has_no_steps_has_no_words_of_steps(tmp_path: Path) -> None:
    one, two = (report(layers(length), tmp_path, str(length)) for length in (1_000_000, 2_000_000))
    made = compare_reports([one], [two])
    assert made.job is not None
    assert made.verdict == "unknown"
    table = account_table(made)
    assert "step" not in " ".join([table.title, *(column.title for column in table.columns)])
    assert words.work_title("launches", made.job.unit) == "Launches in a unit of work"
    assert "step" in words.work_title("launches", replace(made.job.unit, kind="iterations", part_of_step=False))


@pytest.mark.parametrize(
    ("after", "parts", "whole"), [(137.133, False, True), (160.0, True, True), (134.0, False, False)]
)
def test_parts_of_steps_begin_anywhere(after: float, parts: bool, whole: bool) -> None:
    """133 and 137 sets are no other workload where each side may hold other ends of steps."""
    sides = [
        [Capture(None, None, {"length": np.ones(1), "ops.memset": np.array([count])}, 1.0, 1)]  # type: ignore[arg-type]
        for count in (133.0, after)
    ]
    for part_of_step, expected in ((True, parts), (False, whole)):
        (row,) = workload(*sides, part_of_step=part_of_step)
        assert row.changed == expected
