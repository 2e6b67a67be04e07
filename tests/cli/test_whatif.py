"""`nsysdiag whatif`: what its options ask for, what goes where, and what is refused. The replay is a fake."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.messages import UsageError
from nsysdiag.record import to_json
from nsysdiag.replay.facts import Transform, WhatIf
from nsysdiag.saved import from_json
from tests.output import samples
from tests.output.whatif_samples import LOAD, WHATIFS, listing, refused, whatif

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsysdiag.config.settings import Settings
    from tests.cli.conftest import Result

FIRST = "Step time 34.9 → 18.9 ms predicted (1.85× faster, between 18.5 and 19.6 ms): --without sync"


@dataclass
class FakeReplay:
    """Stands for the replay: remembers what it was asked for."""

    made: WhatIf
    asked: list[Transform] = field(default_factory=list)
    settings: Settings | None = None
    error: Exception | None = None

    def __call__(self, _path: Path, transforms: Sequence[Transform], settings: Settings, _progress: object) -> WhatIf:
        self.asked, self.settings = list(transforms), settings
        if self.error is not None:
            raise self.error
        return self.made


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> FakeReplay:
    fake = FakeReplay(whatif())
    monkeypatch.setattr("nsysdiag.pipeline.changes.whatif", fake)
    return fake


def test_text_on_stdout_and_no_file(cli: Callable[..., Result], replay: FakeReplay, trace: Path, folder: Path) -> None:
    result = cli("whatif", trace, "--without", "sync")
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout.decode().splitlines()[2].strip() == FIRST
    assert result.stdout.decode().splitlines()[-1].strip() == "nsysdiag whatif train.sqlite --without sync"
    assert [path.name for path in folder.iterdir()] == ["train.sqlite"]
    assert replay.asked == [Transform(option="without", of="sync")]


def test_every_option_reaches_the_replay(cli: Callable[..., Result], replay: FakeReplay, trace: Path) -> None:
    line = [
        *("--without", "sync", "--without", "data_loading", "--without", "sync", "--finding", "f-sync"),
        *("--kernel", "*gemm**0.5", "--kernel", "softmax*2", "--host", "acme load*0.5", "--async-copies"),
        *("--overlap", "copies", "--overlap", "communication", "--graphs", "step", "--rank-like", "median"),
        *("--merge", "norm*", "--stream", "stats", "--workers", "4", "--ahead", "1", "--batch", "2"),
    ]
    assert cli("whatif", trace, *line, "--device", "1", "--same-gpu", "--iterations", "2:12").code == 0
    assert replay.asked == [
        Transform(option="without", of="sync"),
        Transform(option="without", of="data_loading"),
        Transform(option="finding", of="f-sync"),
        Transform(option="kernel", of="*gemm*", factor=0.5),
        Transform(option="kernel", of="softmax", factor=2.0),
        LOAD,
        Transform(option="async-copies"),
        Transform(option="overlap", of="copies"),
        Transform(option="overlap", of="communication"),
        Transform(option="graphs", of="step"),
        Transform(option="rank-like", of="median"),
        Transform(option="merge", of="norm*"),
        Transform(option="stream", of="stats"),
        Transform(option="workers", factor=4.0),
        Transform(option="ahead", factor=1.0),
        Transform(option="batch", factor=2.0),
    ]
    assert replay.settings is not None
    assert replay.settings.changed() == {"device": "1", "same_gpu": True, "iterations": [2, 12], "timeline": False}


def test_a_settings_file_and_times(cli: Callable[..., Result], replay: FakeReplay, trace: Path, folder: Path) -> None:
    (folder / "mine.toml").write_text("gaps = 5\n")
    assert cli("whatif", trace, "--config", "mine.toml", "--from", "1ms", "--to", "2ms").code == 0
    assert replay.settings is not None
    assert (replay.settings.gaps, replay.settings.start_ns, replay.settings.end_ns) == (5, 10**6, 2 * 10**6)


def test_every_format(cli: Callable[..., Result], replay: FakeReplay, trace: Path, folder: Path) -> None:
    outputs = [word for suffix in ("html", "json", "md", "txt") for word in ("-o", f"out.{suffix}")]
    assert cli("whatif", trace, *outputs).code == 0
    assert {path.name for path in folder.glob("out.*")} == set(outputs[1::2])
    assert from_json((folder / "out.json").read_bytes(), WhatIf) == replay.made
    assert cli("whatif", trace, *outputs, "-q").stdout == b""


@pytest.mark.parametrize("output", [("-o", "-"), ()])
def test_json_on_stdout(cli: Callable[..., Result], replay: FakeReplay, trace: Path, output: tuple[str, ...]) -> None:
    result = cli("whatif", trace, *output, "--format", "json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["kind"] == "whatif"
    assert from_json(result.stdout, WhatIf) == replay.made


def test_redacted(cli: Callable[..., Result], replay: FakeReplay, trace: Path) -> None:
    replay.made = listing()
    result = cli("whatif", trace, "--redact")
    assert "acme" not in result.stdout.decode()
    assert "Synchronization in range 1" in result.stdout.decode()
    assert result.stdout.decode().splitlines()[-1].strip() == "nsysdiag whatif 'file 1' --redact"


def test_a_refused_prediction_is_an_answer(cli: Callable[..., Result], replay: FakeReplay, trace: Path) -> None:
    replay.made = refused()
    result = cli("whatif", trace, "--without", "sync")
    assert result.code == 0
    first = result.stdout.decode().splitlines()[2].strip()
    assert first == "Step time 34.9 ms; no prediction for --without sync: the model is off by 4.1%, more than 2%"


class TestWrong:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--without", "snyc"], "unknown cause 'snyc'; did you mean 'sync'"),
            (["--kernel", "gemm"], "--kernel 'gemm' has no factor"),
            (["--host", "load*x"], "'x' behind its last * is not a factor"),
            (["--overlap", "copy"], "did you mean 'copies'"),
            (["--rank-like", "best"], "unknown --rank-like 'best'"),
            (["--finding", ""], "--finding is empty"),
            (["--merge", ""], "--merge is empty"),
            (["--workers", "0"], "should be greater than or equal to 1"),
            (["--batch", "1"], "should be greater than or equal to 2"),
            (["--ahead", "some"], "should be a valid integer"),
            (["--nvtx", "a", "--iterations", "1:2"], "exclude each other"),
            (["--config", "a.toml", "--no-config"], "exclude each other"),
            (["--format", "csv"], "a prediction cannot be written as csv"),
            (["-o", "-"], "'-o -' needs a format"),
            (["--open"], "--open needs an HTML report"),
            (["-o", "train.sqlite", "--format", "json", "--force"], "is the input itself"),
        ],
    )
    def test_is_said_before_the_replay(
        self, cli: Callable[..., Result], replay: FakeReplay, trace: Path, words: list[str], said: str
    ) -> None:
        result = cli("whatif", trace, *words)
        assert (result.code, said in result.stderr, result.stdout) == (2, True, b""), result.stderr
        assert replay.settings is None

    def test_what_the_replay_refuses(self, cli: Callable[..., Result], replay: FakeReplay, trace: Path) -> None:
        replay.error = UsageError("no kernel is called 'gem'; near: gemm")
        result = cli("whatif", trace, "--kernel", "gem*0.5")
        assert (result.code, "near: gemm" in result.stderr) == (2, True)

    def test_a_saved_report(self, cli: Callable[..., Result], replay: FakeReplay, folder: Path) -> None:
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        result = cli("whatif", "report.json")
        assert (result.code, "report.json is a saved report" in result.stderr) == (2, True)
        assert replay.settings is None


class TestSaved:
    @pytest.mark.parametrize("name", WHATIFS)
    def test_render_shows_it(self, cli: Callable[..., Result], folder: Path, name: str) -> None:
        (folder / "predicted.json").write_bytes(to_json(WHATIFS[name]()))
        assert cli("render", "predicted.json", "-o", "x.html", "-o", "x.md", "-o", "x.txt").code == 0
        assert "What if" in (folder / "x.html").read_text()
        assert cli("render", "predicted.json", "--redact", "-o", "r.json").code == 0
        assert "acme" not in (folder / "r.json").read_text()
        again = cli("render", "r.json", "--redact", "-o", "y.json")
        assert (again.code, "redacted already" in again.stderr) == (2, True)

    def test_it_is_no_report_of_one_trace(self, cli: Callable[..., Result], folder: Path) -> None:
        (folder / "predicted.json").write_bytes(to_json(whatif()))
        result = cli("analyze", "predicted.json")
        assert (result.code, "is a prediction, not a report of one trace" in result.stderr) == (3, True)
        assert cli("render", "predicted.json", "-o", "x.csv").code == 2

    def test_another_version_or_damage_is_refused(self, cli: Callable[..., Result], folder: Path) -> None:
        saved = json.loads(to_json(whatif()))
        for change, said in (({"schema_version": "99"}, "schema version 99"), ({"steps": -1}, "damaged")):
            (folder / "predicted.json").write_text(json.dumps({**saved, **change}))
            result = cli("render", "predicted.json", "-o", "x.html")
            assert (result.code, said in result.stderr) == (3, True)

    def test_the_command_that_made_it(self, cli: Callable[..., Result], folder: Path) -> None:
        settings = {"start_ns": 5, "device": "1", "gaps": 3, "disabled": ["sync"]}
        (folder / "predicted.json").write_bytes(to_json(replace(whatif([LOAD]), settings=settings)))
        text = cli("render", "predicted.json", "-o", "-", "--format", "txt").stdout.decode()
        line = "nsysdiag whatif train.sqlite --host 'acme load*0.5' --device 1 --from 5ns"
        assert text.splitlines()[-1].strip() == line
