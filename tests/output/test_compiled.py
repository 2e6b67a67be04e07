"""Templates compiled ahead of time: what jinja2 makes of them now, used as long as it is that, and never needed."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import msgspec
import pytest
from jinja2 import Environment

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html import page as compiled
from nsysdiag.formats.html.assets import templates_folder
from nsysdiag.formats.html.page import FILE, AheadOfTime, Compiled, environment
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2.nodes import Template

UPDATE = bool(os.environ.get("NSYSDIAG_UPDATE_GOLDENS"))
same_jinja2 = pytest.mark.skipif(not compiled.sources(), reason="another version of jinja2 made them")


def compiled_now() -> Compiled:
    made, cache = environment(), AheadOfTime()
    assert made.loader is not None
    found = {}
    for name in made.list_templates(extensions=["html"]):
        source, filename, _ = made.loader.get_source(made, name)
        found[cache.get_source_checksum(source)] = made.compile(source, name, filename, raw=True)
    return Compiled(jinja2.__version__, found)


@pytest.fixture(scope="module", autouse=True)
def _updated() -> None:
    """Written before any test reads it, whatever their order."""
    if UPDATE:
        FILE.write_bytes(gzip.compress(msgspec.json.encode(compiled_now(), order="sorted"), mtime=0))
        compiled.sources.cache_clear()
        environment.cache_clear()


def page() -> bytes:
    """A page by templates that are loaded anew."""
    environment.cache_clear()
    return FORMATS["html"].render(samples.one_device(), RenderOptions())


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the templates that jinja2 compiles from here on. FILE is read again: an update writes it."""
    names: list[str] = []
    compiled.sources.cache_clear()

    def noted(self: Environment, source: Template, name: str, *arguments: Any, **options: Any) -> str:
        names.append(name)
        return generate(self, source, name, *arguments, **options)

    generate = Environment._generate
    monkeypatch.setattr(Environment, "_generate", noted)
    yield names
    environment.cache_clear()
    compiled.sources.cache_clear()


@pytest.mark.slow
def test_file_is_what_jinja2_makes_of_the_templates() -> None:
    now = compiled_now()
    kept = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Compiled)
    if kept.version != now.version:
        pytest.skip(f"jinja2 {kept.version} made it")
    assert kept == now, "run scripts/update_goldens"


@pytest.mark.slow
@same_jinja2
def test_page_is_the_same_compiled_by_another_jinja2(generated: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = page()
    assert generated == []
    monkeypatch.setattr(jinja2, "__version__", "2.0")
    compiled.sources.cache_clear()
    assert page() == ahead
    assert {"report.html", "base.html", "blocks.html", "macros.html"} <= set(generated)


@pytest.mark.slow
@same_jinja2
def test_a_changed_template_is_compiled(generated: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(templates_folder(), tmp_path, dirs_exist_ok=True)
    base = tmp_path / "base.html"
    base.write_text(base.read_text(encoding="utf-8").replace("<body>", "<body hidden>"), encoding="utf-8")
    monkeypatch.setattr("nsysdiag.formats.html.assets.templates_folder", lambda: tmp_path)
    assert b"<body hidden>" in page()
    assert generated == ["base.html"]
