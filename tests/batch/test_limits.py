"""How much runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.batch import limits
from nsysdiag.batch.inputs import Input
from nsysdiag.batch.limits import BASE_BYTES, BYTES_PER_BYTE, estimated_bytes, usable_cpus
from nsysdiag.batch.pool import Limits
from tests.batch.loads import tasks_of

MIB = 1 << 20


def sized(name: str, size: int) -> Input:
    return Input(Path(name), name, name, size)


def test_estimates_cover_what_was_measured() -> None:
    """The peaks of `scripts/bench` for traces of little but short kernels: 205 MiB of 24 MB, 1,270 MiB of 259 MB."""
    assert estimated_bytes(sized("a.sqlite", 24_000_000)) > 205 * MIB
    assert 1_270 * MIB < estimated_bytes(sized("a.sqlite", 259_000_000)) < 1.2 * 1_270 * MIB
    assert estimated_bytes(sized("a.nsys-rep", 10_000_000)) > estimated_bytes(sized("a.sqlite", 10_000_000))


def test_the_readme_has_the_same_estimate() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"{BASE_BYTES // MIB} MiB and {BYTES_PER_BYTE} times its size" in readme


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
    bounds = Limits(3, 2 * BASE_BYTES + 600 * MIB)
    assert bounds.admit(first, [])
    assert not bounds.admit(second, [first])
    assert bounds.admit(third, [first])
    assert not Limits(1).admit(second, [first])
    assert Limits(2).admit(second, [first])
    assert bounds.too_large(first) is None


def test_one_that_needs_more_alone_is_refused(tmp_path: Path) -> None:
    (task,) = tasks_of(tmp_path, "huge", sizes=(1000 * MIB,))
    error = Limits(1, 2000 * MIB).too_large(task)
    assert error is not None
    assert error.message == "'huge.json' needs about 5.03 GiB of memory, more than the limit of 1.95 GiB"
