"""Ranges without their counters: how people read them, and how they are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show.registry import RENDERERS as COMPARISONS
from nsysdiag.document.view import as_read, read_name
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.batch.entries import ANALYZED, entry_of
from nsysdiag.saved import from_json

if TYPE_CHECKING:
    from tests.shared import Shared


@pytest.mark.parametrize(
    ("saved", "read"),
    [
        ("step #", "step N"),
        ("layers.#", "layers.N"),
        ("step##", "stepN"),
        ("iter # of #", "iter N of N"),
        ("parse C# files", "parse C# files"),
        ("step 3 #4", "step 3 #4"),
        ("forward", "forward"),
    ],
)
def test_counters_read_as_a_letter(saved: str, read: str) -> None:
    assert read_name(saved) == read


def test_what_other_tools_show_reads_the_same(shared: Shared) -> None:
    report = shared.report(shared.trace("starved_training"))
    assert b"step #" not in FORMATS["perfetto"].render(report, RenderOptions())
    entry = entry_of(report, "a.sqlite", "a", ANALYZED, "a.html", [], [])
    titles = [each.title for each in entry.findings]
    assert any("step N" in each for each in titles)
    assert not any("step #" in each for each in titles)
    assert [each.id for each in entry.findings] == [each.id for each in report.findings]


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("format_", ["txt", "md", "html"])
def test_a_comparison_reads_the_same(format_: str, shared: Shared, *, details: bool) -> None:
    """What the steps go by, the ranges of gaps and the titles of findings; what is saved stays as it was."""
    sides = [shared.report(shared.trace(name)) for name in ("starved_training", "launch_bound")]
    made = compare_reports(sides[:1], sides[1:])
    assert any("step #" in each.title for device in made.devices for each in device.findings)
    text = COMPARISONS[format_](made, RenderOptions(details=details)).decode()
    assert "step #" not in text
    assert ("step N" in text) == (details or format_ != "txt")
    saved = COMPARISONS["json"](made, RenderOptions())
    assert b"step #" in saved
    assert COMPARISONS[format_](from_json(saved, Comparison), RenderOptions(details=details)).decode() == text


def test_a_comparison_keeps_the_hash_sign_of_a_kernel(shared: Shared) -> None:
    report = shared.report(shared.trace("starved_training"))
    device = report.devices[0]
    assert device.iterations is not None
    by_kernel = replace(device, iterations=replace(device.iterations, source="anchor", name="fill_#_of"))
    made = compare_reports(*([replace(report, devices=[by_kernel])] for _ in range(2)))
    assert "fill_#_of" in COMPARISONS["txt"](made, RenderOptions(details=True)).decode()


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("format_", ["txt", "md", "html"])
def test_no_report_reads_like_a_failed_substitution(format_: str, shared: Shared, *, details: bool) -> None:
    """The name is in a field of its own and inside of sentences; what is saved stays as it was."""
    report = shared.report(shared.trace("starved_training"))
    assert any("step #" in each.title or "step #" in each.nvtx for each in report.findings)
    text = FORMATS[format_].render(report, RenderOptions(details=details)).decode()
    assert "step #" not in text
    assert "step N" in text
    assert b"step #" in FORMATS["json"].render(report, RenderOptions())


def test_what_is_fixed_first_still_leads_to_its_finding(shared: Shared) -> None:
    """The action begins with the title of a finding, in what people read too."""
    report = as_read(shared.report(shared.trace("starved_training")))
    found = report.diagnosis
    assert found is not None
    assert found.action is not None
    assert any(found.action.startswith(each.title) for each in report.findings)


def test_sentences_of_a_damaged_report_stay_as_they_are(shared: Shared) -> None:
    report = shared.report(shared.trace("starved_training"))
    assert report.phrases is not None
    damaged = replace(report, phrases=replace(report.phrases, sentences=["a { alone"]))
    assert [each.title for each in as_read(damaged).findings] == [each.title for each in report.findings]
    assert as_read(replace(report, phrases=None)).diagnosis == report.diagnosis
