"""How often work ran: what two sides are brought to one unit by."""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.comparison.units import _counts
from tests.output.samples import LAUNCH, MS, device, graphs, kernel


def test_graphs_recorded_as_wholes_count_by_their_launches() -> None:
    """Of a graph whose nodes were recorded the kernels count themselves."""
    gemm = kernel("gemm", 30 * MS)
    made = device(kernels=[gemm], launch=replace(LAUNCH, graphs=graphs("whole", "by node")))
    assert _counts(made) == {gemm.name: (gemm.count, 30 * MS), "graph whole": (10, 4 * MS)}


def test_graphs_of_one_name_count_together_and_those_never_launched_not() -> None:
    (row, *_others) = graphs("twice").rows
    rows = [row, replace(row, work_ns=MS), replace(row, name="never", launches=0)]
    made = device(kernels=[], launch=replace(LAUNCH, graphs=replace(graphs("twice"), rows=rows)))
    assert _counts(made) == {"graph twice": (20, 5 * MS)}
