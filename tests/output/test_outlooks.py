"""What if: a step now above a step without the problem of a finding, in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.document.blocks import Chart, Command, Details, Section
from nsysdiag.document.drawings import StackedBar, Stacks
from nsysdiag.document.svg import segments
from nsysdiag.document.view import Context
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.phrases import finished
from nsysdiag.record import to_json
from nsysdiag.replay.show.outlooks import CAVEAT, LATE, MOST_CAUSES, MOST_FINDINGS, section
from nsysdiag.report import Outlook, Report
from nsysdiag.saved import from_json
from nsysdiag.share.redaction import redacted
from tests.output.page import Element, parse, unexplained
from tests.output.reader import Reader
from tests.output.samples import MS, REPLAYED, SAMPLES, US, device, finding, outlook, report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.output.browser import Chromium

SAID = "The input pipeline is late · saves 31 to 36% of a step (replay)"
TEXT = f"{SAID}: 5.00 → 3.25 ms."
COMMAND = "nsysdiag whatif train.sqlite --finding f-input-9z"


def one(*outlooks: Outlook) -> Report:
    return replace(SAMPLES["one_device"](), outlooks=list(outlooks))


def several(count: int) -> Report:
    """A report of one GPU with so many predicted findings."""
    findings = [finding(f"f-{at}", title=f"Problem {at}", saves=REPLAYED) for at in range(count)]
    return replace(report([device()], findings), outlooks=[outlook(each.id) for each in findings])


def made(held: Report) -> Section:
    found = section(Context.of(held))
    assert found is not None
    return found


def drawn(held: Report) -> list[StackedBar]:
    charts = [each.drawing for each in made(held).blocks if isinstance(each, Chart)]
    return [bar for each in charts if isinstance(each, Stacks) for _title, bar in each.rows]


def page(held: Report) -> Element:
    return parse(FORMATS["html"].render(held, RenderOptions()))


def on_page(held: Report) -> list[Element]:
    return [each for each in page(held).all("section") if each.attributes["id"] == "what-if"]


def written(held: Report, name: str, *, details: bool = False) -> str:
    shown = FORMATS[name].render(held, RenderOptions(width=200, details=details)).decode()
    return " ".join(shown.split())


def widths(strip: StackedBar) -> list[float]:
    return [float(each.width.rstrip("%")) for each in segments(strip)]


class TestTheFirstFinding:
    @pytest.mark.slow
    def test_is_said_with_its_bounds_and_both_lengths(self) -> None:
        (found,) = on_page(one(outlook("f-input-9z")))
        assert found.all("strong")[0].text == SAID
        labels = [each.text for each in found.all("p") if each.attributes.get("class") == "quiet"]
        assert labels[:2] == ["Now: 5.00 ms", "Predicted: 3.25 ms"]

    @pytest.mark.slow
    def test_is_drawn_without_scripts_on_one_scale(self) -> None:
        held = one(outlook("f-input-9z"))
        now, predicted = drawn(held)
        assert (sum(widths(now)), sum(widths(predicted))) == (pytest.approx(100), pytest.approx(65))
        assert [each.label for each in now.segments[3:]] == ["Waiting in a synchronisation", "Waiting for a lock"]
        assert now.segments[3].color == "#d1495b"
        assert [each.label for each in predicted.segments[3:]] == ["Waiting for a lock"]
        (found,) = on_page(held)
        assert len([each for each in found.all("svg") if each.attributes.get("class") == "stack"]) == 2
        assert [each for each in found.all("details") if each.attributes.get("class") != "bottleneck"] == []

    @pytest.mark.slow
    def test_follows_what_to_fix_first(self) -> None:
        sections = [each.attributes["id"] for each in page(one(outlook("f-input-9z"))).all("section")]
        assert sections[:3] == ["diagnosis", "what-if", "findings"]

    def test_is_the_first_of_the_report(self) -> None:
        held = several(3)
        assert made(replace(held, outlooks=held.outlooks[::-1])) == made(held)

    def test_follows_the_leading_one_of_which_the_trace_cannot_tell(self) -> None:
        held = several(2)
        unsure = finding("f-unsure", title="First", saves=replace(REPLAYED, low_ns=0, cannot_tell=True))
        leads, follows = (replace(held, findings=each) for each in ([unsure, *held.findings], [*held.findings, unsure]))
        assert ": the trace cannot tell how much. Problem 0 · saves" in written(leads, "txt", details=True)
        assert made(follows).blocks[0] == made(held).blocks[0]

    def test_has_its_command_in_the_same_part_of_the_trace(self) -> None:
        held = replace(one(outlook("f-input-9z")), settings={"gaps": 5, "iterations": [2, 9], "start_ns": 7})
        (command,) = (each for each in made(held).blocks if isinstance(each, Command))
        assert command.text.startswith(f"{COMMAND} ")
        assert "--from 7ns" in command.text
        assert "--gaps" not in command.text

    def test_of_several_gpus_the_strips_say_which(self) -> None:
        assert drawn(SAMPLES["several_devices"]())[0].label.startswith("A step of gpu0 now")

    @pytest.mark.slow
    def test_of_a_window(self) -> None:
        held = one(replace(outlook("f-input-9z"), per="window"))
        assert drawn(held)[1].label.startswith("The window predicted")
        assert "mean of the steps" not in on_page(held)[0].whole_text()

    @pytest.mark.slow
    def test_says_that_waiting_for_late_gpus_is_communication(self) -> None:
        """Elsewhere on the page it is charged to what made them late."""
        held = SAMPLES["several_devices"]()
        waiting, none = (
            [replace(phase, devices=[replace(each, late_ns=late) for each in phase.devices]) for phase in held.phases]
            for late in (1_000, 0)
        )
        assert waiting
        sections = [on_page(replace(held, phases=phases))[0].whole_text() for phases in (waiting, none)]
        assert [LATE.strip() in each for each in sections] == [True, False]


class TestTheOthers:
    def test_open_one_by_one(self) -> None:
        (found,) = on_page(several(3))
        folds = [each for each in found.all("details") if each.attributes.get("class") != "bottleneck"]
        assert [each.all("summary")[0].text.partition(" · ")[0] for each in folds] == ["Problem 1", "Problem 2"]
        assert [len(each.all("pre")) for each in folds] == [1, 1]
        assert all("open" not in each.attributes for each in folds)

    @pytest.mark.slow
    def test_are_counted_where_they_are_many(self) -> None:
        held = several(MOST_FINDINGS + 3)
        assert sum(isinstance(each, Details) for each in made(held).blocks) == MOST_FINDINGS
        assert "2 more findings with a prediction" in on_page(held)[0].whole_text()


class TestInWords:
    def test_text_has_it_in_its_details(self) -> None:
        held = one(outlook("f-input-9z"))
        assert TEXT not in written(held, "txt")
        assert f"What if {TEXT} {CAVEAT} More: {COMMAND}" in written(held, "txt", details=True)

    @pytest.mark.sampled
    @pytest.mark.parametrize("details", [False, True])
    def test_markdown_has_it(self, *, details: bool) -> None:
        shown = written(one(outlook("f-input-9z")), "md", details=details)
        assert f"## What if {TEXT} {CAVEAT} More: `{COMMAND}`" in shown

    @pytest.mark.parametrize("name", ["html", "txt", "md"])
    def test_what_is_left_out_is_said_once(self, name: str) -> None:
        assert unexplained(written(several(3), name, details=True)).count(CAVEAT) == 1


class TestNothingToShow:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "outlooks",
        [
            [],
            [outlook("f-sync-1a2b")],
            [outlook("f-nobody")],
            [Outlook("f-input-9z", "gpu0", "step", {}, {})],
            [Outlook("f-input-9z", "gpu0", "step", {"sync": -5, "compute": 0}, {"sync": 4})],
        ],
        ids=["none", "its saving is a bound", "no such finding", "empty", "nothing above zero"],
    )
    def test_no_section(self, outlooks: Sequence[Outlook]) -> None:
        held = one(*outlooks)
        assert on_page(held) == []
        assert "What if" not in written(held, "md", details=True) + written(held, "txt", details=True)

    @pytest.mark.slow
    def test_a_report_of_an_older_version(self) -> None:
        data = to_json(one()).replace(b'"outlooks"', b'"unknown_to_us"')
        assert on_page(from_json(data, Report)) == []


class TestDamagedReports:
    LARGEST = 2**63 - 1

    def saved(self, now: dict[str, int], predicted: dict[str, int], of: str = "gpu0") -> Report:
        found = Outlook("f-input-9z", of, "step", now, predicted)
        return from_json(to_json(one(found, outlook("f-input-9z"))), Report)

    def test_less_than_nothing_is_nothing(self) -> None:
        now, predicted = drawn(self.saved({"compute": 10, "sync": -90}, {"compute": -10, "sync": -1}))
        assert widths(now) == [100]
        assert predicted.segments == []

    def test_large_numbers(self) -> None:
        times = dict.fromkeys(["compute", "exposed_comm", "sync", "io_wait"], self.LARGEST)
        now, predicted = drawn(self.saved(times, {**times, "compute": 1}))
        assert sum(widths(now)) == pytest.approx(100)
        assert sum(widths(predicted)) == pytest.approx(75)

    def test_two_findings_of_one_id_are_drawn_once(self) -> None:
        held = several(2)
        assert made(replace(held, findings=held.findings[:1] * 2)) == made(replace(held, findings=held.findings[:1]))

    @pytest.mark.slow
    def test_more_causes_than_can_be_told_apart_are_one(self) -> None:
        times = {f"cause_{at}": 1_000 + at for at in range(5_000)}
        now, predicted = drawn(self.saved({**times, "compute": MS}, {**times, "compute": MS}))
        assert [each.label for each in now.segments[-2:]] == ["cause 4999", "Other idle time"]
        assert len(now.segments) == 1 + MOST_CAUSES + 1
        assert sum(each.ns for each in predicted.segments) == MS + sum(times.values())

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["html", "txt", "md"])
    def test_names_do_nothing(self, name: str) -> None:
        bad = "<script>alert(1)</script>\x1b[31m"
        shown = written(self.saved({bad: MS, "compute": MS}, {bad: US}, of=bad), name, details=True)
        assert "What if" in shown
        assert "<script>alert" not in shown
        assert "\x1b" not in shown


class TestRedacted:
    @pytest.mark.slow
    def test_nothing_leaks_and_it_is_still_drawn(self) -> None:
        secret = "acme_secret_step"
        name = finding("f-input-9z", title="Late in " + typed.nvtx(secret), saves=REPLAYED)
        held = replace(report([device()], [name]), phrases=None, outlooks=[outlook(name.id)])
        plain = replace(finished(held), trace=replace(held.trace, file="acme_secret.sqlite"))
        assert on_page(plain)[0].whole_text().count("acme_secret") == 2
        hidden = redacted(plain)
        (found,) = on_page(hidden)
        assert "saves 31 to 36% of a step (replay)" in found.whole_text()
        assert any("--redact" in each.text for each in found.all("pre"))
        for each in ("html", "txt", "md"):
            assert "acme_secret" not in written(hidden, each, details=True)


@pytest.mark.slow
@pytest.mark.browser
def test_without_scripts_and_on_paper(chromium: Chromium, tmp_path: Path) -> None:
    """The first finding is in view, another one opens when clicked, and paper has the first alone."""
    seen = "Array.from(document.querySelectorAll('#what-if .stack')).filter((each) => each.checkVisibility()).length"
    with Reader(chromium, width=390, scripts=False) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(several(2), RenderOptions()))
        reader.open(reader.file.as_uri())
        assert reader.value(seen) == 2
        reader.value("document.querySelector('#what-if details:not(.bottleneck) > summary').click()")
        assert reader.value(seen) == 4
        reader.media("print")
        assert reader.value(seen) == 2
