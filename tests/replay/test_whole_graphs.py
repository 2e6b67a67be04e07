"""What is said of kernels if graphs were recorded as a whole, without theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.messages import UsageError
from nsysdiag.pipeline.changes import whatif
from nsysdiag.replay.facts import Transform
from nsysdiag.replay.predict import IN_GRAPHS
from tests.replay.making import SETTINGS
from tests.unlike import CLASSES

if TYPE_CHECKING:
    from pathlib import Path

KIND, SEED = CLASSES["graphs_in_some_steps"], 10100
HALVED = [Transform("kernel", "node_gemm", 0.5)]


def recorded(folder: Path, graphs: str) -> Path:
    """A program whose steps launch a graph, and now and then the same kernels one by one."""
    simulation, _ = KIND.run(KIND.made(SEED))
    return simulation.write(folder / f"{graphs}.sqlite", KIND.capture.but(graphs=graphs))


@pytest.mark.slow
def test_kernels_in_them_may_change_as_well(tmp_path: Path) -> None:
    """9 to 10% were to be saved of kernels whose half saves 49%: those that were launched one by one."""
    found, true = (whatif(recorded(tmp_path, graphs), HALVED, SETTINGS) for graphs in ("graph", "node"))
    shares = [1 - ns / found.now_ns for ns in (found.high_ns, found.predicted_ns, found.low_ns)]
    assert shares == pytest.approx([0.09, 0.10, 0.47], abs=0.01)
    assert 1 - true.predicted_ns / true.now_ns == pytest.approx(0.49, abs=0.01)
    assert found.cannot_tell
    assert IN_GRAPHS in found.caveats
    assert IN_GRAPHS not in true.caveats


@pytest.mark.slow
def test_a_name_that_nothing_has_may_be_of_kernels_in_them(tmp_path: Path) -> None:
    for graphs in ("graph", "node"):
        with pytest.raises(UsageError, match="matches nothing") as error:
            whatif(recorded(tmp_path, graphs), [Transform("kernel", "softmax", 0.5)], SETTINGS)
        assert ("graphs that were recorded as a whole" in str(error.value.hint)) == (graphs == "graph")
