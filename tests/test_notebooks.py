"""The notebook and the page about notebooks: every cell runs, nothing that was computed stands in the text, and each
figure is listed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import plotly.io
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import nsysdiag
from tests.output.compare_samples import COMPARISONS
from tests.output.conftest import demo  # noqa: F401, a fixture
from tests.output.rank_samples import ranks_report
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import WHATIFS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag import Report

DOCS = Path(__file__).parent.parent / "docs"
TUTORIAL = DOCS / "tutorial.ipynb"
PLOTLY = "application/vnd.plotly.v1+json"
SECONDS = 300


def read() -> nbformat.NotebookNode:
    return nbformat.read(TUTORIAL, as_version=4)


def cells(notebook: nbformat.NotebookNode, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def run(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs. The kernel is reached through files, not through the network."""
    kernel = AsyncKernelManager(transport="ipc", ip=str(folder / "kernel"))
    client = NotebookClient(notebook, km=kernel, timeout=SECONDS, resources={"metadata": {"path": str(folder)}})
    ran: nbformat.NotebookNode = client.execute(cleanup_kc=True)
    assert [path.name for path in folder.iterdir() if not path.name.startswith("kernel")] == [], "it leaves no file"
    return ran


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """The notebook as a reader has it after all cells."""
    return run(read(), tmp_path_factory.mktemp("notebook"))


def data(notebook: nbformat.NotebookNode) -> Iterator[dict[str, object]]:
    """What the cells show, by type."""
    for cell in cells(notebook, "code"):
        yield from (each.data for each in cell.outputs if "data" in each)


class TestTutorial:
    def test_is_a_notebook_without_outputs(self) -> None:
        notebook = read()
        nbformat.validate(notebook)
        assert all(not cell.outputs and cell.execution_count is None for cell in cells(notebook, "code"))
        assert set(notebook.metadata) == {"kernelspec", "language_info"}
        assert TUTORIAL.read_text(encoding="utf-8") == nbformat.writes(notebook, indent=1) + "\n"

    def test_its_text_has_no_number_that_a_cell_computes(self) -> None:
        for cell in cells(read(), "markdown"):
            assert not re.search(r"\d", re.sub(r"`[^`]*`", "", cell.source)), cell.source

    def test_its_links_lead_somewhere(self) -> None:
        links = [link for cell in cells(read(), "markdown") for link in re.findall(r"\]\(([^)]+)\)", cell.source)]
        assert links
        assert all((DOCS / link).exists() for link in links)

    @pytest.mark.thorough
    def test_every_cell_runs(self, ran: nbformat.NotebookNode) -> None:
        assert all(cell.execution_count for cell in cells(ran, "code"))
        shown = list(data(ran))
        assert sum("text/html" in each for each in shown) > 3
        assert sum(PLOTLY in each for each in shown) == 6
        streams = [each for cell in cells(ran, "code") for each in cell.outputs if each.output_type == "stream"]
        assert [each.text for each in streams if each.name == "stderr"] == []

    @pytest.mark.slow
    def test_a_cell_that_fails_is_noticed(self, tmp_path: Path) -> None:
        notebook = read()
        cells(notebook, "code")[0].source = "1 / 0"
        with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
            run(notebook, tmp_path)

    @pytest.mark.slow
    def test_says_what_is_so(self, demo: Report) -> None:  # noqa: F811, the fixture
        """What the text says of the trace without numbers."""
        first, second = demo.devices
        assert first.idle_ns > first.window_ns / 2
        assert second.exposed_comm_ns > second.window_ns / 2
        assert [phase.judged for phase in demo.phases] == [False, True]
        assert demo.findings[0].title.startswith(f"{first.key} is late")
        assert max(first.ledger, key=first.ledger.__getitem__) == "io_wait"
        assert first.root_ledger["data_loading"] > first.ledger["io_wait"] / 2
        gaps = nsysdiag.all_gaps(demo).query("device == 'gpu0'")["length_ns"].sort_values()
        assert gaps.tail(30).sum() > gaps.sum() / 2
        assert len(gaps) > 1000


class TestThePage:
    @staticmethod
    def listed() -> set[str]:
        page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
        rows = page.partition("| name |")[2].partition("\n\n")[0]
        return set(re.findall(r"^\| `([^`]+)` \|", rows, flags=re.MULTILINE))

    @pytest.mark.slow
    def test_lists_every_figure_and_no_other(self, demo: Report) -> None:  # noqa: F811, the fixture
        reports = [demo, *(SAMPLES[name]() for name in ("one_device", "several_devices", "priced"))]
        found: set[str] = set()
        others = [COMPARISONS["one"], COMPARISONS["bare"], *WHATIFS.values(), ranks_report]
        for result in (*reports, *(make() for make in others)):
            keys = [device.key for device in getattr(result, "devices", [])]
            for name in nsysdiag.figures(result):
                general = "/".join("GPU" if part in keys else part for part in name.split("/"))
                found.add(re.sub("^what-if/.*", "what-if/FINDING", general))
        assert found == self.listed()

    @pytest.mark.slow
    def test_a_figure_is_kept_as_it_says(self, demo: Report, tmp_path: Path) -> None:  # noqa: F811, the fixture
        figure = nsysdiag.figures(demo)["gpu0/iterations"]
        figure.update_layout(title_text="Before the fix", width=900)
        figure.write_html(tmp_path / "iterations.html")
        page = (tmp_path / "iterations.html").read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link)[^>]* (?:src|href)=", page) == []
        figure.write_json(tmp_path / "iterations.json")
        assert plotly.io.read_json(tmp_path / "iterations.json") == figure

    def test_names_what_there_is(self) -> None:
        page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
        assert all(hasattr(nsysdiag, name) for name in re.findall(r"nsysdiag\.(\w+)\(", page))
