"""Short answers for programs: stable keys, a limit on each list, a status for each claim, and few tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag.formats.tables import BY_NAME
from nsysdiag.messages import UsageError
from nsysdiag.queries.answers import LIMIT, MOST_TEXT, SUBJECTS, answer
from tests.levels import some
from tests.output.samples import SAMPLES
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.shared import Shared

TOKENS = 2_000
BYTES_OF_A_TOKEN = 3.5
"""JSON of numbers and identifiers has about 3 to 4 bytes for each token of common models."""
STATUS = {"measured", "inferred", "predicted", "unknown"}


def records(found: Any) -> Iterator[dict[str, Any]]:
    """Every record of an answer, at any depth."""
    if isinstance(found, dict):
        yield found
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        yield from records(each)


def lists(found: Any) -> list[dict[str, Any]]:
    """Every list, with its length."""
    return [each for each in records(found) if "truncated" in each]


def bare_lists(found: Any) -> list[list[Any]]:
    """Lists of records that do not say how many there are."""
    held = [(name, value) for each in records(found) for name, value in each.items() if isinstance(value, list)]
    return [value for name, value in held if name != "items" and any(isinstance(one, dict) for one in value)]


def claims(found: Any) -> list[dict[str, Any]]:
    """Everything that has a status."""
    return [each for each in records(found) if "status" in each]


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(SCENARIOS), 8))
def test_the_summary_is_short(name: str, shared: Shared) -> None:
    report = shared.report(shared.trace(name))
    text = json.dumps(answer(report, ["summary"]), ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) / BYTES_OF_A_TOKEN < TOKENS


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_list_says_whether_it_was_cut(sample: str) -> None:
    report = SAMPLES[sample]()
    found = answer(report, [*SUBJECTS, *BY_NAME], 1)
    assert lists(found)
    assert bare_lists(found) == []
    for each in lists(found):
        assert each["truncated"] == (each["total"] > len(each["items"]))
        assert len(each["items"]) <= 4


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_claim_has_a_status(sample: str) -> None:
    report = SAMPLES[sample]()
    found = answer(report, list(SUBJECTS), 1_000)
    assert {each["status"] for each in claims(found)} <= STATUS
    for finding, said in zip(report.findings, found["findings"]["items"], strict=True):
        assert said["lost"] == {"ns": finding.lost_ns, "share": round(finding.lost_share, 4), "status": "measured"}
        saves = said["saves"]
        assert (saves["status"] == "unknown") == (finding.saves is None or finding.saves.cannot_tell)
        if finding.saves is not None:
            assert (saves["low_ns"], saves["high_ns"]) == (finding.saves.low_ns, finding.saves.high_ns)


def test_findings_are_in_their_order() -> None:
    report = SAMPLES["one_device"]()
    found = answer(report, ["findings"])["findings"]
    assert [each["id"] for each in found["items"]] == [each.id for each in report.findings][:LIMIT]
    assert found["total"] == len(report.findings)


def test_time_is_that_of_the_judged_devices() -> None:
    report = SAMPLES["one_device"]()
    for said in answer(report, ["time"], 100)["time"]["items"]:
        judged = report.judged_of(said["device"])
        assert judged is not None
        assert {each["id"]: each["ns"] for each in said["idle_causes"]["items"]} == {
            cause: ns for cause, ns in judged.ledger.items() if ns
        }
        assert said["idle_ns"] == judged.idle_ns


def test_tables_can_be_asked_for() -> None:
    report = SAMPLES["one_device"]()
    found = answer(report, ["kernels"], 1)["kernels"]
    assert found["columns"] == BY_NAME["kernels"].header
    assert found["total"] == len(list(BY_NAME["kernels"].cells(report)))


def test_long_texts_are_cut() -> None:
    found = answer(SAMPLES["hostile"](), list(SUBJECTS), 1_000)
    texts = [each for each in json.dumps(found).split('"') if len(each) > MOST_TEXT]
    assert all("\\" in each for each in texts)  # escapes make it longer


@pytest.mark.parametrize("subjects", [[], ["nothing"], ["findings", "finding"]])
def test_unknown_subjects_are_refused(subjects: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        answer(SAMPLES["one_device"](), subjects)
    assert "findings" in (raised.value.hint or "")
