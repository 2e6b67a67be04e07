"""How much runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from nsysdiag.batch import task as limits
from nsysdiag.batch.inputs import Input
from nsysdiag.batch.task import BASE_BYTES, BYTES_PER_BYTE, Limits, estimated_bytes, usable_cpus
from tests.batch.loads import tasks_of

MIB = 1 << 20


def sized(name: str, size: int) -> Input:
    return Input(Path(name), name, name, size)


def test_estimates_cover_what_was_measured() -> None:
    """The peaks of large simulated traces: 631 MiB of 442 MB, 1,168 MiB of 891 MB."""
    assert estimated_bytes(sized("a.sqlite", 100_000)) > 107 * MIB
    assert 631 * MIB < estimated_bytes(sized("a.sqlite", 442_000_000)) < 2.5 * 631 * MIB
    assert 1_168 * MIB < estimated_bytes(sized("a.sqlite", 891_000_000)) < 2.5 * 1_168 * MIB
    assert estimated_bytes(sized("a.nsys-rep", 10_000_000)) > estimated_bytes(sized("a.sqlite", 10_000_000))


def test_the_documentation_has_the_same_estimate() -> None:
    page = (Path(__file__).parents[2] / "docs" / "batches.md").read_text(encoding="utf-8")
    assert f"{BASE_BYTES // MIB} MiB and {BYTES_PER_BYTE} times its size" in page


@pytest.mark.parametrize(
    ("quota", "cpus"), [("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("", 8)]
)
def test_cpus(quota: str, cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(limits, "CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    assert usable_cpus() == cpus


def test_as_many_as_fit_into_the_memory(tmp_path: Path) -> None:
    first, second, third = tasks_of(tmp_path, "a", "b", "c", sizes=(100 * MIB, 100 * MIB, 10 * MIB))
    bounds = Limits(3, 2 * BASE_BYTES + 400 * MIB)
    assert bounds.admit(first, [])
    assert not bounds.admit(second, [first])
    assert bounds.admit(third, [first])
    assert not Limits(1).admit(second, [first])
    assert Limits(2).admit(second, [first])
    assert bounds.too_large(first) is None


def test_a_report_that_needs_more_alone_is_refused(tmp_path: Path) -> None:
    (task,) = tasks_of(tmp_path, "huge", sizes=(1000 * MIB,))
    error = Limits(1, 2000 * MIB).too_large(task)
    assert error is not None
    assert error.message == "'huge.json' needs about 3.08 GiB of memory, more than the limit of 1.95 GiB"


def test_a_trace_that_needs_more_alone_runs_alone_with_the_limit(tmp_path: Path) -> None:
    (saved, small) = tasks_of(tmp_path, "huge", "small", sizes=(1000 * MIB, MIB))
    huge = structs.replace(saved, input=structs.replace(saved.input, path=Path("huge.sqlite")))
    bounds = Limits(2, 2000 * MIB)
    assert bounds.too_large(huge) is None
    assert bounds.fitted(huge).shared.settings.memory_limit == 2000 * MIB
    assert bounds.fitted(small) is small
    assert bounds.admit(huge, [])
    assert not bounds.admit(small, [huge])
    assert Limits(1, BASE_BYTES).too_large(huge) is not None  # not even a part
