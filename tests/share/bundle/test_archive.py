"""The zip: the same bytes for the same contents, and known again."""

from __future__ import annotations

import io
import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

from nsysdiag.share.bundle import is_ours, packed

if TYPE_CHECKING:
    from pathlib import Path


def archive(data: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(data))


def test_names_in_order_times_fixed_and_readable_by_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    (tmp_path / "file").write_bytes(b"from a file" * 1000)
    found = archive(packed({"b.md": b"text", "a.bin": tmp_path / "file"}))
    assert found.namelist() == ["a.bin", "b.md"]
    assert found.read("a.bin") == b"from a file" * 1000
    for info in found.infolist():
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert stat.filemode(info.external_attr >> 16) == "-rw-r--r--"
        assert info.compress_type == zipfile.ZIP_DEFLATED


def test_same_contents_same_bytes() -> None:
    assert packed({"b": b"1", "a": b"2"}) == packed({"a": b"2", "b": b"1"})


@pytest.mark.parametrize(
    ("epoch", "time"),
    [
        ("1700000001", (2023, 11, 14, 22, 13, 20)),
        ("0", (1980, 1, 1, 0, 0, 0)),
        ("99999999999", (1980, 1, 1, 0, 0, 0)),
        ("9" * 40, (1980, 1, 1, 0, 0, 0)),
        ("soon", (1980, 1, 1, 0, 0, 0)),
    ],
)
def test_source_date_epoch(epoch: str, time: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert archive(packed({"a": b""})).infolist()[0].date_time == time


def foreign_zip(comment: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.comment = comment
        made.writestr("a", "b")
    return buffer.getvalue()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"nsysdiag bundle", foreign_zip(b""), foreign_zip(b"my zip")])
def test_what_is_not_ours(data: bytes) -> None:
    assert not is_ours(data)


def test_what_is_ours() -> None:
    assert is_ours(packed({"a": b"b"}))
