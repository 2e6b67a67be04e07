"""Causal chains in words."""

from __future__ import annotations

import pytest

from nsysdiag.causes.host_compute import BY_SCHEDULING
from nsysdiag.findings.text import effect_step, opening_step

MS = 1_000_000


@pytest.mark.parametrize(
    ("total_ns", "longest_ns", "median_ns", "count", "told"),
    [
        (40 * MS, 5 * MS, 4 * MS, 10, "4.00 ms at a time, 10 times"),
        # Most are tiny, so the median says nothing of what is lost: 10 times 1 µs is no 40 ms.
        (40 * MS, 15 * MS, 1_000, 10, "40.0 ms in 10 gaps, 15.0 ms in the longest"),
        (40 * MS, 30 * MS, 1_000, 10, "30.0 ms in one gap, and 10.0 ms in 9 more"),
        (40 * MS, 40 * MS, 40 * MS, 1, "40.0 ms in one gap"),
    ],
)
def test_times_stand_for_what_is_lost(total_ns: int, longest_ns: int, median_ns: int, count: int, told: str) -> None:
    said = effect_step(
        "io_wait", total_ns=total_ns, longest_ns=longest_ns, median_ns=median_ns, count=count, made=False
    )
    assert said == f"the queue is empty for {told}"


def test_a_thread_that_polls_in_mpi_does_not_compute() -> None:
    thread = "thread 7 'MPI Rank 7'"
    said = opening_step("exposed_mpi", call="MPI_Sendrecv", label=None, thread=thread, code="")
    assert said == "thread 7 'MPI Rank 7' is inside MPI_Sendrecv"
    own = opening_step("host_compute", call="on a CPU", label=BY_SCHEDULING, thread=thread, code="decode")
    assert own == "thread 7 'MPI Rank 7' computes: decode"
