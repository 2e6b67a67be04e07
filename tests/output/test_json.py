"""JSON is the saved report itself."""

from __future__ import annotations

import json

import pytest

from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output.rendered import EVERY_SAMPLE, rendered
from tests.output.samples import SAMPLES


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_reads_back_the_same(sample: str) -> None:
    data = rendered("json", sample)
    assert from_json(data, Report) == SAMPLES[sample]()
    assert list(json.loads(data)) == sorted(json.loads(data))
