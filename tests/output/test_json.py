"""JSON is the saved report itself."""

from __future__ import annotations

import json

import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output.samples import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES)
def test_reads_back_the_same(sample: str) -> None:
    data = FORMATS["json"].render(SAMPLES[sample](), RenderOptions())
    assert from_json(data, Report) == SAMPLES[sample]()
    assert list(json.loads(data)) == sorted(json.loads(data))
