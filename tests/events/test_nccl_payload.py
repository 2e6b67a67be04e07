"""What of an NCCL payload is read, and a payload that holds nothing else."""

from __future__ import annotations

import struct

from nsysdiag.events.nvtx import FIELD, MESSAGE, RANKS, bare_payload, payload_numbers

OFFSETS = {(3, 7): {FIELD: 4}}
DATA = struct.pack("<4I2Q", 3, 99, 7, 99, 99, 99) + b"abcd" + struct.pack("<q", 0x1234_5678_9ABC) + b"private"


def test_only_schema_and_communicator_stay() -> None:
    bare = bare_payload(DATA, OFFSETS)
    assert bare == struct.pack("<4I2Q", 3, 0, 7, 0, 0, 0) + bytes(4) + struct.pack("<q", 0x1234_5678_9ABC)
    assert payload_numbers(bare, OFFSETS) == payload_numbers(DATA, OFFSETS) == {FIELD: 0x1234_5678_9ABC}


def test_nothing_stays_of_what_is_not_understood() -> None:
    """Too short for a header, cut off inside the number, of another schema."""
    for data, offsets in ((b"abc", OFFSETS), (DATA[:43], OFFSETS), (DATA, {(3, 8): {FIELD: 4}}), (DATA, {})):
        assert bare_payload(data, offsets) is None
        assert payload_numbers(data, offsets) == {}


def test_sizes_and_ranks_have_widths_of_their_own() -> None:
    offsets = {(3, 7): {FIELD: 0, MESSAGE: 8, RANKS: 16}}
    data = DATA[:32] + struct.pack("<qqii", 17, 4096, 8, 3)
    assert payload_numbers(data, offsets) == {FIELD: 17, MESSAGE: 4096, RANKS: 8}
    assert payload_numbers(data[:50], offsets) == {FIELD: 17, MESSAGE: 4096}
    assert bare_payload(data, offsets) == struct.pack("<4I2Qqqi", 3, 0, 7, 0, 0, 0, 17, 4096, 8)
