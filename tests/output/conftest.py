"""A report of the real analysis, for outputs that must add up on more than samples made by hand."""

from __future__ import annotations

import gzip

import pytest

import nsysdiag
from nsysdiag.cli.demo import bundled_trace


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> nsysdiag.Report:
    """The report of the demo's trace."""
    path = tmp_path_factory.mktemp("demo") / "demo.sqlite"
    path.write_bytes(gzip.decompress(bundled_trace()))
    return nsysdiag.analyze(path)
