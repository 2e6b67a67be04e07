"""What is said of a program is found out once in a run."""

from __future__ import annotations

import pytest

from tests.shared import Shared, keep_results


@pytest.fixture(scope="session", autouse=True)
def _results(shared: Shared) -> None:
    keep_results(shared)
