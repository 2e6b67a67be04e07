"""Packed ids, clean names, and codes of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.events.calls import clean_api_name
from nsysdiag.events.host import _reach
from nsysdiag.events.identity import joint, pid_of, process_of, tid_of
from nsysdiag.events.rows import coded_tuples, previous_on_stream

HARDWARE, VM, PID, TID = 3, 7, 0x123456, 0xABCDEF
THREAD = HARDWARE << 56 | VM << 48 | PID << 24 | TID


@given(st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 9))))
def test_pairs_of_codes_have_a_number_in_64_bits(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    assert joint(first, second, 10).tolist() == [10 * one + other for one, other in pairs]


@pytest.mark.parametrize(
    ("times", "reach"),
    [([], None), ([5, 3, 9], (3, 9)), ([-1, 4, 7], (4, 7)), ([4, 7, 11], (4, 7)), ([-1, 11], None)],
)
def test_malformed_times_do_not_count(times: list[int], reach: tuple[int, int] | None) -> None:
    assert _reach(int64(times), 10) == reach


columns = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62)), max_size=20)


def int64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_the_parts_of_a_thread_s_id() -> None:
    assert (pid_of(THREAD), tid_of(THREAD)) == (PID, TID)
    assert process_of(THREAD) == THREAD - TID
    assert pid_of(int64([THREAD, process_of(THREAD)])).tolist() == [PID, PID]


def test_the_same_pid_in_another_machine_is_another_process() -> None:
    assert process_of(THREAD) != process_of(THREAD + (1 << 48))


@pytest.mark.parametrize(
    ("recorded", "clean"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_v7000_ptsz", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_ptsz", "cudaMemcpyAsync"),
        ("cudaMemcpy_v3020_ptds", "cudaMemcpy"),
        ("cudaMemcpy_ptds", "cudaMemcpy"),
        ("cuMemAlloc_v2", "cuMemAlloc"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("cudaGraphExecUpdate_v10020", "cudaGraphExecUpdate"),
        ("cudaMemcpy2D_v3020", "cudaMemcpy2D"),
        ("cuda_value", "cuda_value"),
        ("_v2_interface", "_v2_interface"),
        ("", ""),
    ],
)
def test_a_name_without_its_suffixes(recorded: str, clean: str) -> None:
    assert clean_api_name(recorded) == clean


@given(columns)
def test_codes_lead_back_to_their_values(values: list[int]) -> None:
    unique, code = distinct(int64(values))
    assert unique.tolist() == sorted(set(values))
    assert unique[code].tolist() == values
    assert distinct_values(int64(values)).tolist() == sorted(set(values))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-1, 2**40)), max_size=20))
def test_a_stream_is_its_process_context_and_number(rows: list[tuple[int, int, int]]) -> None:
    parts = [int64([row[at] for row in rows]) for at in range(3)]
    code, keys = coded_tuples(*parts)
    assert [keys[number] for number in code.tolist()] == rows
    assert len(keys) == len(set(keys)) == len(set(rows))


@given(st.lists(st.integers(0, 3), max_size=20))
def test_the_operation_before_on_the_same_stream(codes: list[int]) -> None:
    """
    stream 0   [0)     [2)        [5)
    stream 1       [1)     [3)[4)          5 follows 2, 3 follows 1, 4 follows 3
    """
    expected = [max((at for at in range(number) if codes[at] == code), default=-1) for number, code in enumerate(codes)]
    assert previous_on_stream(int64(codes)).tolist() == expected
