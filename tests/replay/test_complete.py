"""A prediction takes over what the report of its trace says, names in sentences as names."""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.phrases import Phrases, finished
from nsysdiag.replay.predict import complete
from nsysdiag.report import Report
from nsysdiag.share.redaction import redacted
from tests.output.samples import device, finding, one_device, report
from tests.output.whatif_samples import listing, whatif

TITLE = "Synchronization in " + typed.nvtx("acme " * 20, 60)


def analyzed() -> Report:
    return finished(report([device(0)], [finding("f-sync-0a1b2c", title=TITLE)]))


def test_titles_causes_settings_and_models_of_gpus() -> None:
    of = replace(analyzed(), settings={"gaps": 10})
    bare = replace(listing(), causes=[], savings=[replace(each, title="") for each in listing().savings])
    made = complete(bare, of)
    assert [each.title for each in made.savings] == [of.findings[0].title, "", "", ""]
    assert (made.causes, made.settings) == (of.causes, {"gaps": 10})
    known = complete(whatif(), of).devices[0]
    assert known.name == of.devices[0].name


def test_names_in_them_stay_names() -> None:
    made = complete(replace(listing(), savings=[replace(listing().savings[0], title="")]), analyzed())
    assert made.savings[0].title == f"Synchronization in {('acme ' * 20)[:60]}"
    assert redacted(made).savings[0].title == "Synchronization in range 1"


def test_sentences_of_its_own_may_have_names_too() -> None:
    said = replace(whatif(), caveats=["Not predicted: " + typed.kernel("acme_gemm")])
    made = complete(said, one_device())
    assert made.caveats == ["Not predicted: acme_gemm"]
    assert "acme" not in redacted(made).caveats[0]


def test_phrases_with_braces() -> None:
    phrases = Phrases(names={"file": ["a{0}"]}, sentences=["{{x}} {file[0]}"])
    assert {key: typed.plain(value) for key, value in phrases.typed().items()} == {"{x} a{0}": "{x} a{0}"}
