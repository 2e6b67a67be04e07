"""Large arrays in files: the same numbers, out of memory until somebody looks at them."""

from __future__ import annotations

import errno
import re
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct

from nsysdiag import Settings, analyze
from nsysdiag.arrays import spill as spilling
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.spill import Evicting, evict, laid
from tests.simulator.scenarios import SCENARIOS, scenario

MIB = 1 << 20
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is laid away")


class Held(Struct, frozen=True):
    """A record as the analysis has them: arrays, some twice, records of arrays, and words."""

    name: npt.NDArray[Any]
    shown: npt.NDArray[Any]
    parts: tuple[Intervals, Intervals]
    words: list[str]


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array counts as large."""
    monkeypatch.setattr(spilling, "LEAST_BYTES", 1)


def in_file(array: npt.NDArray[Any]) -> bool:
    return not array.flags.writeable and array.base is not None


def held() -> Held:
    name = np.arange(5, dtype=np.int32)
    return Held(name, name, (Intervals.of([(1, 2), (4, 9)]), Intervals.empty()), ["a", "b"])


@only_linux
@pytest.mark.parametrize(
    "array",
    [
        np.arange(-3, 7),
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([1.5, np.nan, -np.inf]),
        np.array([True, False, True]),
        np.arange(20, dtype=np.int32)[3:9],
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_an_array_holds_the_same_in_a_file_and_cannot_be_written_to(everything: None, array: npt.NDArray[Any]) -> None:
    found = laid(array)
    assert in_file(found)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0


@only_linux
def test_records_are_laid_away_all_through_and_what_stands_twice_stays_one(everything: None) -> None:
    record = held()
    found = laid(record)
    assert in_file(found.name)
    assert found.shown is found.name
    assert in_file(found.parts[0].start)
    assert found.parts[0].end.tolist() == [2, 9]
    assert found.words is record.words
    again = laid(found)
    assert again is found


def test_what_is_small_is_the_same_object() -> None:
    record = held()
    assert laid(record) is record


@only_linux
@pytest.mark.parametrize(
    "array",
    [
        np.arange(20)[::2],
        np.broadcast_to(np.int64(7), 20),
        np.array(["text", None], dtype=object),
        np.empty(0, dtype=np.int64),
    ],
    ids=["with gaps", "one value", "objects", "empty"],
)
def test_what_no_file_can_stand_for_stays(everything: None, array: npt.NDArray[Any]) -> None:
    assert laid(array) is array


@only_linux
def test_without_room_for_a_file_arrays_stay_in_memory(everything: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_options: object) -> IO[bytes]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    record = held()
    assert laid(record) is record


@only_linux
def test_no_file_can_be_seen(everything: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    found = laid(np.arange(9))
    assert in_file(found)
    assert list(tmp_path.iterdir()) == []


@only_linux
@pytest.mark.parametrize(
    ("told", "disk", "chosen"),
    [("told", "disk", "told"), (None, "disk", "disk"), (None, "gone", None), ("told", "gone", "told")],
)
def test_files_lie_where_told_else_on_the_disk(
    everything: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None, disk: str, chosen: str | None
) -> None:
    """The system's own choice where neither is there."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    for name in ("told", "disk", "default"):
        (tmp_path / name).mkdir()
    if told is not None:
        monkeypatch.setenv("TMPDIR", str(tmp_path / told))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / (told or "default")))
    monkeypatch.setattr(spilling, "ON_DISK", str(tmp_path / disk))
    folders = []
    made = tempfile.TemporaryFile

    def noted(**options: Any) -> IO[bytes]:
        folders.append(options["dir"])
        file: IO[bytes] = made(**options)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    assert in_file(laid(np.arange(9)))
    assert folders == [str(tmp_path / (chosen or "default"))]


@pytest.mark.slow
@only_linux
def test_what_is_let_go_takes_no_memory_until_it_is_looked_at() -> None:
    found = laid(np.arange(8 * MIB))
    total = int(found.sum())
    looked_at = pages_of_files()
    evict()
    assert looked_at - pages_of_files() > 60 * MIB
    assert int(found.sum()) == total
    assert looked_at - pages_of_files() < 4 * MIB


@pytest.mark.slow
@only_linux
def test_what_was_read_does_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "MOST_IN_MEMORY", 0)
    found = laid(np.arange(8 * MIB))
    found.sum()
    looked_at = pages_of_files()
    with Evicting(0):
        for _ in range(200):
            time.sleep(0.01)
            if looked_at - pages_of_files() > 60 * MIB:
                break
        else:
            pytest.fail("nothing was evicted")


@only_linux
def test_each_look_tells_what_of_files_is_in_memory_now() -> None:
    found = laid(np.arange(8 * MIB))
    with spilling.STATM.open("rb", buffering=0) as statm:
        evict()
        little, others = spilling._in_memory(statm)
        found.sum()
        files, rest = spilling._in_memory(statm)
        assert files - little > 60 * MIB
        assert abs(rest - others) < 4 * MIB
        more = np.ones(8 * MIB)
        assert spilling._in_memory(statm)[1] - rest > 60 * MIB
        del more
    assert spilling._in_memory(None) == (spilling.MOST_IN_MEMORY + 1, 0)


@pytest.mark.slow
@only_linux
def test_freed_memory_is_returned_only_if_more_is_needed_than_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [each * MIB for each in (90, 100, 101, 109, 110, 500, 100)]
    trimmed: list[tuple[int, int]] = []
    monkeypatch.setattr(spilling, "_in_memory", lambda _: (0, looks.pop(0) if looks else 0))
    monkeypatch.setattr(spilling, "trim", lambda least: trimmed.append((least, len(looks))))
    with Evicting(100 * MIB):
        for _ in range(200):
            time.sleep(0.01)
            if not looks:
                break
    assert trimmed == [(spilling.LEAST_FREE, 4), (spilling.LEAST_FREE, 2), (spilling.LEAST_FREE, 1)]


@only_linux
def test_small_arrays_of_a_record_are_in_its_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "LEAST_BYTES", 6400)
    large, small, tiny = np.arange(800), np.arange(101, dtype=np.int8), np.arange(100, dtype=np.int8)
    found = laid((large, small, tiny))
    assert [in_file(each) for each in found] == [True, True, False]
    assert [each.tolist() for each in found] == [large.tolist(), small.tolist(), tiny.tolist()]
    assert laid((small, tiny))[0] is small


def pages_of_files() -> int:
    """The bytes of files that this process has in memory."""
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["counted_training", "many_causes", "whole_graphs"])
def test_a_report_is_the_same_with_every_array_in_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = scenario(name).write(tmp_path / "trace.sqlite", SCENARIOS[name].capture)
    in_memory = analyze(trace)
    monkeypatch.setattr(spilling, "LEAST_BYTES", 1)
    assert analyze(trace) == in_memory


@only_linux
@pytest.mark.parametrize(
    ("mounts", "memory"),
    [
        ("disk / ext4 rw 0 0\n", False),
        ("disk / ext4 rw 0 0\ntmpfs {} tmpfs rw 0 0\n", True),
        ("tmpfs / tmpfs rw 0 0\ndisk {} xfs rw 0 0\n", False),
        ("tmpfs / tmpfs rw 0 0\ndisk {}x xfs rw 0 0\n", True),
        (None, False),
    ],
)
def test_files_in_memory_are_of_no_use(
    everything: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str | None, memory: bool
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    if mounts is not None:
        (tmp_path / "mounts").write_text(mounts.format(folder.resolve()))
    monkeypatch.setattr(spilling, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    spilling._is_memory.cache_clear()
    try:
        array = np.arange(9)
        assert (laid(array) is array) == memory
        assert (spilling.room() == 0) == memory
    finally:
        spilling._is_memory.cache_clear()


@pytest.mark.parametrize(
    ("limit", "used", "left"),
    [("max", "5", 8192), ("6000", "5000", 1000), ("6000", "7000", 0), (None, None, 8192), ("90000", "5", 8192)],
)
def test_the_memory_left_is_that_of_the_machine_and_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, used: str | None, left: int
) -> None:
    for name, said in (("memory.max", limit), ("memory.current", used)):
        if said is not None:
            (tmp_path / name).write_text(said)
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       24 kB\nMemAvailable:    8 kB\n")
    monkeypatch.setattr(spilling, "MEMORY", meminfo)
    monkeypatch.setattr(spilling, "CONTAINER", tmp_path)
    assert spilling.memory_left() == left
    meminfo.write_text("MemTotal:       24 kB\n")
    assert spilling.memory_left() == 0


@pytest.mark.parametrize(
    ("before", "left", "size", "after"),
    [
        (256, 96_000, 2_300, 1_150),  # of a large trace a half
        (256, 96_000, 400, 256),  # a small one changes nothing
        (256, 12_000, 2_300, 375),  # nor does any take more than its share of what is left
        (16, 96_000, 2_300, 16),  # the heap of another program stays as it is
    ],
)
def test_more_is_kept_for_a_large_trace(
    monkeypatch: pytest.MonkeyPatch, before: int, left: int, size: int, after: int
) -> None:
    kept: list[tuple[int, int]] = []
    monkeypatch.setattr(spilling, "_library", SimpleNamespace(mallopt=lambda *pair: kept.append(pair)))
    monkeypatch.setattr(spilling, "memory_left", lambda: left << 20)
    monkeypatch.setattr(spilling.Kept, "most", before << 20)
    spilling.keep_for(size << 20)
    assert spilling.Kept.most == after << 20
    assert kept == [(spilling._M_TRIM_THRESHOLD, after << 20)] * (before > 16)


@pytest.mark.slow
def test_little_is_kept_under_a_memory_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling.Kept, "most", 1 << 40)
    trace = scenario("counted_training").write(tmp_path / "trace.sqlite", SCENARIOS["counted_training"].capture)
    analyze(trace)
    assert spilling.Kept.most == 1 << 40
    analyze(trace, Settings(memory_limit=1 << 40))
    assert spilling.Kept.most == spilling.Kept.least
