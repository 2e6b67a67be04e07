"""Since when a CPU was held, beside counting it by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.events.scheduling import BREAK_NS, Cpus, SwitchRows
from tests.builder import global_tid

CLOSE = 3 * BREAK_NS
HELD = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(0, 2)), max_size=12)
"""Breaks before, and lengths of, times that threads hold a CPU, in halves of a break that counts for none; the CPU."""


def switches_of(held: list[tuple[int, int, int]]) -> tuple[SwitchRows, dict[int, list[tuple[int, int]]]]:
    """The context switches of threads that hold CPUs, and when each CPU is held."""
    half, at = BREAK_NS // 2, dict.fromkeys(range(3), 0)
    spans: dict[int, list[tuple[int, int]]] = {cpu: [] for cpu in range(3)}
    rows = []
    for number, (idle, length, cpu) in enumerate(held):
        start = at[cpu] + idle * half
        at[cpu] = start + length * half
        spans[cpu].append((start, at[cpu]))
        rows += [(start, cpu, True, 100 + number), (at[cpu], cpu, False, 100 + number)]
    time, where, comes_in, thread = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 4
    )
    threads = np.array([global_tid((1, int(each))) for each in thread], dtype=np.int64)
    state = np.zeros(len(rows), dtype=np.int64)
    return SwitchRows(time.astype(np.int64), where.astype(np.int64), comes_in.astype(bool), threads, state), spans


def since(spans: list[tuple[int, int]], moment: int) -> int:
    """By hand: back from the moment, as long as there is no break."""
    found, until = moment, moment - CLOSE
    for start, end in reversed([span for span in spans if span[0] < moment]):
        if end < until:
            break
        found, until = start, start - BREAK_NS
    return found


@given(HELD, st.lists(st.tuples(st.integers(0, 400), st.integers(-1, 3)), max_size=8))
def test_held_since(held: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    switches, spans = switches_of(held)
    moment = np.array([half * BREAK_NS // 2 for half, _ in asked], dtype=np.int64)
    cpu = np.array([number for _, number in asked], dtype=np.int64)
    expected = [since(spans.get(number, []), time) for number, time in zip(cpu.tolist(), moment.tolist(), strict=True)]
    assert Cpus.of(switches).held_since(cpu, moment, CLOSE).tolist() == expected
