"""Imports run one way, and a subject's figures know nothing of how they are shown."""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

SUBJECTS = (
    "launches counters timeline wakeups kernels memory utilization host diagnosis cost ranks "
    "iterations gap_groups phases programs ranges time critical_path"
)
PRESENTATION = "words rows markdown chart entries show"
"""Files of a subject that show it. `facts` are its records, all others compute."""


def files_of_subjects(names: str) -> str:
    return " ".join(f"{subject}.{name}" for subject in SUBJECTS.split() for name in names.split())


LAYERS = [
    "signals version messages limits names shortage units peaks fields record process typed bottlenecks plugins",
    "arrays config.settings causes.ids",
    files_of_subjects("facts") + " comparison.step_facts findings.facts",
    "phrases",
    "report ranks.report comparison.facts ci.facts ci.states replay.facts",
    "trace config cost",
    "saved",
    "events",
    "kernels.names",
    "gaps",
    "causes",
    "ledger",
    "time",
    "stacks",
    "iterations",
    "wakeups kernels memory utilization host programs",
    "gap_groups",
    "launches counters ranges timeline",
    "phases",
    "account",
    "ranges.stacks",
    "replay",
    "critical_path",
    "diagnosis.focus diagnosis.missing",
    "pipeline.result",
    "diagnosis findings ranks",
    "comparison",
    "pipeline",
    "ranks.pipeline",
    "ci",
    "document",
    files_of_subjects(PRESENTATION) + " trace.show ledger.show findings.show",
    "formats comparison.show ranks.show replay.show",
    "share batch capture baselines queries",
    "functions",
    "cli entry __main__",
]
"""From the bottom up. A module is in the layer that names it, or else the nearest package around it."""
COMPUTING = LAYERS.index("events")
SHOWING = LAYERS.index("document")
LAYER_OF = {module: at for at, names in enumerate(LAYERS) for module in names.split()}


def layer_of(module: str) -> int | None:
    """None for the package itself."""
    while module and module not in LAYER_OF:
        module = module.rpartition(".")[0]
    return LAYER_OF.get(module)


@pytest.fixture(scope="module")
def imports() -> list[tuple[str, str]]:
    graph = grimp.build_graph("nsysdiag", cache_dir=None)
    return [
        (importer.removeprefix("nsysdiag."), imported.removeprefix("nsysdiag."))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    ]


@pytest.mark.slow
def test_every_module_has_a_layer(imports: list[tuple[str, str]]) -> None:
    assert {module for pair in imports for module in pair if module != "nsysdiag" and layer_of(module) is None} == set()


def test_no_module_imports_from_a_layer_above(imports: list[tuple[str, str]]) -> None:
    placed = [(importer, imported, layer_of(importer), layer_of(imported)) for importer, imported in imports]
    assert [each[:2] for each in placed if None not in each and each[2] < each[3]] == []


def test_no_presentation_computes(imports: list[tuple[str, str]]) -> None:
    """Formats and presentation import records, arrays and each other, and no step of the analysis."""
    shown = [each for each in imports if (layer_of(each[0]) or 0) in range(SHOWING, layer_of("formats") + 1)]
    assert len(shown) > 150
    assert [each for each in shown if layer_of(each[1]) in range(COMPUTING, SHOWING)] == []


@pytest.mark.slow
def test_there_is_no_circle() -> None:
    """Of imports that run; what only type checkers read may refer to results of higher layers."""
    graph = grimp.build_graph("nsysdiag", cache_dir=None, exclude_type_checking_imports=True)
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in free:
            del left[module]
    assert sorted(left) == []


@pytest.mark.parametrize("library", ["pandas", "sqlalchemy"])
def test_arrays_are_pure_numpy(library: str) -> None:
    files = list((Path(__file__).parent.parent / "nsysdiag" / "arrays").glob("*.py"))
    assert len(files) > 5
    for path in files:
        assert library not in path.read_text(encoding="utf-8")
