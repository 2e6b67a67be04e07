"""What of an NCCL payload is read, and a payload that holds nothing else."""

from __future__ import annotations

import struct

from nsysdiag.events.nvtx import _communicator, bare_payload

OFFSETS = {(3, 7): 4}
DATA = struct.pack("<4I2Q", 3, 99, 7, 99, 99, 99) + b"abcd" + struct.pack("<q", 0x1234_5678_9ABC) + b"private"


def test_only_schema_and_communicator_stay() -> None:
    bare = bare_payload(DATA, OFFSETS)
    assert bare == struct.pack("<4I2Q", 3, 0, 7, 0, 0, 0) + bytes(4) + struct.pack("<q", 0x1234_5678_9ABC)
    assert _communicator(bare, OFFSETS) == _communicator(DATA, OFFSETS) == 0x1234_5678_9ABC


def test_nothing_stays_of_what_is_not_understood() -> None:
    """Too short for a header, cut off inside the number, of another schema."""
    for data, offsets in ((b"abc", OFFSETS), (DATA[:43], OFFSETS), (DATA, {(3, 8): 4}), (DATA, {})):
        assert bare_payload(data, offsets) is None
        assert _communicator(data, offsets) == 0
