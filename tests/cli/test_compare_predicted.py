"""`nsysdiag compare` with a saved prediction: what it says, its exit codes, budgets and redaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag import analyze
from nsysdiag.comparison.facts import Comparison
from nsysdiag.record import to_json
from nsysdiag.saved import from_json
from tests.comparison.programs import Program
from tests.comparison.test_predicted import predicted
from tests.output.whatif_samples import LOAD, listing, refused, whatif
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

SLOW, FAST = Program(steps=12, sync=True, tail=500 * US), Program(steps=12, seed=1)


@pytest.fixture
def saved(folder: Path, analyzed_once: None) -> None:
    """A capture, its report and a prediction for it, and the capture after the fix."""
    SLOW.write(folder / "before.sqlite")
    FAST.write(folder / "after.sqlite")
    before, after = analyze(folder / "before.sqlite"), analyze(folder / "after.sqlite")
    made = predicted(before, after)
    for name, document in (("before", before), ("after", after), ("predicted", made)):
        (folder / f"{name}.json").write_bytes(to_json(document))
    (folder / "listing.json").write_bytes(to_json(listing()))
    (folder / "refused.json").write_bytes(to_json(refused()))


@pytest.mark.slow
@pytest.mark.usefixtures("saved")
class TestCompared:
    def test_what_it_promises(self, cli: Cli, folder: Path) -> None:
        result = cli("compare", "before.json", "predicted.json")
        assert (result.code, result.stderr) == (0, "wrote compare.nsysdiag.html\n")
        text = " ".join(result.stdout.decode().split())
        assert "Step time 1.57 → 1.05 ms predicted (1.49× faster, between 1.03 and 1.09 ms): --without sync" in text
        assert text.endswith("nsysdiag compare before.json predicted.json")
        assert "Predicted to improve" in (folder / "compare.nsysdiag.html").read_text()

    def test_how_good_it_was(self, cli: Cli) -> None:
        result = cli("compare", "predicted.json", "after.sqlite", "-o", "-", "--format", "md")
        assert (result.code, result.stderr) == (0, "")
        first = result.stdout.decode().splitlines()[2].replace("\\", "")
        assert first == "**Step time predicted 1.05 ms (1.03 to 1.09), measured 1.05 ms: inside the bounds**"

    def test_saved_and_rendered(self, cli: Cli, folder: Path) -> None:
        assert cli("compare", "predicted.json", "after.json", "-o", "kept.json", "-q").code == 0
        assert from_json((folder / "kept.json").read_bytes(), Comparison).before[0].given == "predicted.json"
        assert cli("render", "kept.json", "-o", "kept.html").code == 0

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (["before.json", "refused.json"], 5, "was refused: the model is off by 4.1%"),
            (["listing.json", "after.json"], 2, "changes nothing: it only lists predicted savings"),
            (["before.json", "predicted.json", "--after", "after.json"], 2, "a prediction must be the only input"),
            (["predicted.json", "after.sqlite", "--same-gpu"], 2, "--same-gpu cannot be used with predicted.json"),
        ],
    )
    def test_refused(self, cli: Cli, words: list[str], code: int, said: str) -> None:
        result = cli("compare", *words, "-o", "-", "--format", "txt")
        assert (result.code, said in result.stderr, result.stdout) == (code, True, b""), result.stderr

    @pytest.mark.parametrize(
        ("sides", "budget", "code", "said"),
        [
            (["before.json", "predicted.json"], "length:+5%", 0, "pass"),
            (["predicted.json", "before.json"], "length:+5%", 1, "fail"),
            (["before.json", "predicted.json"], "ledger.sync:+5%", 2, "what is chance is unknown"),
            (["before.json", "predicted.json"], "ledger.sync > 1ms", 2, "a prediction holds changes alone"),
            (["predicted.json", "after.json"], "ledger.sync > 100ms", 0, ""),
        ],
    )
    def test_budgets(self, cli: Cli, sides: list[str], budget: str, code: int, said: str) -> None:
        result = cli("compare", *sides, "-q", "--fail-on", budget, "-o", "c.json")
        assert result.code == code, result.stderr
        assert said in ("", "pass") or said in result.stderr

    def test_redacted_together(self, cli: Cli, folder: Path) -> None:
        plain = from_json((folder / "predicted.json").read_bytes(), type(whatif()))
        (folder / "predicted.json").write_bytes(to_json(replace(plain, transforms=[LOAD])))
        result = cli("compare", "before.json", "predicted.json", "--redact", "-o", "-", "--format", "json")
        assert result.code == 0
        made = from_json(result.stdout, Comparison)
        assert made.after[0].prediction == "--host 'range 2*0.5'"
        assert b"acme" not in result.stdout
        assert b"before.sqlite" not in result.stdout

    def test_one_redacted_side(self, cli: Cli) -> None:
        assert cli("render", "predicted.json", "--redact", "-o", "hidden.json").code == 0
        result = cli("compare", "before.json", "hidden.json")
        assert (result.code, "numbers instead of names" in result.stderr) == (5, True)
