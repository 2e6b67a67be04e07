"""The house itself: public names, an instant --help, what no file may hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.record import to_json
from tests.levels import quick
from tests.output import samples

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
BUNDLED = ROOT / "nsysdiag" / "data"
MIB = 2**20


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def python(code: str, *arguments: str, cwd: Path = ROOT) -> str:
    """What a piece of code prints in a Python of its own."""
    return run(sys.executable, "-c", code, *arguments, cwd=cwd)


def test_public_names_resolve() -> None:
    for name in nsysdiag.__all__:
        assert getattr(nsysdiag, name) is not None
    assert sorted(nsysdiag.__all__) == nsysdiag.__all__
    assert set(nsysdiag.__all__) <= set(dir(nsysdiag))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = nsysdiag.no_such_name


class TestInstantHelp:
    """--help must not wait for what only an analysis needs. Counted in modules, not in seconds."""

    READERS = ("adbc_driver_sqlite", "nanoarrow", "sqlalchemy")
    HEAVY = (*READERS, "jinja2", "msgspec", "numpy", "pandas", "plotly", "rich")
    CODE = """
import sys
from nsysdiag.cli.app import main
try:
    main(sys.argv[1:])
finally:
    print("\\nloaded:", *sorted(set(name.partition(".")[0] for name in sys.modules)))
"""

    @pytest.mark.parametrize(
        "arguments",
        quick([["--help"], ["analyze", "--help"], ["--version"], ["batch", "--help"], ["demo", "--help"]], 5),
    )
    def test_loads_nothing_heavy(self, arguments: list[str]) -> None:
        help_text, _, loaded = python(self.CODE, *arguments).partition("\nloaded: ")
        assert "nsysdiag" in help_text
        assert set(loaded.split()) & set(self.HEAVY) == set()

    @pytest.mark.thorough
    def test_commands_that_read_no_trace_load_no_reader(self, tmp_path: Path) -> None:
        saved = tmp_path / "saved.json"
        saved.write_bytes(to_json(samples.one_device()))
        text = ("-o", "-", "--format", "txt", "--details")
        for arguments in (["rules"], ["render", str(saved), *text], ["compare", str(saved), str(saved), *text]):
            shown, _, loaded = python(self.CODE, *arguments).partition("\nloaded: ")
            assert len(shown) > 1000
            assert set(loaded.split()) & set(self.READERS) == set()
            assert "numpy" in loaded.split(), "modules are seen"


def project_files() -> list[Path]:
    """Every file that is in the repository or about to be."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [path for name in listed if name and (path := ROOT / name).is_file()]


@pytest.mark.checkout
class TestFiles:
    # Written apart, so that this file does not hold them itself.
    REGISTRIES = ("pypi org", "files pythonhosted org", "registry npmjs org", "deb debian org")
    FOREIGN = (*(name.replace(" ", ".") for name in REGISTRIES), f"/{'work'}/")

    @pytest.mark.slow
    def test_no_file_names_a_registry_or_a_machine(self) -> None:
        found = [
            (path.relative_to(ROOT).as_posix(), word)
            for path in project_files()
            for word in self.FOREIGN
            if word.encode() in path.read_bytes()
        ]
        assert found == []

    def test_traces_are_made_and_bundled_ones_only(self) -> None:
        traces = [path for path in project_files() if {".sqlite", ".nsys-rep", ".qdrep"} & set(path.suffixes)]
        assert [path for path in traces if FIXTURES not in path.parents and BUNDLED not in path.parents] == []

    def test_fixtures_stay_small(self) -> None:
        assert sum(path.stat().st_size for path in project_files() if FIXTURES in path.parents) < 20 * MIB
