"""Which settings file is found by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.config.file import find_settings

OURS = "[tool.nsysdiag]\ngaps = 3\n"
OTHERS = "[tool.ruff]\nline-length = 120\n# nsysdiag is used too\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "runs" / "today").mkdir(parents=True)
    return tmp_path / "repository"


def test_none(repository: Path) -> None:
    assert find_settings(repository / "runs") is None


def test_its_own_file_comes_before_the_shared_one(repository: Path) -> None:
    (repository / "pyproject.toml").write_text(OURS)
    assert find_settings(repository) == repository / "pyproject.toml"
    (repository / "nsysdiag.toml").write_text("")
    assert find_settings(repository) == repository / "nsysdiag.toml"


def test_the_nearest_folder_up_to_the_root_of_the_repository(repository: Path) -> None:
    here = repository / "runs" / "today"
    (repository.parent / "nsysdiag.toml").write_text("")
    assert find_settings(here) is None  # above the repository
    (repository / "nsysdiag.toml").write_text("")
    assert find_settings(here) == repository / "nsysdiag.toml"
    (repository / "runs" / "pyproject.toml").write_text(OURS)
    assert find_settings(here) == repository / "runs" / "pyproject.toml"
    assert find_settings(repository) == repository / "nsysdiag.toml"


def test_a_work_tree_whose_git_is_a_file(repository: Path) -> None:
    (repository / ".git").rmdir()
    (repository / ".git").write_text("gitdir: elsewhere\n")
    (repository / "nsysdiag.toml").write_text("")
    assert find_settings(repository / "runs") == repository / "nsysdiag.toml"


def test_outside_of_a_repository_only_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "nsysdiag.toml").write_text("")
    assert find_settings(tmp_path / "inner") is None
    assert find_settings(tmp_path) == tmp_path / "nsysdiag.toml"


@pytest.mark.parametrize(
    "text", [OTHERS, "", "tool = 3", "not toml at all", "broken = [ # nsysdiag", "[tool.nsysdiagnose]"]
)
def test_a_shared_file_without_our_table_is_a_matter_of_others(repository: Path, text: str) -> None:
    (repository / "nsysdiag.toml").write_text("")
    (repository / "runs" / "pyproject.toml").write_text(text)
    assert find_settings(repository / "runs") == repository / "nsysdiag.toml"


def test_a_broken_one_with_our_table_is_found(repository: Path) -> None:
    """What reads it then says what is wrong."""
    (repository / "pyproject.toml").write_text("[tool.nsysdiag]\ngaps =\n")
    assert find_settings(repository) == repository / "pyproject.toml"


def test_bytes_that_are_no_text(repository: Path) -> None:
    (repository / "pyproject.toml").write_bytes(b"\xff\xfe[tool.nsysdiag]")
    assert find_settings(repository) is None
