"""Call chains as stacks of the program's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.events.callchains import CallChain, CallChains, Stacks
from nsysdiag.events.calls import read_api_calls
from nsysdiag.trace.trace import open_trace
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.builder import Function

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
DRIVER = "/usr/lib/x86_64-linux-gnu/libcuda.so.575"


def stacks(trace: TraceBuilder, folder: Path, source: str, *ids: int) -> Stacks:
    with open_trace(trace.write(folder / "trace.sqlite")) as opened:
        chains = CallChains(opened, read_api_calls(opened, 1 << 60))
        return chains.stacks(source, np.array(ids, dtype=np.int64))


def stack(chain: Sequence[Function], folder: Path) -> CallChain:
    trace = TraceBuilder().osrt("poll", 0, 100_000, chain=chain)
    return stacks(trace, folder, "osrt", 1)[1]


def names(made: CallChain) -> list[tuple[str, str]]:
    return [(frame.symbol, frame.module) for frame in made.frames]


def test_without_the_libraries_around_it(tmp_path: Path) -> None:
    """
    chain  poll [libc]  0x7f.. [libcuda]  cudaDeviceSynchronize  wait_all  train  main  __libc_start_main [libc]
    """
    chain = [("poll", LIBC), ("0x7f01", DRIVER), "cudaDeviceSynchronize", "wait_all", "train", "main"]
    made = stack([*chain, ("__libc_start_main", LIBC), "_start"], tmp_path)
    assert names(made) == [("wait_all", "app"), ("train", "app"), ("main", "app")]
    assert made.own
    assert (made.leaf.symbol, made.leaf.module) == ("poll", "libc.so.6")


def test_libraries_alone_leave_the_innermost(tmp_path: Path) -> None:
    made = stack([("poll", LIBC), ("0x7f01", DRIVER), ("start_thread", LIBC)], tmp_path)
    assert names(made) == [("poll", "libc.so.6")]
    assert not made.own


def test_recursion_counts_once(tmp_path: Path) -> None:
    assert names(stack([("poll", LIBC), "walk", "walk", "walk", "main", "walk"], tmp_path)) == [
        ("walk", "app"),
        ("main", "app"),
        ("walk", "app"),
    ]


def test_addresses_go_by_their_module(tmp_path: Path) -> None:
    """Two addresses of the same module are one frame, and one of a library is no frame of the program."""
    plugin = "/home/me/libplugin.so"
    chain = [("0x7f01", DRIVER), ("0x55d001", plugin), ("0x55d002", plugin), "main"]
    assert names(stack(chain, tmp_path)) == [("", "libplugin.so"), ("main", "app")]


def test_an_address_gives_way_to_its_caller_in_the_same_module(tmp_path: Path) -> None:
    chain = ["0x55d001", "0x55d002", "solve", "0x55d003", ("0x7f01", DRIVER), "main", "0x55d004"]
    assert names(stack(chain, tmp_path)) == [("solve", "app"), ("main", "app"), ("", "app")]


def test_an_address_of_another_chain_stays(tmp_path: Path) -> None:
    trace = TraceBuilder().osrt("poll", 0, 10, chain=["0x55d001"]).osrt("poll", 20, 30, chain=["main"])
    found = stacks(trace, tmp_path, "osrt", 1, 2)
    assert [names(found[number]) for number in (1, 2)] == [[("", "app")], [("main", "app")]]


def test_what_is_no_function_is_left_out(tmp_path: Path) -> None:
    chain = [("0x0", "[Unknown]"), ("poll", LIBC), ("[Broken backtraces]", "[Broken backtraces]")]
    assert names(stack(chain, tmp_path)) == [("poll", "libc.so.6")]


def test_nothing_of_a_chain_without_functions(tmp_path: Path) -> None:
    trace = TraceBuilder().osrt("poll", 0, 100_000, chain=[("[Max depth]", "[Max depth]")])
    assert stacks(trace, tmp_path, "osrt", 1) == {}


@pytest.mark.parametrize("number", [0, -1, 7])
def test_nothing_of_a_chain_that_is_not_there(number: int, tmp_path: Path) -> None:
    trace = TraceBuilder().osrt("poll", 0, 100_000, chain=["main"])
    assert stacks(trace, tmp_path, "osrt", number) == {}


def test_rows_in_any_order(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for time in range(20):
        trace.osrt("poll", time, time + 1, chain=[("poll", LIBC), f"f{time}", "main"])
    with open_trace(trace.write(tmp_path / "trace.sqlite", shuffle_seed=3)) as opened:
        found = CallChains(opened, read_api_calls(opened, 100)).stacks("osrt", np.arange(1, 21))
    assert [names(found[number + 1])[0][0] for number in range(20)] == [f"f{number}" for number in range(20)]


def test_a_table_without_the_columns_of_newer_exports(tmp_path: Path) -> None:
    """CUDA_CALLCHAINS has neither kernelMode nor unwindMethod."""
    trace = TraceBuilder(schema="2.9.1").api("cudaMalloc", 0, 10, chain=["cudaMalloc", "load", "main"])
    assert names(stacks(trace, tmp_path, "cuda", 1)[1]) == [("load", "app"), ("main", "app")]
