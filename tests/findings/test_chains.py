"""Causal chains in words."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.causes.thread_states import BY_SCHEDULING
from nsysdiag.findings.hotspots import SpotGaps
from nsysdiag.findings.text import effect_step, opening_step

MS = 1_000_000


@pytest.mark.parametrize(
    ("ns", "told"),
    [
        ([4 * MS] * 9 + [5 * MS], "4.00 ms at a time, 10 times"),
        # Most are tiny, so the median says nothing of what is lost: 10 times 1 µs is not 40 ms.
        ([1_000] * 7 + [12 * MS, 13 * MS, 15 * MS], "40.0 ms in 10 gaps, 15.0 ms in the longest"),
        ([1_000] * 8 + [10 * MS, 30 * MS], "30.0 ms in one gap, and 10.0 ms in 9 more"),
        ([40 * MS], "40.0 ms in one gap"),
    ],
)
def test_times_stand_for_what_is_lost(ns: list[int], told: str) -> None:
    gaps = SpotGaps(np.arange(len(ns)), np.array(ns))
    assert effect_step("io_wait", gaps, made=False) == f"the queue is empty for {told}"


def test_a_thread_that_polls_in_mpi_does_not_compute() -> None:
    thread = "thread 7 'MPI Rank 7'"
    said = opening_step("exposed_mpi", call="MPI_Sendrecv", label=None, thread=thread, code="")
    assert said == "thread 7 'MPI Rank 7' is inside MPI_Sendrecv"
    own = opening_step("host_compute", call="on a CPU", label=BY_SCHEDULING, thread=thread, code="decode")
    assert own == "thread 7 'MPI Rank 7' computes: decode"
