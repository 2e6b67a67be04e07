"""`nsysdiag compare`: what goes where, what is refused, and what two redacted sides still have in common."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from nsysdiag.comparison.facts import Comparison
from nsysdiag.saved import from_json
from tests.comparison.programs import Program
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]

SLOW = Program(steps=12, sync=True, tail=500 * US)
FAST = Program(steps=12, seed=1)


@pytest.fixture
def traces(folder: Path) -> list[str]:
    """A program that synchronizes at every step, and after that was taken out."""
    return [SLOW.write(folder / "before.sqlite").name, FAST.write(folder / "after.sqlite").name]


def compared(cli: Cli, *arguments: object) -> Comparison:
    result = cli("compare", *arguments, "-o", "-", "--format", "json")
    assert (result.code, result.stderr) == (0, "")
    return from_json(result.stdout, Comparison)


def without_inputs(made: Comparison) -> Comparison:
    """The same, as of the traces themselves."""
    sides = [[structs.replace(trace, given="") for trace in side] for side in (made.before, made.after)]
    return structs.replace(made, before=sides[0], after=sides[1])


def test_no_output_writes_html_here_and_a_summary(cli: Cli, traces: list[str], folder: Path) -> None:
    result = cli("compare", *traces)
    assert result.code == 0
    assert result.stderr == "wrote compare.nsysdiag.html\n"
    text = result.stdout.decode()
    assert "1.49× faster, 95% CI 1." in text or "1.50× faster, 95% CI 1." in text
    assert "synchronization -4" in " ".join(text.split())
    assert len(text.splitlines()) <= 25
    page = (folder / "compare.nsysdiag.html").read_bytes()
    assert b"nsysdiag compare before.sqlite after.sqlite" in page
    assert cli("compare", *traces).code == 0  # its own file may be overwritten


def test_details_have_every_section(cli: Cli, traces: list[str]) -> None:
    brief, whole = (
        cli("compare", *traces, "-o", "-", "--format", "txt", *more).stdout for more in ((), ("--details",))
    )
    assert "95% interval -" in " ".join(whole.decode().split())
    assert b"Gap groups" in whole
    assert b"Gap groups" not in brief


def test_budgets_judge_the_numbers_of_other_work(cli: Cli, traces: list[str], folder: Path) -> None:
    """More work is no plain regression, and still longer."""
    replace(SLOW, layers=12, seed=3).write(folder / "more.sqlite")
    result = cli("compare", traces[0], "more.sqlite", "-o", "-", "--format", "txt", "--fail-on", "length:+50%")
    assert result.code == 1
    assert "Mixed: Not the same work per step: kernels 18 → 36 (2.0×)" in result.stdout.decode()


def test_every_format(cli: Cli, traces: list[str], folder: Path) -> None:
    outputs = [word for suffix in ("html", "json", "md", "txt") for word in ("-o", f"out.{suffix}")]
    assert cli("compare", *traces, *outputs).code == 0
    assert {path.name for path in folder.glob("out.*")} == set(outputs[1::2])


def test_traces_and_saved_reports_tell_the_same(cli: Cli, traces: list[str], folder: Path) -> None:
    for trace in traces:
        assert cli("analyze", trace, "-o", f"{trace}.json", "-q").code == 0
    whole = compared(cli, *traces)
    assert whole.verdict == "improved"
    for inputs in (("before.sqlite.json", "after.sqlite.json"), ("before.sqlite", "after.sqlite.json")):
        made = compared(cli, *inputs)
        given = [side[0].given or side[0].file for side in (made.before, made.after)]
        assert given == [*inputs]
        assert without_inputs(made) == whole


def test_a_saved_comparison_has_other_formats(cli: Cli, traces: list[str], folder: Path) -> None:
    assert cli("compare", *traces, "-o", "c.json", "-o", "direct.html", "-o", "direct.md", "-q").code == 0
    assert cli("render", "c.json", "-o", "later.html", "-o", "later.md", "-q").code == 0
    for suffix in ("html", "md"):
        assert (folder / f"later.{suffix}").read_bytes() == (folder / f"direct.{suffix}").read_bytes()


@pytest.mark.thorough
def test_several_captures_a_side(cli: Cli, traces: list[str], folder: Path) -> None:
    for seed in (2, 3):
        replace(SLOW, seed=seed).write(folder / f"before{seed}.sqlite")
        replace(FAST, seed=seed).write(folder / f"after{seed}.sqlite")
    more = ["--before", "before2.sqlite", "--before", "before3.sqlite", "--after", "after2.sqlite"]
    made = compared(cli, *traces, *more, "--after", "after3.sqlite")
    assert [len(side) for side in (made.before, made.after)] == [3, 3]
    assert made.verdict == "improved"
    assert made.devices[0].unit.count_before > 30
    by_options = compared(cli, "--before", traces[0], "--after", traces[1])
    assert by_options == compared(cli, *traces)


class TestFooter:
    """The command that makes the page again: from the files that were given."""

    @pytest.fixture
    def saved(self, cli: Cli, traces: list[str]) -> list[str]:
        for trace in traces:
            assert cli("analyze", trace, "-o", f"{trace[:-7]}.json", "-q").code == 0
        return ["before.json", "after.json"]

    @pytest.mark.parametrize("suffix", ["html", "md", "txt"])
    def test_names_saved_reports(self, suffix: str, cli: Cli, saved: list[str], folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "before.json").rename(folder / "sub" / "old one.json")
        given = ["sub/old one.json", "after.json", "--after", "after.sqlite"]
        assert cli("compare", *given, "-o", f"c.{suffix}", "-o", "c.json", "-q").code == 0
        text = html.unescape((folder / f"c.{suffix}").read_text())
        assert "nsysdiag compare 'old one.json' after.json --after after.sqlite" in text
        assert cli("render", "c.json", "-o", f"again.{suffix}", "-q").code == 0
        assert (folder / f"again.{suffix}").read_bytes() == (folder / f"c.{suffix}").read_bytes()

    def test_has_stand_ins_for_their_names(self, cli: Cli, saved: list[str], folder: Path) -> None:
        assert cli("compare", *saved, "--redact", "-o", "c.html", "-q").code == 0
        page = (folder / "c.html").read_text()
        assert "nsysdiag compare &#39;file 3&#39; &#39;file 4&#39; --redact" in page
        assert not re.search(r"(before|after)\.(json|sqlite)", page)


class TestRedacted:
    def test_both_sides_have_the_same_stand_ins(self, cli: Cli, traces: list[str]) -> None:
        plain, made = compared(cli, *traces), compared(cli, *traces, "--redact")
        assert made.settings == {"redacted": "numbered"}
        assert [row.status for row in made.devices[0].kernels] == [row.status for row in plain.devices[0].kernels]
        assert "ampere_sgemm" not in json.dumps(made.devices[0].kernels, default=repr)
        assert made.devices[0].waterfall == plain.devices[0].waterfall

    def test_no_name_is_in_any_format(self, cli: Cli, traces: list[str], folder: Path) -> None:
        outputs = [word for suffix in ("html", "json", "md", "txt") for word in ("-o", f"out.{suffix}")]
        assert cli("compare", *traces, *outputs, "--redact", "-q").code == 0
        for path in folder.glob("out.*"):
            data = path.read_bytes()
            assert [name for name in (b"before.sqlite", b"sgemm", b"log_metrics", b"layer_norm") if name in data] == []

    @pytest.mark.parametrize("redacted", [("before.sqlite", "after.sqlite"), ("before.sqlite",), ("after.sqlite",)])
    def test_numbers_of_two_reports_are_not_the_same_names(
        self, cli: Cli, traces: list[str], redacted: tuple[str, ...]
    ) -> None:
        for trace in traces:
            options = ["--redact"] if trace in redacted else []
            assert cli("analyze", trace, *options, "-o", f"{trace}.json", "-q").code == 0
        result = cli("compare", "before.sqlite.json", "after.sqlite.json")
        assert result.code == 5
        assert "a redacted report has numbers instead of names" in result.stderr
        assert "compare the traces themselves with --redact" in result.stderr

    @pytest.mark.parametrize(
        ("step", "said"), [("count=4", "--step count=4"), ("kernel=ampere_sgemm_128x64_tn", "--step 'pattern 1'")]
    )
    def test_the_repeated_command_keeps_the_steps(self, cli: Cli, traces: list[str], step: str, said: str) -> None:
        result = cli("compare", *traces, "--redact", "--step", step, "--format", "md", "-o", "-", "-q")
        assert f"{said} --redact".encode() in result.stdout

    def test_a_redacted_report_cannot_be_redacted_again(self, cli: Cli, traces: list[str]) -> None:
        assert cli("analyze", traces[0], "--redact", "-o", "r.json", "-q").code == 0
        result = cli("compare", "r.json", "r.json", "--redact", "-o", "c.html")
        assert result.code == 5
        assert "a redacted report has numbers instead of names" in result.stderr

    def test_a_saved_comparison_cannot_be_redacted(self, cli: Cli, traces: list[str]) -> None:
        assert cli("compare", *traces, "-o", "c.json", "-q").code == 0
        result = cli("render", "c.json", "--redact", "-o", "c.html")
        assert result.code == 2
        assert "a saved comparison cannot be redacted" in result.stderr


def test_the_help_names_the_formats_that_there_are(cli: Cli) -> None:
    told = " ".join(cli("compare", "--help").stdout.decode().split())
    assert "html, json, md or txt" in told
    assert not re.search("csv|prom|perfetto", told)


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "BEFORE and AFTER is missing"),
            (["before.sqlite"], "AFTER is missing"),
            (["before.sqlite", "after.sqlite", "--after", "after.sqlite"], "after.sqlite is named twice on one side"),
            (["before.sqlite", "after.sqlite", "-o", "x.csv"], "a comparison cannot be written as csv"),
            (["before.sqlite", "after.sqlite", "--format", "prom"], "a comparison cannot be written as prom"),
            (["before.sqlite", "after.sqlite", "-o", "-", "--format", "perfetto"], "cannot be written as perfetto"),
            (["before.sqlite", "after.sqlite", "-o", "-", "--format", "yaml"], "unknown format 'yaml'"),
            (["before.sqlite", "after.sqlite", "-o", "-"], "add --format with one of html, json, md, txt"),
            (["before.sqlite", "after.sqlite", "-o", "x.yaml"], "the suffixes are: .html, .json, .md, .txt"),
            (["before.sqlite", "after.sqlite", "-o", "before.sqlite"], "no format has the suffix"),
            (["before.sqlite", "after.sqlite", "--redact-key", "K"], "names are numbered by --redact alone"),
        ],
    )
    def test_wrong_use(self, arguments: list[str], said: str, cli: Cli, traces: list[str]) -> None:
        result = cli("compare", *arguments)
        assert result.code == 2
        assert said in result.stderr
        assert [each for each in ("csv", "prom", "perfetto") if each in result.stderr.partition("\n")[2]] == []

    def test_no_unit_of_work_in_common(self, cli: Cli, traces: list[str], folder: Path) -> None:
        from tests.builder import TraceBuilder

        other = TraceBuilder().kernel(1_000, 2_000, name="quite_another", launch=(500, 900))
        other.write(folder / "other.sqlite")
        result = cli("compare", "before.sqlite", "other.sqlite", "--across-gpus")
        assert result.code == 5
        assert "have no unit of work in common" in result.stderr
        assert not list(folder.glob("*.html"))

    def test_another_gpu(self, cli: Cli, traces: list[str], folder: Path) -> None:
        sim = FAST.simulated()
        sim.gpus[0].name = "NVIDIA H100 80GB HBM3"
        sim.write(folder / "h100.sqlite")
        result = cli("compare", "before.sqlite", "h100.sqlite")
        assert result.code == 5
        assert "the GPUs are of different models: NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3" in result.stderr
        assert "--across-gpus" in result.stderr
        made = compared(cli, "before.sqlite", "h100.sqlite", "--across-gpus")
        assert any("different models" in note for note in made.notes)

    def test_what_is_no_report_of_one_trace(self, cli: Cli, traces: list[str], folder: Path) -> None:
        assert cli("compare", *traces, "-o", "c.json", "-q").code == 0
        result = cli("compare", "c.json", "after.sqlite")
        assert result.code == 3
        assert "not of one trace" in result.stderr

    def test_no_trace(self, cli: Cli, traces: list[str], folder: Path) -> None:
        (folder / "empty.sqlite").touch()
        assert cli("compare", "before.sqlite", "empty.sqlite").code == 3
        assert cli("compare", "before.sqlite", "missing.sqlite").code == 3


def test_evidence_on_one_side_alone(cli: Cli, folder: Path) -> None:
    starved = Program(steps=12, workers=1)
    starved.write(folder / "before.sqlite")
    replace(starved, seed=1).write(folder / "after.sqlite", CUDA_ONLY)
    made = compared(cli, "before.sqlite", "after.sqlite")
    assert made.verdict == "same"
    assert {"io_wait", "off_cpu", "uncovered", "data_loading"} <= set(made.not_compared)
    assert "sync" not in made.not_compared
    assert [row.change.verdict for row in made.devices[0].ledger if row.id == "not_compared"] == ["same"]
    assert not {row.id for row in made.devices[0].ledger} & set(made.not_compared)
    assert sum("evidence" in note for note in made.notes) == 3
