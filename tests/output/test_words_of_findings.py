"""The sentences of findings and gap groups."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.diagnosis.facts import Saves
from nsysdiag.document import words
from nsysdiag.findings.facts import EvidenceRow
from nsysdiag.findings.show import rows_of
from tests.output.samples import MS, SAMPLES, device, finding


@pytest.mark.parametrize(
    ("lost", "ceiling", "sentence"),
    [
        (5 * MS, 5 * MS, "5.00 ms, 17.0% of the window"),
        (5 * MS, 9 * MS, "5.00 ms, 17.0% of the window; at most 9.00 ms together with other findings"),
        (0, 9 * MS, "nothing by itself, at most 9.00 ms together with other findings"),
        (0, 0, "0 ns, 17.0% of the window"),
    ],
)
def test_what_a_finding_costs(lost: int, ceiling: int, sentence: str) -> None:
    assert words.lost_sentence(finding(lost_ns=lost, ceiling_ns=ceiling)) == sentence


def test_the_note_on_ceilings_only_where_they_differ() -> None:
    assert words.overlap_note([finding(lost_ns=MS, ceiling_ns=MS)]) is None
    assert "do not add them up" in (words.overlap_note([finding(lost_ns=MS, ceiling_ns=2 * MS)]) or "")


@pytest.mark.parametrize(
    ("gaps", "call", "sentence"),
    [
        (1, "read", "1 gap in or behind read"),
        (2_000, None, "2,000 gaps"),
        (3, "void f<4>(int)", "3 gaps in or behind f"),
        (0, "f", ""),
    ],
)
def test_where_it_is(gaps: int, call: str | None, sentence: str) -> None:
    assert words.where_sentence(finding(gaps=gaps, call=call)) == sentence


@pytest.mark.parametrize(
    ("thread", "correlation", "query"),
    [
        (7, 9, "SELECT * FROM OSRT_API WHERE start = 5 AND globalTid = 7 AND correlationId = 9"),
        (None, 9, "SELECT * FROM OSRT_API WHERE start = 5 AND correlationId = 9"),
        (None, None, "SELECT * FROM OSRT_API WHERE start = 5"),
    ],
)
def test_the_select_of_a_row(thread: int | None, correlation: int | None, query: str) -> None:
    row = EvidenceRow(table="OSRT_API", name="read", start_ns=5, ns=1, thread=thread, correlation=correlation)
    assert words.row_query(row) == query


def test_how_much_the_listed_signatures_explain() -> None:
    made = msgspec.structs.replace(device(), idle_ns=46 * MS)
    assert words.signatures_sentence(made) == "2 gap groups, together 50.0% of the idle time"


def test_a_finding_that_loses_nothing_of_its_own_does_not_head_with_zero() -> None:
    from nsysdiag.formats import FORMATS, RenderOptions

    slow = finding(lost_ns=0, lost_share=0.0, ceiling_ns=68 * MS)
    made = msgspec.structs.replace(SAMPLES["one_device"](), findings=[slow])
    shown = FORMATS["html"].render(made, RenderOptions(details=True)).decode()
    assert "<dt>Lost</dt>" not in shown
    assert "<span>saves</span> <strong>up to 12.0%</strong> <span>of a step (600 µs)</span>" in shown


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["txt", "md", "html"])
def test_chain_row_and_fix_are_in_every_format(name: str) -> None:
    from nsysdiag.formats import FORMATS, RenderOptions

    shown = " ".join(FORMATS[name].render(SAMPLES["one_device"](), RenderOptions(details=True)).decode().split())
    assert "the queue is empty for 170 µs at a time, 96 times" in shown
    if name != "txt":  # the summary leaves the rows to the other formats
        row = "start{0}99990000{1}globalTid{0}281546145665170{1}correlationId{0}4711"
        assert row.format("=", " ") in shown or row.format(" = ", " AND ") in shown
    assert "do not add them up" in shown
    assert "Gap groups" in shown


@pytest.mark.parametrize(
    ("method", "low", "said"),
    [
        ("replay", 0, "unsure, up to 41.4%"),
        ("replay", 100, "unsure, between 10 and 41%"),
        ("bound", 0, "an unknown part"),
    ],
)
def test_an_unsure_saving_in_the_list(method: str, low: int, said: str) -> None:
    saves = Saves(ns=400, low_ns=low, high_ns=414, per="step", of_ns=1_000, method=method, cannot_tell=True)
    assert rows_of([finding(saves=saves)], 1).rows[0][1] == said
