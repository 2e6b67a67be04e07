"""The communicator that an NCCL call names in its NVTX payload: the same number on every rank of it.

nsys keeps a payload as bytes (binaryData, with --include-blobs=true): a header of 32 bytes, then the fields at the
offsets that the schema gives. All numbers are little-endian.

```
0        4         8         12        16             24           32
| domain |         | schema  |         | payload size | total size | fields ...
```
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

FIELD = "NCCL communicator ID"
HEADER_BYTES, DOMAIN_AT, SCHEMA_AT, NUMBER_BYTES = 32, 0, 8, 8
Offsets = dict[tuple[int, int], int]


def read_communicators(trace: Trace, rows: int) -> IntArray:
    """The communicator of each of the `rows` rows of NVTX_EVENTS, 0 where none is named."""
    offset_of = communicator_fields(trace)
    if not offset_of:
        return np.zeros(rows, dtype=np.int64)
    payload = trace.read("NVTX_EVENTS", "binaryData").text("binaryData")
    known = [_communicator(bytes.fromhex(text), offset_of) for text in payload.values]
    # One place more than there are payloads: code -1, none, picks the last.
    return np.array([*known, 0], dtype=np.int64)[payload.codes]


def communicator_fields(trace: Trace) -> Offsets:
    """Where the communicator is behind the header of a payload, by domain and schema."""
    entries = trace.read("NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId", "schemaId", "offset", "name")
    columns = zip(*(entries[name].tolist() for name in ("domainId", "schemaId", "offset")), strict=True)
    return {
        (domain, schema): offset
        for (domain, schema, offset), name in zip(columns, entries["name"].texts(), strict=True)
        if name == FIELD and offset >= 0
    }


def bare_payload(data: bytes, offset_of: Offsets) -> bytes | None:
    """The payload with zeros for all but its schema and its communicator; None where it has no communicator."""
    at = _place(data, offset_of)
    if at is None:
        return None
    bare = bytearray(at + NUMBER_BYTES)
    for start, length in ((DOMAIN_AT, 4), (SCHEMA_AT, 4), (at, NUMBER_BYTES)):
        bare[start : start + length] = data[start : start + length]
    return bytes(bare)


def _communicator(data: bytes, offset_of: Offsets) -> int:
    """The number of the communicator in one payload, 0 where its schema has none or it is cut short."""
    at = _place(data, offset_of)
    return 0 if at is None else int(struct.unpack_from("<q", data, at)[0])


def _place(data: bytes, offset_of: Offsets) -> int | None:
    """The position of the communicator in a payload; None if it has none or is cut short."""
    if len(data) < HEADER_BYTES:
        return None
    (domain,), (schema,) = struct.unpack_from("<I", data, DOMAIN_AT), struct.unpack_from("<I", data, SCHEMA_AT)
    offset = offset_of.get((domain, schema))
    if offset is None or len(data) < HEADER_BYTES + offset + NUMBER_BYTES:
        return None
    return HEADER_BYTES + offset
