"""From a trace whose every text is an attack to its page in a real browser: nothing runs, nothing is asked for."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.functions import bundled_trace
from tests.output.browser import Chromium
from tests.output.reader import Reader
from tests.simulator.scenarios import SCENARIOS, scenario

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ATTACKS = (
    "</script><script>alert(1)</script>",
    "</style></title></textarea><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><iframe src=javascript:alert(1)>",
    '" autofocus onfocus="alert(1)',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "--><!--<script>",
    "{{ 7*7 }}{% raw %}",
    "\x1b[31m\x1b]0;title\x07\x9b2J",
    "\u202egnp.exe\u202c\u2066\u200b",
    "line\none\r\ntwo\u2028three\t",
    "https://example.invalid/x.js?a=1&b=2",
    "&lt;b&gt;&#60;script&#62;",
)
STRUCTURE = ("ENUM_", "sqlite_")
"""Tables whose texts say what numbers mean; in META_DATA_EXPORT the version of the schema does."""
WATCH = """
window.alarms = [];
for (const name of ["alert", "confirm", "prompt", "open", "fetch", "eval"]) {
  window[name] = () => { window.alarms.push(name); };
}
"""
INJECTED = (
    "img, iframe, object, embed, base, form, video, audio, textarea, [onerror], [onload], [onfocus], [onmouseover]"
)


def demo(path: Path) -> None:
    path.write_bytes(gzip.decompress(bundled_trace()))


def counted(path: Path) -> None:
    scenario("counted_training").write(path, SCENARIOS["counted_training"].capture)


def attacked(path: Path, *, whole: bool) -> int:
    """Puts an attack into each text of the trace, behind what stands there or, where `whole`, in its place."""
    changed = 0
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in (name for name in tables if not name.startswith(STRUCTURE)):
            for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                if "TEXT" not in row[2].upper():
                    continue
                found = connection.execute(f'SELECT rowid, "{row[1]}" FROM "{table}"').fetchall()
                texts = [(at, text) for at, text in found if isinstance(text, str) and not text[:1].isdigit()]
                texts = [(at, text) for at, text in texts if table != "META_DATA_EXPORT" or row[1] == "value"]
                attacks = [(("" if whole else text) + ATTACKS[at % len(ATTACKS)], at) for at, text in texts]
                connection.executemany(f'UPDATE "{table}" SET "{row[1]}" = ? WHERE rowid = ?', attacks)
                changed += len(attacks)
    connection.close()
    return changed


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("whole", [False, True], ids=["behind-names", "instead-of-names"])
@pytest.mark.parametrize("written", [demo, counted])
def test_an_attack_stays_text(written: Callable[[Path], None], whole: bool, chromium: Chromium, tmp_path: Path) -> None:
    trace = tmp_path / "trace <img src=x onerror=alert(1)>.sqlite"
    written(trace)
    assert attacked(trace, whole=whole) > 20
    report = nsysdiag.analyze(trace)
    page = tmp_path / "page.html"
    page.write_bytes(FORMATS["html"].render(report, RenderOptions(source=str(trace), command=f"nsysdiag {trace}")))
    with Reader(chromium) as reader:
        reader.file = page
        reader.first(WATCH)
        reader.start()
        reader.until("!!window.nsysdiagTimeline")
        reader.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        reader.value("document.querySelector('canvas.lanes').focus()")
        for key in ("n", "Enter", "w"):
            reader.key(key)
        across = "document.querySelector('canvas.lanes').getBoundingClientRect()"
        left, top, width, height = reader.value(
            f"(({{left, top, width, height}}) => [left, top, width, height])({across})"
        )
        for y in range(30, min(int(height), 600), 12):
            reader.mouse("mouseMoved", left + width * 0.6, top + y)
        reader.value("new Promise((done) => setTimeout(done, 300))")
        shown = reader.value("document.body.innerText")
        assert "alert(1)" in shown
        assert "<script>" in shown
        assert reader.value("window.alarms") == []
        assert reader.console == []
        asked = [address for address in reader.requests if not address.startswith(("data:", "about:", "blob:"))]
        assert {address.partition("#")[0] for address in asked} == {page.as_uri()}
        assert reader.value(f"document.querySelectorAll({INJECTED!r}).length") == 0
        assert (
            reader.value("Array.from(document.scripts).filter((each) => each.textContent.startsWith('alert')).length")
            == 0
        )
        assert reader.value("document.title").startswith("trace <img")
        assert not reader.value(
            r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2066-\u2069]/.test(document.body.innerText)"
        )
