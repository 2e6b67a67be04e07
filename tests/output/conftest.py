"""A report of the real analysis, for outputs that must add up on more than samples made by hand."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator

import pytest

import nsysdiag
from nsysdiag.functions import bundled_trace
from tests.conftest import BROWSERS
from tests.output.browser import Chromium
from tests.shared import Shared


@pytest.fixture(scope="session")
def demo(shared: Shared) -> nsysdiag.Report:
    """The report of the demo's trace."""
    return shared.report(shared.file("demo.sqlite", lambda path: path.write_bytes(gzip.decompress(bundled_trace()))))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """A browser that runs as long as the tests, for pages that share nothing."""
    program = next(found for found in map(shutil.which, BROWSERS) if found)
    made = Chromium(program)
    yield made
    made.close()
