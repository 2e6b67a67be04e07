"""The registry of formats: chosen by suffix, each knowing its own files."""

from __future__ import annotations

import pytest

from nsysdiag.formats import FORMATS, format_for
from nsysdiag.formats.tables import tables
from nsysdiag.messages import UsageError
from tests.output.rendered import EVERY_SAMPLE, rendered
from tests.output.samples import SAMPLES


@pytest.mark.parametrize("name", FORMATS)
def test_suffix_chooses(name: str) -> None:
    assert format_for(f"some/where.x{FORMATS[name].suffix}") == name
    assert format_for(f"WHERE{FORMATS[name].suffix.upper()}") == name


@pytest.mark.parametrize("path", ["report", "report.docx", "html", ""])
def test_unknown_suffix_names_the_known_ones(path: str) -> None:
    with pytest.raises(UsageError) as raised:
        format_for(path)
    assert raised.value.hint is not None
    assert all(known.suffix in raised.value.hint for known in FORMATS.values())


@pytest.mark.sampled(quick=8)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
@pytest.mark.parametrize("name", FORMATS)
def test_knows_its_own_file(name: str, sample: str) -> None:
    assert FORMATS[name].is_ours(rendered(name, sample))


OTHERS = [
    b"",
    b"\xff\xfe\0",
    b"{}",
    b"[1, 2",
    b'{"tool": {"name": "other"}}',
    b'{"tool": 3}',
    b"<html><p>nsysdiag</p></html>",
    b"notes on nsysdiag\n",
    b"start,end\r\n1,2\r\n",
    b"# nsysdiag\n",
]


@pytest.mark.parametrize("name", FORMATS)
def test_takes_no_other_file_for_its_own(name: str) -> None:
    assert [data for data in OTHERS if FORMATS[name].is_ours(data)] == []


def test_every_table_is_recognised() -> None:
    for data in tables(SAMPLES["one_device"]()).values():
        assert FORMATS["csv"].is_ours(data)
