"""A cause is one record: what the analysis asks of it is a field, and its id is written nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BottleneckId
from nsysdiag.causes import (
    CAUSES,
    OF_WORKER,
    PLACE,
    blocking_copy,
    bottleneck_of,
    bottlenecks_of,
    device_side,
    input_output,
    variant_of,
)
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import FIRST_USE
from nsysdiag.gaps.gaps import OTHER_DEVICE
from nsysdiag.trace.capabilities import KINDS

ROOT = Path(__file__).parents[2]
PACKAGE, TEMPLATES = ROOT / "nsysdiag", ROOT / "templates"
BY_BOTTLENECK = (
    "account/bottlenecks",
    "account/outside",
    "bottlenecks",
    "diagnosis/facts",
    "findings/attribution",
)
OTHER_MEANINGS = {
    ("nsysdiag/timeline/facts.py", "off_cpu"): "a kind of lane, as the report's JSON calls it",
    ("templates/assets/timeline/lanes.js", "off_cpu"): "that kind of lane",
    ("templates/assets/timeline/layout.js", "off_cpu"): "that kind of lane",
    **{(f"nsysdiag/{path}.py", "sync"): "the bottleneck" for path in BY_BOTTLENECK},
}
"""Words that only happen to be equal to the id of a cause."""


def words_of(path: Path) -> Iterator[str]:
    """What could be an id: the string constants of Python; in all other files names and quoted words, but not parts of
    paths, of CSS classes with dashes, or of longer names."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        yield from (value for value in constants if isinstance(value, str))
    else:
        yield from re.findall(r"(?<![\w.-])\w+(?![\w-])", text)


def sources() -> list[Path]:
    python = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "causes" not in path.parents]
    shown = [path for path in TEMPLATES.rglob("*") if path.suffix in (".html", ".js", ".css")]
    return [*python, *shown]


@pytest.mark.thorough
def test_no_id_is_written_outside_of_the_causes() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in sources()}
    found = {(name, word) for name, path in files.items() for word in words_of(path) if word in CAUSES}
    assert len(files) > 250
    assert found == set(OTHER_MEANINGS)


def test_the_search_finds_an_id(tmp_path: Path) -> None:
    python, script = tmp_path / "a.py", tmp_path / "a.js"
    python.write_text('LEAD = ["sync", f"{x}", "ledger.sync"]\n# "off_cpu"\n')
    script.write_text("const color = { io_wait: 1 }; file.sync(); // sync-drained")
    assert [word for path in (python, script) for word in words_of(path) if word in CAUSES] == ["sync", "io_wait"]


@pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
class TestRecord:
    def test_it_has_a_bottleneck(self, cause: Cause) -> None:
        assert cause.bottleneck in get_args(BottleneckId)

    def test_only_what_is_unresolved_can_be_resolved(self, cause: Cause) -> None:
        assert bool(cause.resolved_by) == cause.unresolved
        assert set(cause.resolved_by) <= set(KINDS)
        assert (cause.bottleneck == "unknown") >= cause.unresolved

    def test_opening_uses_known_words(self, cause: Cause) -> None:
        words = {"thread": "a thread", "call": "a call", "label": " (a label)", "code": ": code"}
        assert cause.opening is None or "{" not in cause.opening.format(**words)

    def test_what_goes_on_after_the_call_is_found_in_it(self, cause: Cause) -> None:
        assert cause.after_call is None or cause.call is not None


BY_LABEL = {
    ("io_wait", input_output.READS): "input",
    ("io_wait", input_output.PEERS): "input",
    ("io_wait", input_output.WRITES): "host",
    ("io_wait", input_output.DRIVER): "host",
    ("io_wait", input_output.OTHER): "host",
    ("blocking_copy", blocking_copy.PAGEABLE): "copies",
    ("blocking_copy", blocking_copy.SYNCHRONOUS): "copies",
    ("blocking_copy", blocking_copy.READS_BACK): "sync",
    ("data_loading", OF_WORKER["host_compute"]): "input",
    ("sync", OTHER_DEVICE): "sync",
    ("device_stall", device_side.BETWEEN_COPIES): "unknown",
    ("launch_call", FIRST_USE): "startup",
}


class TestBottlenecks:
    @pytest.mark.parametrize(("cause", "label"), BY_LABEL)
    def test_of_a_label(self, cause: str, label: EvidenceLabel) -> None:
        assert bottleneck_of(cause, variant_of(cause, label)) == BY_LABEL[cause, label]

    @pytest.mark.parametrize("cause", CAUSES)
    def test_without_a_label_it_is_the_cause_s(self, cause: str) -> None:
        assert bottleneck_of(cause) == CAUSES[cause].bottleneck

    @pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
    def test_a_label_is_known_as_an_object(self, cause: Cause) -> None:
        """One with the same words is another one: nothing reads words."""
        for at, variant in enumerate(cause.variants):
            if variant.labels and not variant.call and not variant.hint:
                assert [variant_of(cause.id, label) for label in variant.labels] == [at] * len(variant.labels)
                assert all(variant_of(cause.id, EvidenceLabel(each.text)) != at for each in variant.labels)

    @pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
    def test_calls_and_hints_change_none(self, cause: Cause) -> None:
        for at, variant in enumerate(cause.variants):
            assert variant.labels or bottleneck_of(cause.id, at) == cause.bottleneck

    def test_of_columns(self) -> None:
        places = [PLACE[cause] for cause, _ in BY_LABEL]
        variants = [variant_of(cause, label) for cause, label in BY_LABEL]
        again = bottlenecks_of(np.array([*places, PLACE["io_wait"]]), np.array([*variants, -1]))
        assert [BOTTLENECK_IDS[each] for each in again.tolist()] == [*BY_LABEL.values(), "input"]
