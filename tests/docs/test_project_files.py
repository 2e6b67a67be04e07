"""Files for people around the project: how to cite it, and the forms for issues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import nsysdiag
from tests.docs.pages import ROOT, text
from tests.docs.test_examples import fits

CITATION = ROOT / "CITATION.cff"
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]


def test_the_citation_is_of_this_version() -> None:
    citation: dict[str, Any] = yaml.safe_load(text(CITATION))
    assert citation["version"] == nsysdiag.__version__
    assert citation["license"] == "MIT"


@pytest.mark.slow
def test_the_citation_fits_its_schema(tmp_path: Path) -> None:
    options = ("vendor.citation-file-format", "--default-filetype", "yaml", "--force-filetype", "yaml")
    assert fits(CITATION, *options)
    (tmp_path / "CITATION.cff").write_text(text(CITATION).replace("authors:", "writers:"), encoding="utf-8")
    assert not fits(tmp_path / "CITATION.cff", *options)


@pytest.mark.checkout
def test_every_form_asks_for_a_trace_without_names() -> None:
    assert len(FORMS) == 3
    assert [path.name for path in FORMS if "nsysdiag bundle TRACE --redact" not in text(path)] == []


@pytest.mark.thorough
@pytest.mark.checkout
def test_forms_fit_their_schema(tmp_path: Path) -> None:
    assert [path.name for path in FORMS if not fits(path, "vendor.github-issue-forms")] == []
    (tmp_path / "form.yml").write_text(text(FORMS[0]).replace("type: textarea", "type: text"), encoding="utf-8")
    assert not fits(tmp_path / "form.yml", "vendor.github-issue-forms")
