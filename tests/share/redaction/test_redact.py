"""A redacted report differs from the plain one in names alone."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from nsysdiag import pipeline, typed
from nsysdiag.fields import TextKind
from nsysdiag.messages import InputError
from nsysdiag.phrases import Phrases, finished
from nsysdiag.ranks.pipeline import analyze_ranks
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from nsysdiag.share.redaction import _renamed, is_redacted, redacted
from tests.output import samples
from tests.ranks.run import MS, files

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Two ranks of a training whose workers are too slow."""
    path = tmp_path_factory.mktemp("redacted") / "train_secret.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / "sim_starved_training.sqlite.gz").read_bytes()))
    return pipeline.analyze(path)


def without_texts(value: Any) -> Any:
    """Numbers, structure and what dictionaries hold, in order; every text is left out."""
    if isinstance(value, dict):
        return [without_texts(each) for each in value.values()]
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    return None if isinstance(value, str) else value


def as_plain_data(report: Report) -> Any:
    return msgspec.to_builtins(replace(report, settings={}))


@pytest.mark.slow
def test_all_numbers_stay(plain: Report) -> None:
    assert without_texts(as_plain_data(redacted(plain))) == without_texts(as_plain_data(plain))


@pytest.mark.slow
def test_verdict_ledger_and_causes_stay(plain: Report) -> None:
    made = redacted(plain)

    def told(device: DeviceReport) -> Any:
        causes = [(row.cause, row.count) for row in device.signatures]
        api = [row.name for row in device.launch.api]
        kinds = [row.kind for row in device.communication.kinds]
        return device.key, device.name, device.verdict, device.ledger, device.root_ledger, causes, api, kinds

    assert [told(device) for device in made.devices] == [told(device) for device in plain.devices]
    advice = [[text for text in each.advice if " --kernel-name " not in text] for each in plain.findings]
    assert [(each.cause, each.severity) for each in made.findings] == [
        (each.cause, each.severity) for each in plain.findings
    ]
    assert [[text for text in each.advice if " --kernel-name " not in text] for each in made.findings] == advice
    assert made.causes == plain.causes


@pytest.mark.slow
def test_different_kernels_stay_different(plain: Report) -> None:
    for before, after in zip(plain.devices, redacted(plain).devices, strict=True):
        stand_ins = {row.name: new.name for row, new in zip(before.kernels, after.kernels, strict=True)}
        assert len(set(stand_ins.values())) == len(stand_ins)


def test_links_inside_the_report_hold(plain: Report) -> None:
    """Findings name signatures by their ids; ids that are hashes of names are made anew, and stay unique."""
    made = redacted(plain)
    ids = [row.id for device in plain.devices for row in device.signatures]
    new = [row.id for device in made.devices for row in device.signatures]
    assert not set(ids) & set(new)
    assert len(set(new)) == len(set(ids))
    known = dict(zip(ids, new, strict=True))
    linked = [(b.signature, a.signature) for b, a in zip(plain.findings, made.findings, strict=True) if b.signature]
    listed = [(before, after) for before, after in linked if before in known]
    assert listed
    assert all(after == known[before or ""] for before, after in listed)
    assert len({each.id for each in made.findings}) == len(made.findings)
    heads = [each.id.rpartition("-")[0] for each in made.findings]
    assert heads == [each.id.rpartition("-")[0] for each in plain.findings]


@pytest.mark.parametrize(
    ("plain_id", "shown"),
    [
        ("f-sync-12ab34", "f-sync-1"),
        ("f-sync-abcdef", "f-sync-1"),
        ("f-io_wait-host-12ab34", "f-io_wait-host-1"),
        ("f-io_wait-host-rest", "f-io_wait-host-rest"),
        ("f-kernels", "f-kernels"),
        ("f-sync-acme", "id 1"),
        ("f-gpu0-sync-12ab34", "f-gpu0-sync-1"),
        ("f-gpu0-pid12-host_code-12ab34", "f-gpu0-pid12-host_code-1"),
        ("f-gpu0-exposed_copy", "f-gpu0-exposed_copy"),
        ("f-gpu1-sync-rest", "f-gpu1-sync-rest"),
        ("s-0123456789", "s-1"),
        ("acme", "id 1"),
    ],
)
def test_ids(plain_id: str, shown: str) -> None:
    report = samples.one_device()
    findings = [replace(report.findings[0], id=plain_id)]
    assert redacted(replace(report, findings=findings, devices=[])).findings[0].id == shown


def test_it_says_that_it_is_redacted_and_how(plain: Report) -> None:
    assert redacted(plain).settings["redacted"] == "numbered"
    assert not is_redacted(plain)


@pytest.mark.slow
def test_what_identifies_the_file_is_left_out(plain: Report) -> None:
    report = replace(plain, trace=replace(plain.trace, sha256="0" * 64))
    made = redacted(report).trace
    assert (made.file, made.fingerprint, made.sha256) == ("file 1", "(withheld)", "(withheld)")


def test_what_nsys_reported_is_withheld() -> None:
    message = typed.name(TextKind.MESSAGE, "cannot trace /opt/secret/app")
    made = redacted(reworded(["nsys reported a warning while capturing (3 times): " + message, "2 malformed rows"]))
    assert made.trace.warnings == [
        "nsys reported a warning while capturing (3 times): (withheld)",
        "2 malformed rows",
    ]


def reworded(warnings: list[str]) -> Report:
    """A report with these warnings and no names elsewhere."""
    plain = replace(samples.one_device(), devices=[], findings=[], timeline=msgspec.UNSET, ranks=None, host=None)
    return finished(replace(plain, trace=replace(plain.trace, warnings=warnings)))


def test_a_name_is_replaced_by_what_it_is_a_name_of() -> None:
    """Whatever it looks like: words of ours, a number, a format string, or two names in one."""
    for name in ("copy", "in", "17", "{0}", "{api[0]}", "a, b", "thread 4 'x'", "}", ""):
        text = typed.say("a kernel {{x}} {} by thread 5 '{}'", typed.kernel(name), typed.thread(name))
        made = redacted(reworded([text]))
        shown = ("kernel 1", "thread 1") if name else ("", "")
        assert made.trace.warnings == [f"a kernel {{x}} {shown[0]} by thread 5 '{shown[1]}'"]


def test_words_without_a_name_stay() -> None:
    """No sentence is searched: only what was put into it as a name goes."""
    known = redacted(reworded(["waits in " + typed.kernel("copy"), "a copy in copy"]))
    assert known.trace.warnings == ["waits in kernel 1", "a copy in copy"]


def test_public_names_stay_in_sentences() -> None:
    words = typed.say(
        "{} in {}, {} of {}",
        typed.api("cudaMalloc"),
        typed.api("acmeSolve"),
        typed.symbol("malloc"),
        typed.name(TextKind.METRIC, "acme"),
    )
    assert redacted(reworded([words])).trace.warnings == ["cudaMalloc in symbol 1, malloc of metric 1"]


def test_sentences_follow_the_lists_of_names() -> None:
    made = reworded([typed.say("{} of {} {{x}}", typed.file("a"), typed.file("b"))])
    assert made.phrases == Phrases(names={"file": ["a", "b"]}, sentences=["{file[0]} of {file[1]} {{x}}"])
    assert made.phrases.sentences[0].format_map(made.phrases.names) == "a of b {x}" == made.trace.warnings[0]


def test_a_name_of_which_a_sentence_has_the_beginning_is_the_same_name() -> None:
    long = "forward of the encoder " + "x" * 100
    made = reworded(["in " + typed.nvtx(long, 60), "in " + typed.nvtx(long), "{range[0]:.60}"])
    assert made.trace.warnings[:2] == [f"in {long[:60]}", f"in {long}"]
    assert made.phrases is not None
    assert made.phrases.sentences[0].format_map(made.phrases.names) == f"in {long[:60]}"
    short, whole, words = redacted(made).trace.warnings
    assert short == whole == "in range 1"
    assert words == "{range[0]:.60}"


def test_a_report_without_phrases_cannot_be_redacted() -> None:
    with pytest.raises(InputError, match="older version"):
        redacted(replace(samples.one_device(), phrases=None))


@pytest.mark.parametrize("sentence", ["{file[1]}", "{api[0]}", "{file[0].x}", "{file}", "{", "{}", "{file[-1]}"])
def test_damaged_phrases_are_refused(sentence: str) -> None:
    phrases = Phrases(names={"file": ["a"]}, sentences=[sentence])
    with pytest.raises(InputError, match="damaged"):
        redacted(replace(samples.one_device(), phrases=phrases))


def test_names_of_an_unknown_kind_are_refused() -> None:
    phrases = Phrases(names={"other": ["a"]}, sentences=["{other[0]}"])
    with pytest.raises(InputError, match="damaged"):
        redacted(replace(samples.one_device(), phrases=phrases))


def test_settings_that_hold_names() -> None:
    settings = {"nvtx": "secret*", "config": "/home/ann/secret.toml", "gaps": 10, "communication_patterns": ["a", "b"]}
    made = redacted(replace(samples.one_device(), settings=settings)).settings
    assert (made["gaps"], made["communication_patterns"]) == (10, ["pattern 1", "pattern 2"])
    assert "secret" not in str(made)


def _kernels(report: Report) -> list[Any]:
    return [row for device in report.devices for row in device.kernels]


@pytest.mark.slow
def test_a_saved_report_gives_the_same(plain: Report) -> None:
    assert redacted(from_json(to_json(plain), Report)) == redacted(plain)


def test_twice_is_refused(plain: Report) -> None:
    with pytest.raises(ValueError, match="already"):
        redacted(redacted(plain))


@pytest.mark.slow
def test_ranks_go_by_their_files(tmp_path: Path) -> None:
    """Ranks are called after their files, in sentences too, even where a file is called like a word of ours."""
    first, second = files(tmp_path, [[4 * MS, 7 * MS]] * 5, [0, 0], utc=[0, 0])
    plain = analyze_ranks([first.rename(tmp_path / "copy.sqlite"), second.rename(tmp_path / "late_secret.sqlite")])
    made = redacted(plain)
    assert [trace.file for trace in made.traces] == ["file 1", "file 2"]
    assert [row.rank for row in made.comparison.ranks] == ["file 1", "file 2"]
    assert plain.comparison.sentence.startswith("late_secret is late")
    assert made.comparison.sentence == plain.comparison.sentence.replace("late_secret", "file 2")
    assert [wait.late_rank for wait in made.comparison.waits if wait.late_rank] == ["file 2"]


def test_keys_that_become_one_stay_apart() -> None:
    assert _renamed({"a1": 1, "b": 2, "a2": 3, "a3": 4}, lambda name: name[0]) == {
        "a": 1,
        "b": 2,
        "a (2)": 3,
        "a (3)": 4,
    }
