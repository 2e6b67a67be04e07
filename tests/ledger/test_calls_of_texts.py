"""Texts of slices know the calls that they name: nothing reads them out of a sentence again."""

from __future__ import annotations

from nsysdiag.ledger.ledger import SliceCollector
from nsysdiag.wakeups.levels import TextTable


def test_names_of_calls_and_descriptions() -> None:
    collector = SliceCollector()
    collector.texts(["stream capture", "read"])
    collector.texts(["read"], are_calls=True)
    slices = collector.finish()
    assert (slices.texts, slices.calls) == (["stream capture", "read"], ["", "read"])


def test_a_call_by_another_thread() -> None:
    table = TextTable()
    table.recoded(["read"], ["read"])
    table.recoded(["read by thread 7", "on a CPU by thread 7"], ["read", ""])
    assert table.calls == {"read": "read", "read by thread 7": "read"}
