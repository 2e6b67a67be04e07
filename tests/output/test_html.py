"""The page: complete by itself, deaf to the names in it, and usable by everybody."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from nsysdiag.document.names import visible
from nsysdiag.findings.show import finding_markdown
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.assets import content_hash
from nsysdiag.messages import InputError
from nsysdiag.report import Report
from tests.output.carrying import from_carried
from tests.output.page import Element, parse
from tests.output.rendered import EVERY_SAMPLE, rendered, tree
from tests.output.samples import HOSTILE, SAMPLES, US, device, finding, iterations, report

every_sample = pytest.mark.parametrize("sample", EVERY_SAMPLE)
NORMAL_SIZE = 1_500_000


@every_sample
class TestAlone:
    """Nothing is fetched, and nothing runs but what the page itself brought."""

    @pytest.mark.slow
    def test_refers_to_nothing_outside(self, sample: str) -> None:
        for element in tree(sample).walk():
            for name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction"):
                assert element.attributes.get(name, "#").startswith(("#", "data:,"))

    @pytest.mark.sampled(quick=4)
    def test_loads_nothing_by_style(self, sample: str) -> None:
        for style in tree(sample).all("style"):
            assert not re.search(r"@import|url\(|expression\(|@font-face", style.text)

    def test_has_only_known_elements(self, sample: str) -> None:
        dangerous = {"iframe", "object", "embed", "base", "form", "img", "video", "audio", "foreignobject", "use"}
        assert not dangerous & {element.tag for element in tree(sample).walk()}

    def test_has_no_inline_handlers_or_styles(self, sample: str) -> None:
        for element in tree(sample).walk():
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]

    @pytest.mark.sampled(quick=3)
    def test_policy_allows_exactly_its_own_scripts_and_styles(self, sample: str) -> None:
        root = tree(sample)
        policies = [meta for meta in root.all("meta") if "http-equiv" in meta.attributes]
        (policy,) = (meta.attributes["content"] for meta in policies)
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
        ours = [script for script in root.all("script") if not script.attributes]
        packed = [_unpacked(script) for script in root.all("script") if script.attributes.get("type") == "text/plain"]
        assert rules["script-src"].split() == [_hash(script) for script in ours] + [
            content_hash(source) for source in packed
        ]
        kinds = {script.attributes["type"] for script in root.all("script") if script.attributes}
        assert kinds <= {"application/json", "text/plain"}
        assert rules["style-src"].split() == [_hash(style) for style in root.all("style")]
        assert "unsafe" not in policy

    def test_anchors_lead_somewhere_and_ids_are_unique(self, sample: str) -> None:
        ids = Counter(element.attributes["id"] for element in tree(sample).walk() if "id" in element.attributes)
        assert not [identifier for identifier, count in ids.items() if count > 1]
        wanted = {element.attributes["href"][1:] for element in tree(sample).all("a")}
        wanted |= {
            element.attributes[name]
            for element in tree(sample).walk()
            for name in REFERENCES & element.attributes.keys()
        }
        assert wanted <= set(ids)


REFERENCES = {"aria-labelledby", "data-copy"}


def _unpacked(script: Element) -> str:
    either_format = zlib.MAX_WBITS + 32
    return zlib.decompress(from_carried(script.text), either_format).decode()


def _hash(element: Element) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()}'"


class TestHostileNames:
    def test_bring_no_element(self) -> None:
        root = tree("hostile")
        assert len(root.all("script")) == len(tree("one_device").all("script"))
        assert not root.all("b", "img")

    def test_are_shown_as_they_are(self) -> None:
        shown = tree("hostile").whole_text()
        for name in HOSTILE:
            assert visible(name) in shown

    @pytest.mark.slow
    def test_bring_no_attribute(self) -> None:
        known = {name for sample in ("one_device", "several_devices") for name in _attributes(sample)}
        assert _attributes("hostile") <= known

    @pytest.mark.slow
    def test_choose_no_class_id_or_colour(self) -> None:
        for element in tree("hostile").walk():
            for name in ("class", "id", "href", "fill", "data-copy", "for", "aria-labelledby"):
                assert re.fullmatch(r"[#\w .:,-]*", element.attributes.get(name, ""), re.ASCII)

    def test_leave_no_control_characters(self) -> None:
        assert all(line.isprintable() for line in rendered("html", "hostile").decode().split("\n"))


def _attributes(sample: str) -> set[str]:
    return {name for element in tree(sample).walk() for name in element.attributes}


def _cells(row: Element) -> list[str]:
    return [" ".join(cell.whole_text().split()) for cell in row.all("th", "td")]


def _words(element: Element) -> str:
    """The text in the order of the page, on one line."""
    return " ".join([*element.text.split(), *(_words(child) for child in element.children)])


def _findings(made: Report) -> list[Element]:
    root = parse(FORMATS["html"].render(made, RenderOptions()))
    return [each for each in root.all("article") if "finding" in each.attributes["class"].split()]


def _folds(article: Element) -> bool:
    return any(each.attributes["class"] == "more" for each in article.all("details"))


def _section(sample: str, anchor: str) -> Element:
    return next(section for section in tree(sample).all("section") if section.attributes["id"] == anchor)


class TestContent:
    @every_sample
    def test_begins_with_the_verdict(self, sample: str) -> None:
        first = next(element for element in tree(sample).walk() if element.attributes.get("class") == "verdict")
        found = SAMPLES[sample]().diagnosis
        assert found is not None
        assert visible(found.headline)[:60] in first.text

    @pytest.mark.slow
    def test_footer_has_what_it_is_given(self) -> None:
        options = RenderOptions(source="a/b.sqlite", command="nsysdiag analyze", created="yesterday")
        text = parse(FORMATS["html"].render(SAMPLES["one_device"](), options)).all("footer")[0].whole_text()
        for part in ("a/b.sqlite", "nsysdiag analyze", "yesterday", "b1946ac92492d2347c6235b4d2611184"):
            assert part in text

    @pytest.mark.slow
    def test_finding_anchors_are_stable_and_apart(self) -> None:
        made = report([device()], [finding("f-a b"), finding("f-a-b"), finding("plain"), finding("")])
        articles = parse(FORMATS["html"].render(made, RenderOptions())).all("article")
        ids = [article.attributes["id"] for article in articles if "id" in article.attributes]
        assert ids == ["f-a-b", "f-a-b-2", "f-plain", "f-"]

    def test_a_finding_can_be_copied_as_markdown(self) -> None:
        made = SAMPLES["one_device"]()
        copies = [pre.text for pre in tree("one_device").all("pre") if pre.attributes["id"].endswith("-markdown")]
        assert copies == [finding_markdown(made, found) for found in made.findings]

    @pytest.mark.slow
    def test_what_a_fix_saves_comes_first_or_else_what_it_takes(self) -> None:
        made = [finding("f-1"), finding("f-2", saves=None)]
        first, second = _findings(report([device()], made))
        assert "saves up to 12.0% of a step (600 µs)" in _words(first)
        assert "Takes 18.0% of the judged time" in _words(first)
        assert "saves" not in _words(second)
        assert "18.0% of the judged time" in _words(second)

    @pytest.mark.slow
    def test_less_pressing_findings_fold_their_evidence(self) -> None:
        severities = ("high", "high", "high", "medium", "odd")
        made = [finding(f"f-{at}", severity=severity) for at, severity in enumerate(severities)]
        folded = [_folds(article) for article in _findings(report([device()], made))]
        assert folded == [False, False, True, True, True]

    @pytest.mark.slow
    def test_the_first_finding_shows_its_evidence_whatever_its_severity(self) -> None:
        made = [finding(f"f-{at}", severity="low") for at in range(2)]
        assert [_folds(article) for article in _findings(report([device()], made))] == [False, True]

    @pytest.mark.slow
    def test_the_same_on_another_device_refers_to_the_first(self) -> None:
        made = [finding("f-a"), finding("f-b", device="gpu1"), finding("f-c", device="gpu1", advice=["Else."])]
        first, same, other = _findings(report([device(), device(1)], made))
        assert [_folds(each) for each in (first, same, other)] == [False, True, True]
        links = [link.attributes["href"] for link in same.all("a") if link.attributes.get("class") != "anchor"]
        assert links == ["#f-a"]
        assert "Same as on gpu0, above" in _words(same)
        assert "Same as" not in _words(other)

    def test_a_kind_of_gap_outside_all_iterations_costs_none_of_them(self) -> None:
        base = device().signatures[0]
        rows = [msgspec.structs.replace(base, id=f"s-{ns}", per_iteration_ns=ns) for ns in (0, 5 * US)]
        root = parse(FORMATS["html"].render(report([device(signatures=rows)], []), RenderOptions()))
        section = next(each for each in root.all("section") if each.attributes["id"] == "signatures")
        assert sorted(_cells(row)[2] for row in section.all("tbody")) == ["5.00 µs", "–"]

    @pytest.mark.slow
    def test_columns_about_a_chip_of_unknown_size_are_left_out(self) -> None:
        known = device().utilization
        kernels = [msgspec.structs.replace(row, blocks_per_sm=None, resident_share=None) for row in known.kernels]
        blind = device(utilization=msgspec.structs.replace(known, kernels=kernels))
        shown = [
            parse(FORMATS["html"].render(report([each], []), RenderOptions())).whole_text()
            for each in (device(), blind)
        ]
        assert ["An SM holds" in text for text in shown] == [True, False]

    def test_damaged_gaps_are_the_inputs_fault(self) -> None:
        bad = msgspec.structs.replace(device().gaps_packed, lengths="AAAA")
        with pytest.raises(InputError, match="damaged"):
            FORMATS["html"].render(report([device(gaps_packed=bad)], []), RenderOptions())

    def test_an_iteration_that_the_report_does_not_list_has_no_start(self) -> None:
        made = device(iterations=iterations(rows=[]))
        root = parse(FORMATS["html"].render(report([made], []), RenderOptions()))
        section = next(each for each in root.all("section") if each.attributes["id"] == "iterations")
        assert _cells(section.all("tbody")[0])[:3] == ["6", "–", "5.00 ms"]
        assert not section.all("figure")

    def test_without_slow_iterations_it_says_so(self) -> None:
        made = device(iterations=iterations(slow=[]))
        shown = parse(FORMATS["html"].render(report([made], []), RenderOptions())).whole_text()
        assert "None is much longer than the median." in shown

    @pytest.mark.slow
    def test_long_lists_are_thinned_and_say_so(self) -> None:
        text = tree("long_lists").whole_text()
        assert "The 60 longest of 300 gaps; the report as JSON or CSV holds 300" in text
        assert "100 of 400 names, those with most time." in text
        assert "the 50 with the most time of 200" in text
        assert "The 200 longest of 5,000 iterations, in order." in text

    @pytest.mark.slow
    def test_many_iterations_stay_small(self) -> None:
        section = _section("long_lists", "iterations")
        assert len(section.all("path")) == 5  # one a colour
        drawn = "".join(path.attributes["d"] for path in section.all("path"))
        assert len(drawn) < 100_000

    @every_sample
    def test_size(self, sample: str) -> None:
        assert len(rendered("html", sample)) < NORMAL_SIZE


@every_sample
class TestForEverybody:
    @pytest.mark.sampled(quick=3)
    def test_landmarks(self, sample: str) -> None:
        root = tree(sample)
        for tag in ("main", "nav", "header", "footer", "h1"):
            assert root.all(tag)
        assert len(root.all("h1")) == len(root.all("main")) == 1
        assert root.all("html")[0].attributes["lang"] == "en"
        assert root.all("body")[0].children[0].attributes == {"class": "skip", "href": "#main"}

    def test_headings_skip_no_level(self, sample: str) -> None:
        levels = [int(heading.tag[1]) for heading in tree(sample).all("h1", "h2", "h3", "h4")]
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_tables_have_captions_and_scopes(self, sample: str) -> None:
        for table in tree(sample).all("table"):
            assert len(table.all("caption")) == 1
            assert all("scope" in header.attributes for header in table.all("th"))
            columns = len(table.all("thead")[0].all("th"))
            for row in table.all("tr"):
                cells = [cell for cell in row.children if cell.tag in ("td", "th")]
                assert sum(int(cell.attributes.get("colspan", "1")) for cell in cells) == columns

    def test_pictures_have_names(self, sample: str) -> None:
        outermost = [svg for svg in tree(sample).all("svg") if svg.parent and svg.parent.tag != "svg"]
        for svg in outermost:
            inside = [element for element in svg.walk() if element.tag == "svg"]
            named = any({"aria-label", "aria-hidden"} & element.attributes.keys() for element in inside)
            assert named or _inside_named(svg)

    def test_controls_without_scripts_are_hidden(self, sample: str) -> None:
        for button in tree(sample).all("button", "input"):
            assert _is_hidden(button)


def _inside_named(element: Element) -> bool:
    return element.parent is not None and ("aria-label" in element.parent.attributes or _inside_named(element.parent))


def _is_hidden(element: Element) -> bool:
    return "hidden" in element.attributes or (element.parent is not None and _is_hidden(element.parent))
