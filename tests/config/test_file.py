"""The settings file: what it may hold, and what is said of each thing that it may not."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from nsysdiag.config.file import PLAIN, _filled, read_file
from nsysdiag.config.settings import CostSettings, FindingThresholds, Settings, Thresholds
from nsysdiag.messages import UsageError

EVERYTHING = """
gaps = 50
disabled = ["sync", "io_wait"]
communication_patterns = ["nccl", "my_allreduce"]
same_gpu = true

[thresholds]
busy = 0.1
launch_bound_gap_ns = 20_000

[findings]
most = 5
smallest = 0  # a whole number is a number

[cost]
gpu_hour_cost = 2
currency = "EUR"
run_hours = 72.5

[cost.gpus]
H100 = 3.2
"RTX 4090" = 0.4
"""
MEANT = Settings(
    gaps=50,
    disabled=("sync", "io_wait"),
    communication_patterns=("nccl", "my_allreduce"),
    same_gpu=True,
    thresholds=Thresholds(busy=0.1, launch_bound_gap_ns=20_000),
    findings=FindingThresholds(most=5, smallest=0.0),
    cost=CostSettings(gpu_hour_cost=2.0, currency="EUR", run_hours=72.5, gpus={"H100": 3.2, "RTX 4090": 0.4}),
    config="nsysdiag.toml",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "nsysdiag.toml"


def said_of(path: Path, text: str) -> str:
    """The error about this content, without the folder."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_file(path)
    return raised.value.message.replace(f"{path.parent}/", "")


def test_everything(file: Path) -> None:
    file.write_text(EVERYTHING)
    assert read_file(file)[0] == MEANT


def test_the_table_of_a_shared_file(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    shared = EVERYTHING.replace("[", "[tool.nsysdiag.").replace('[tool.nsysdiag."', '["')
    path.write_text('[project]\nname = "x"\n[tool.other]\ngaps = "many"\n[tool.nsysdiag]' + shared)
    assert read_file(path)[0] == msgspec.structs.replace(MEANT, config="pyproject.toml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff"])
def test_an_empty_file_changes_nothing(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert read_file(file)[0] == Settings(config="nsysdiag.toml")


def test_a_byte_order_mark_is_no_error(file: Path) -> None:
    file.write_text("\ufeffgaps = 3\r\n", encoding="utf-8")
    assert read_file(file)[0].gaps == 3


@pytest.mark.parametrize("text", ['[project]\nname = "x"\n', "[tool.ruff]\n", "tool = 3\n", "[[tool.nsysdiag]]\n"])
def test_a_shared_file_without_our_table(tmp_path: Path, text: str) -> None:
    assert said_of(tmp_path / "pyproject.toml", text) == "pyproject.toml has no table [tool.nsysdiag]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[thresholds]\nbussy = 1", "unknown key thresholds.bussy; did you mean 'busy'?"),
        ("zzz = 1", "unknown key zzz"),
        ("[cost]\nprice = 1", "unknown key cost.price"),
        ('["two words"]\nx = 1', 'unknown key "two words"'),
        ('device = "gpu0"', "device is not a setting of a file"),
        ("timeline = false", "timeline is not a setting of a file"),
        ('config = "other.toml"', "config is not a setting of a file"),
        ('gaps = "many"', "gaps is 'many', but must be a whole number from 0 to 1,000,000,000,000,000"),
        ("gaps = -1", "gaps is -1, but must be a whole number from 0 to 1,000,000,000,000,000"),
        ("gaps = 1.5", "gaps is 1.5, but must be a whole number from 0 to 1,000,000,000,000,000"),
        ("gaps = true", "gaps is true, but must be a whole number from 0 to 1,000,000,000,000,000"),
        ("gaps = 99999999999999999999", "gaps is 99999999999999999999, but must be a whole number from 0 to"),
        ("same_gpu = 1", "same_gpu is 1, but must be true or false"),
        ('disabled = "sync"', "disabled is 'sync', but must be a list"),
        ('disabled = ["sync", 3]', "disabled[1] is 3, but must be text, not empty"),
        ('communication_patterns = [""]', "communication_patterns[0] is '', but must be text, not empty"),
        ("thresholds = 3", "thresholds is 3, but must be a table"),
        ("[thresholds]\nbusy = 1.5", "thresholds.busy is 1.5, but must be a number from 0 to 1"),
        ("[thresholds]\nbusy = -0.1", "thresholds.busy is -0.1, but must be a number from 0 to 1"),
        ("[thresholds]\nbusy = nan", "thresholds.busy is nan, but must be a number from 0 to 1"),
        ("[thresholds]\nbusy = inf", "thresholds.busy is inf, but must be a number from 0 to 1"),
        ("[thresholds]\nbusy = false", "thresholds.busy is false, but must be a number from 0 to 1"),
        ("[findings]\nhigh = '20%'", "findings.high is '20%', but must be a number from 0 to 1"),
        ("[cost]\ngpu_hour_cost = -2", "cost.gpu_hour_cost is -2, but must be a number above 0, 1,000,000 at most"),
        ("[cost]\ngpu_hour_cost = 0", "cost.gpu_hour_cost is 0, but must be a number above 0, 1,000,000 at most"),
        ("[cost]\ngpu_hour_cost = nan", "cost.gpu_hour_cost is nan, but must be a number above 0"),
        ("[cost]\nrun_hours = -1", "cost.run_hours is -1, but must be a number above 0, 1,000,000 at most"),
        ('[cost]\ncurrency = "Goldtaler"', "cost.currency is 'Goldtaler', but must be text of at most 8 characters"),
        ("[cost]\ngpus = 3", "cost.gpus is 3, but must be a table"),
        ('[cost.gpus]\n"RTX 4090" = -1', 'cost.gpus."RTX 4090" is -1, but must be a number above 0'),
        ('[cost.gpus]\nH100 = "3"', "cost.gpus.H100 is '3', but must be a number above 0"),
    ],
)
def test_what_is_no_setting(file: Path, text: str, words: str) -> None:
    assert said_of(file, text).startswith(f"nsysdiag.toml: {words}")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gaps =", "line 1, column 7: "),
        ("gaps = 3\n\n  busy 3", "line 3, column 8: "),
        ("gaps = 3\ngaps = 4", "line 2, column 9: "),
        ("[thresholds\nbusy = 1", "line 1, column 12: "),
        ('x = """\n\n', "line 3, column 1: "),
    ],
)
def test_what_is_no_toml(file: Path, text: str, place: str) -> None:
    assert said_of(file, text).startswith(f"nsysdiag.toml, {place}")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no settings file .*missing\.toml"):
        read_file(tmp_path / "missing.toml")
    with pytest.raises(UsageError, match=r"cannot read the settings file .*: Is a directory"):
        read_file(tmp_path)
    (tmp_path / "x.toml").write_bytes(b"gaps = 3\nx = '\xff'")
    with pytest.raises(UsageError, match=r"x\.toml is not UTF-8 text, as TOML must be \(byte 14\)"):
        read_file(tmp_path / "x.toml")


def test_a_file_that_nests_without_end(file: Path) -> None:
    assert said_of(file, "x = " + "[" * 100_000) == "nsysdiag.toml is nested too deeply"


def test_values_are_shown_cut(file: Path) -> None:
    assert len(said_of(file, f'gaps = "{"x" * 10_000}"')) < 200


def test_every_struct_of_the_settings_can_stand_in_a_file(file: Path) -> None:
    """A struct that is new in Settings needs nothing here: each of its fields can be given its default."""
    structs = {
        each.name: each.type for each in msgspec.structs.fields(Settings) if isinstance(each.default, msgspec.Struct)
    }
    assert {"thresholds", "findings", "cost"} <= set(structs)
    for name, kind in structs.items():
        lines = [f"{field} = {getattr(kind(), field)}" for field in kind.__struct_fields__]
        plain = [line for line in lines if line.split(" = ")[1].replace(".", "").isdigit()]
        file.write_text("\n".join([f"[{name}]", *plain]))
        assert read_file(file)[0] == Settings(config="nsysdiag.toml")


class Example(msgspec.Struct, frozen=True):
    """A struct as a newcomer may add it: numbers without limits, and a struct within."""

    factor: float = 1.0
    limits: Thresholds = Thresholds()


def filled(table: dict[str, object]) -> Example:
    fields = {field.name: field.type for field in msgspec.structs.fields(Example)}
    return _filled(Example(), table, fields, Path("x.toml"), ("example",))


def test_structs_within_structs() -> None:
    assert filled({"factor": -3, "limits": {"busy": 1}}) == Example(factor=-3.0, limits=Thresholds(busy=1.0))
    with pytest.raises(UsageError, match=r"x\.toml: example\.limits\.busy is 2, but must be a number from 0 to 1"):
        filled({"limits": {"busy": 2}})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_is_infinite(value: float) -> None:
    with pytest.raises(UsageError, match=r"x\.toml: example\.factor is -?(nan|inf), but must be a number$"):
        filled({"factor": value})


def test_settings_that_are_no_structs_are_named() -> None:
    assert set(PLAIN) < set(Settings.__struct_fields__)
