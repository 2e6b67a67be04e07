"""Each section of a page that shows sums says of which time they are."""

from __future__ import annotations

import re

import pytest

import nsysdiag
from nsysdiag.document.view import Context
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.sections import groups
from tests.output.page import Element, parse
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import SAMPLES

LENGTH = re.compile(r"\d (?:ns|µs|ms|s)\b")
SCOPES = {"window", "windows", "run", "step", "collectives", "iterations"}
WITHOUT = {"diagnosis", "findings", "health", "method"}
"""The first two name the judged time, or the window, in each sentence; the others have no sums."""


def sections(report: nsysdiag.Report) -> dict[str, nsysdiag.document.blocks.Section]:
    return {each.id: each for group in groups(Context.of(report)) for each in group.sections}


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_sections_with_sums_name_their_scope(sample: str) -> None:
    for id, section in sections(SAMPLES[sample]()).items():
        named = section.scope.name in SCOPES if section.scope else id in WITHOUT or not SAMPLES[sample]().devices
        assert named, id


@pytest.mark.parametrize("sample", ["one_device", "several_devices"])
def test_its_tooltip_tells_the_length(sample: str) -> None:
    """What it costs is an estimate for a run of any length."""
    for id, section in sections(SAMPLES[sample]()).items():
        if section.scope and id != "cost":
            assert LENGTH.search(section.scope.span), id


@pytest.mark.slow
def test_the_judged_time_says_how_long_it_is(demo: nsysdiag.Report) -> None:
    root = parse(FORMATS["html"].render(demo, RenderOptions()))
    (diagnosis,) = (each for each in root.all("section") if each.attributes["id"] == "diagnosis")
    assert "Judged time by bottleneck: 580 ms" in [each.text.strip() for each in diagnosis.all("p")]


@pytest.mark.slow
def test_what_a_finding_lost_is_of_the_window(demo: nsysdiag.Report) -> None:
    root = parse(FORMATS["html"].render(demo, RenderOptions()))
    lost = [each for each in root.all("dd") if _label(each) == "Lost"]
    assert lost
    assert all(" of the window" in each.text for each in lost)


def _label(value: Element) -> str:
    assert value.parent is not None
    return value.parent.all("dt")[0].text
