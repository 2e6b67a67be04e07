"""The samples in every format, made once in a process for all tests that look at them."""

from __future__ import annotations

from functools import cache

from nsysdiag.formats import FORMATS, RenderOptions
from tests.output.page import Element, parse
from tests.output.samples import SAMPLES


@cache
def rendered(name: str, sample: str) -> bytes:
    """A sample in a format, with default options."""
    return FORMATS[name].render(SAMPLES[sample](), RenderOptions())


@cache
def tree(sample: str) -> Element:
    """The elements of a sample's page, which no test changes."""
    return parse(rendered("html", sample))
