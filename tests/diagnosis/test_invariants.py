"""The invariants themselves: silent about reports in which all holds, and loud where one thing is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.diagnosis.fakes import MS, cold_report, finding, rows_only_report, steady_report
from tests.diagnosis.invariants import INVARIANTS, broken
from tests.diagnosis.report_json import Json

Break = Callable[[Json], object]


@pytest.mark.parametrize("make", [steady_report, cold_report, rows_only_report])
def test_nothing_is_broken_in_a_sound_report(make: Callable[[], Json]) -> None:
    assert broken(make()) == []


@pytest.mark.parametrize("missing", ["diagnosis", "phases"])
def test_a_report_without_a_diagnosis_fails(missing: str) -> None:
    report = steady_report()
    del report[missing]
    with pytest.raises(AssertionError, match="holds no"):
        broken(report)


def _put(*path: Any) -> Break:
    """Put the last of the path where the others lead."""

    def change(report: Json) -> None:
        place: Any = report
        for name in path[:-2]:
            place = place[name]
        place[path[-2]] = path[-1]

    return change


def _diagnosis(**changes: Any) -> Break:
    return lambda report: report["diagnosis"].update(changes)


def _finding(index: int, **changes: Any) -> Break:
    return lambda report: report["findings"][index].update(changes)


def _saves(index: int, **changes: Any) -> Break:
    return lambda report: report["findings"][index]["saves"].update(changes)


def _steady(**changes: Any) -> Break:
    return lambda report: report["phases"][1].update(changes)


def _many(report: Json) -> None:
    report["findings"] += [finding(f"f-{at}", f"cause{at}", "host", None, 400, lost_share=0.0) for at in range(9)]


def _busy_and_too_large(report: Json) -> None:
    report["findings"][0]["advice"].append("Use a smaller GPU.")
    for device in report["phases"][1]["devices"]:
        device["compute_ns"], device["idle_ns"] = 360 * MS, 20 * MS


def _without_copies(report: Json) -> None:
    report["findings"][0]["advice"].append("Pin the memory.")
    for device in report["phases"][1]["devices"]:
        device["account"].pop("copies")


def _more_time_last(report: Json) -> None:
    report["findings"].append(finding("f", "x", "host", None, 1, lost_share=0.1))


def _all_of_a_synchronization(report: Json) -> None:
    report["findings"][0]["bottleneck"] = "sync"
    report["findings"][0]["saves"]["ns"] = 280 * MS


def _minor_first(report: Json) -> None:
    others = (("f-low", "info", 0.03), ("f-high", "high", 0.02))
    report["findings"][4:] = [
        finding(name, name, "launch", None, 400, severity=severity, lost_share=share)
        for name, severity, share in others
    ]


def _overlap_too_much(report: Json) -> None:
    report["findings"][3]["saves"].update(ns=60 * MS, high_ns=60 * MS)


BREAKS: list[tuple[str, str, Break]] = [
    ("lateness_is_a_part_of_communication", "more than all", _put("phases", 1, "devices", 0, "late_ns", 500 * MS)),
    ("a_saving_above_the_share_is_explained", "in silence", _finding(2, share=0.01, note="")),
    ("no_saving_shortens_the_kernels", "all idle and more", _saves(0, ns=230 * MS, high_ns=230 * MS)),
    ("a_part_says_of_what_and_promises_nothing", "of nothing", _finding(4, part_of="f-none", note="part of: it")),
    ("a_part_says_of_what_and_promises_nothing", "in silence", _finding(4, part_of="f-input", note="")),
    ("a_part_says_of_what_and_promises_nothing", "and saves", _finding(3, part_of="f-input", note="part of: it")),
    ("accounts_add_up", "missing time", _put("phases", 1, "devices", 0, "account", "host", 19 * MS)),
    ("accounts_hold_bottlenecks", "a strange name", _put("phases", 1, "devices", 0, "account", "magic", 0)),
    ("accounts_hold_bottlenecks", "below zero", _put("phases", 1, "devices", 0, "account", "sync", -1)),
    ("accounts_hold_bottlenecks", "from the start", _put("phases", 1, "devices", 0, "account_base", "start")),
    ("accounts_hold_bottlenecks", "a strange base", _put("phases", 1, "devices", 0, "account_base", "middle")),
    ("ledgers_add_up", "missing time", _put("phases", 1, "devices", 0, "ledger", "io_wait", 1)),
    ("phases_add_up_to_the_devices", "another part", _put("devices", 0, "compute_ns", 1)),
    ("phases_add_up_to_the_devices", "another ledger", _put("devices", 0, "ledger", "io_wait", 1)),
    ("phases_add_up_to_the_devices", "another device", _put("phases", 1, "devices", 0, "key", "gpu7")),
    ("phases_touch", "a hole", _steady(start_ns=101 * MS)),
    ("phases_touch", "an empty phase", _steady(end_ns=100 * MS)),
    ("phases_are_named_in_order", "two starts", _steady(name="start-up")),
    ("phases_are_named_in_order", "a lone pause", _steady(name="pause")),
    ("phases_are_named_in_order", "a strange name", _steady(name="loop")),
    ("the_largest_part_leads", "a smaller part", _diagnosis(bottleneck="input", share=0.4)),
    ("the_largest_part_leads", "another share", _diagnosis(share=0.6)),
    ("the_next_part_is_second", "none", _diagnosis(second=None)),
    ("the_next_part_is_second", "a smaller one", _diagnosis(second={"bottleneck": "host", "share": 0.05})),
    ("the_next_part_is_second", "another share", _diagnosis(second={"bottleneck": "input", "share": 0.5})),
    ("the_unknown_share_is_the_account_s", "another share", _diagnosis(unknown_share=0.2)),
    ("phases_name_their_largest_part", "a smaller part", _steady(bottleneck="host", share=0.05)),
    ("phases_name_their_largest_part", "another share", _steady(share=0.9)),
    ("the_basis_is_what_the_phases_show", "a strange one", _diagnosis(basis="warm")),
    ("the_basis_is_what_the_phases_show", "none with work", _diagnosis(basis="none")),
    ("the_basis_is_what_the_phases_show", "few steps", _put("phases", 1, "steps", "count", 4)),
    ("the_basis_is_what_the_phases_show", "call them too few", _diagnosis(basis="phase")),
    ("the_basis_is_what_the_phases_show", "a start-up", _diagnosis(phase=0)),
    ("a_steady_phase_is_not_denied", "denied", _diagnosis(headline="The trace shows a start and no steady state.")),
    ("verdicts_derive_from_the_diagnosis", "no such verdict", _put("devices", 0, "verdict", "id", "mixed")),
    (
        "verdicts_derive_from_the_diagnosis",
        "all others",
        lambda report: [device["verdict"].update(id="copy-bound") for device in report["devices"]],
    ),
    ("gpus_are_counted", "more than present", _diagnosis(gpus_present=1)),
    ("gpus_are_counted", "more than seen", _diagnosis(gpus_used=3)),
    ("at_most_a_dozen", "fourteen", _many),
    ("each_finding_is_one", "one id twice", _finding(2, id="f-input")),
    ("each_finding_is_one", "said twice", _finding(2, cause="io_wait", title="Time goes to io_wait")),
    ("findings_are_of_the_job", "a strange device", _finding(0, devices=["gpu9"])),
    ("findings_are_of_the_job", "no device", _finding(0, devices=[])),
    ("findings_are_of_the_job", "not its device", _finding(0, device="gpu9")),
    ("findings_are_of_the_job", "a strange bottleneck", _finding(0, bottleneck="magic")),
    ("the_diagnosis_names_findings", "a strange one", _diagnosis(findings=["f-other"])),
    ("the_diagnosis_names_findings", "another order", _diagnosis(findings=["f-host", "f-input"])),
    ("findings_take_no_more_than_their_bottleneck", "more than all", _finding(0, share=0.99)),
    ("findings_are_ordered", "by savings", _saves(0, ns=10 * MS)),
    ("findings_are_ordered", "the unknown last", _finding(1, lost_share=0.82)),
    ("findings_are_ordered", "by time", _more_time_last),
    ("findings_are_ordered", "no savings first", _finding(0, saves=None)),
    ("severity_is_by_what_is_saved", "too high", _finding(2, severity="high")),
    ("severity_is_by_what_is_saved", "unknown", _finding(1, severity="high")),
    ("severity_is_by_what_is_saved", "no severity", _finding(4, severity="awful")),
    (
        "nothing_minor_stands_above_what_is_high",
        "high last",
        lambda report: (_finding(0, severity="info")(report), _finding(2, severity="high")(report)),
    ),
    ("nothing_minor_stands_above_what_is_high", "high last of the others", _minor_first),
    ("savings_have_bounds", "below the low one", _saves(0, low_ns=161 * MS)),
    ("savings_have_bounds", "above the high one", _saves(0, high_ns=159 * MS)),
    ("savings_have_bounds", "more than all", _saves(0, of_ns=100 * MS)),
    ("savings_have_bounds", "of the diagnosis", _diagnosis(saves=finding("f", "x", "host", 3, 2)["saves"])),
    ("savings_have_bounds", "a strange method", _saves(0, method="guess")),
    ("ceilings_are_at_most_the_savings", "more", _finding(0, ceiling_ns=170 * MS)),
    ("no_finding_saves_more_than_its_phase_has", "in all steps", _saves(0, per="step", ns=300 * MS)),
    ("no_finding_saves_more_than_its_phase_has", "in the window", _saves(0, per="window", ns=2_000 * MS)),
    ("a_synchronization_saves_idle_time_at_most", "all of it", _all_of_a_synchronization),
    ("overlapping_saves_the_smaller_side_at_most", "more than copies", _overlap_too_much),
    ("at_best_is_within_the_judged_time", "more", _finding(0, title="Reading: at best 0.5 s can be saved")),
    ("the_headline_is_about_the_bottleneck", "of others", _diagnosis(headline="All is well.")),
    ("the_headline_is_about_the_bottleneck", "not of the second", _diagnosis(headline="Kernels take 50%.")),
    ("only_pytorch_programs_are_told_of_pytorch", "an advice", _finding(0, advice=["Raise num_workers."])),
    ("a_busy_gpu_is_not_called_too_large", "a smaller one", _busy_and_too_large),
    ("pinning_is_proposed_where_it_saves", "no copies", _without_copies),
    (
        "pinning_is_proposed_where_it_saves",
        "saves nothing",
        lambda report: (_saves(3, ns=0)(report), _finding(3, advice=["Pin the memory."])(report)),
    ),
    (
        "mostly_is_more_than_half",
        "less",
        lambda report: (
            _diagnosis(headline="Kernels take 50%. Input takes 40%: mostly read in next.")(report),
            _finding(0, share=0.4, named=[{"text": "read in next", "share": 0.1}])(report),
        ),
    ),
    ("mostly_is_more_than_half", "nothing of it", _diagnosis(headline="Input takes 40%: mostly read.")),
    ("mostly_is_more_than_half", "a part", _finding(0, share=0.1, named=[{"text": "read", "share": 0.2}])),
    (
        "mostly_is_more_than_half",
        "calls around a part of it",
        lambda report: (
            _diagnosis(headline="Kernels take 50%. Input takes 40%: mostly between cudaMemcpy and cudaFree.")(report),
            _finding(0, share=0.1, summary="mostly between cudaMemcpy and cudaFree")(report),
        ),
    ),
    ("quoted_titles_are_those_of_findings", "of none", _diagnosis(headline="“Sleep, mostly in load” saves more: 9%.")),
    (
        "a_title_names_where_most_of_its_time_is",
        "a small part",
        _finding(0, title="Sleep, mostly in load", share=0.4, named=[{"text": "in load", "share": 0.1}]),
    ),
    (
        "who_cannot_tell_fixes_nothing",
        "both",
        lambda report: (
            _diagnosis(bottleneck="unknown", headline="The trace cannot tell.")(report),
            _finding(0, title="Fix the feed path first")(report),
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "what", "change"), BREAKS, ids=[f"{name}-{what}" for name, what, _ in BREAKS])
def test_what_is_broken_is_found(name: str, what: str, change: Break) -> None:
    report = steady_report()
    change(report)
    assert list(INVARIANTS[name](report)) != [], what


def test_every_invariant_can_be_broken() -> None:
    assert {name for name, _, _ in BREAKS} == set(INVARIANTS)


def test_touched_devices_do_not_count() -> None:
    """A device with a twentieth of the work is none of the job's, whatever its idle time is."""
    report = steady_report()
    idle = report["phases"][1]["devices"][1]
    idle.update(compute_ns=1 * MS, exposed_comm_ns=0, exposed_copy_ns=0)
    idle["account"] = {"kernels": 1 * MS, "sync": 399 * MS}
    assert list(INVARIANTS["the_largest_part_leads"](report)) == []


def test_kernels_and_parallelism_are_one() -> None:
    report = steady_report()
    for device in report["phases"][1]["devices"]:
        device["account"].update(kernels=50 * MS, parallelism=150 * MS)
    assert list(INVARIANTS["the_largest_part_leads"](report)) != []
    report["diagnosis"]["bottleneck"] = "parallelism"
    assert list(INVARIANTS["the_largest_part_leads"](report)) == []
    assert list(INVARIANTS["the_next_part_is_second"](report)) == []


def test_the_words_of_pytorch_are_allowed_where_it_runs() -> None:
    report = steady_report()
    report["findings"][0]["advice"] = ["Raise num_workers."]
    report["diagnosis"]["frameworks"] = ["pytorch"]
    assert broken(report) == []
