"""The samples in every format, made once in a process for all tests that look at them."""

from __future__ import annotations

from functools import cache

import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from tests.output.page import Element, parse
from tests.output.samples import SAMPLES

SLOW = ("priced", "no_device_no_rows", "long_lists")
"""Samples that differ from the others in one section: what holds for every section is shown on the others first."""
EVERY_SAMPLE = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SAMPLES]


@cache
def rendered(name: str, sample: str) -> bytes:
    """A sample in a format, with default options."""
    return FORMATS[name].render(SAMPLES[sample](), RenderOptions())


@cache
def tree(sample: str) -> Element:
    """The elements of a sample's page, which no test changes."""
    return parse(rendered("html", sample))
