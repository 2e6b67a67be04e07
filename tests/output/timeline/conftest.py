"""The page of a sample in a real browser, as the tests of the timeline open it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.output.browser import Browser, Chromium
from tests.output.samples import SAMPLES
from tests.output.timeline.driven import Timeline, written


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Browser]:
    with Browser(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(SAMPLES["one_device"](), tmp_path_factory.mktemp("page"))


@pytest.fixture
def shown(browser: Browser, address: str) -> Timeline:
    return Timeline(browser, address)
