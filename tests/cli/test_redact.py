"""--redact: what it writes and where, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from nsysdiag.share.redaction import redacted
from tests.output import samples
from tests.output.rank_samples import ranks_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

pytestmark = pytest.mark.usefixtures("analyzed_once")

KERNEL = "ampere_sgemm_128x64_tn"


@pytest.mark.usefixtures("analysis")
class TestAnalyze:
    @pytest.mark.slow
    def test_every_format_is_redacted(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        outputs = [word for each in FORMATS.values() for word in ("-o", f"out{each.suffix}")]
        result = cli("analyze", trace, "--redact", *outputs)
        assert result.code == 0
        assert KERNEL not in result.stdout.decode()
        written = [path for path in folder.iterdir() if path.name != trace.name]
        assert len(written) > len(FORMATS)
        assert not [path.name for path in written if KERNEL in path.read_text(encoding="utf-8")]

    def test_the_output_does_not_bear_the_name_of_the_trace(
        self, cli: Callable[..., Result], trace: Path, folder: Path
    ) -> None:
        assert cli("analyze", trace, "--redact").stderr == "wrote redacted.nsysdiag.html\n"
        assert "Names</dt><dd>replaced (numbered)" in (folder / "redacted.nsysdiag.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_saved_report_can_be_redacted_once(cli: Callable[..., Result], folder: Path) -> None:
    (folder / "plain.json").write_bytes(to_json(samples.one_device()))
    for command in ("analyze", "render"):
        assert cli(command, "plain.json", "--redact", "-o", f"{command}.json", "-q").code == 0
        assert from_json((folder / f"{command}.json").read_bytes(), Report) == redacted(samples.one_device())
        again = cli(command, f"{command}.json", "--redact", "-o", "again.json")
        assert again.code == 2
        assert "redacted already" in again.stderr


def test_a_comparison_of_ranks_can_be_redacted(cli: Callable[..., Result], folder: Path) -> None:
    from nsysdiag.record import to_json

    report = ranks_report()
    (folder / "ranks.json").write_bytes(to_json(report))
    assert cli("render", "ranks.json", "--redact", "-o", "out.md", "-q").code == 0
    written = (folder / "out.md").read_text(encoding="utf-8")
    assert report.traces[0].file not in written
    assert "file 1" in written


def test_the_command_of_a_redacted_report() -> None:
    report = samples.one_device()
    assert command_of(redacted(report)).startswith("nsysdiag analyze 'file 1' ")
    assert command_of(redacted(report)).endswith(" --redact")
