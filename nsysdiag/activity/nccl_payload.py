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

import numpy as np

from nsysdiag.activity.identity import IntArray
from nsysdiag.trace.trace import Trace

FIELD = "NCCL communicator ID"
HEADER_BYTES, DOMAIN_AT, SCHEMA_AT = 32, 0, 8


def read_communicators(trace: Trace, rows: int) -> IntArray:
    """The communicator of each of the `rows` rows of NVTX_EVENTS, 0 where none is named."""
    entries = trace.read("NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId", "schemaId", "offset", "name")
    columns = zip(*(entries[name].tolist() for name in ("domainId", "schemaId", "offset")), strict=True)
    offset_of = {
        (domain, schema): offset
        for (domain, schema, offset), name in zip(columns, entries["name"].texts(), strict=True)
        if name == FIELD and offset >= 0
    }
    if not offset_of:
        return np.zeros(rows, dtype=np.int64)
    payload = trace.read("NVTX_EVENTS", "binaryData").text("binaryData")
    known = [_communicator(bytes.fromhex(text), offset_of) for text in payload.values]
    # One place more than there are payloads: code -1, none, picks the last.
    return np.array([*known, 0], dtype=np.int64)[payload.codes]


def _communicator(data: bytes, offset_of: dict[tuple[int, int], int]) -> int:
    """The number of the communicator in one payload, 0 where its schema has none or it is cut short."""
    if len(data) < HEADER_BYTES:
        return 0
    (domain,), (schema,) = struct.unpack_from("<I", data, DOMAIN_AT), struct.unpack_from("<I", data, SCHEMA_AT)
    offset = offset_of.get((domain, schema))
    at = HEADER_BYTES + (offset or 0)
    if offset is None or len(data) < at + 8:
        return 0
    (number,) = struct.unpack_from("<q", data, at)
    return int(number)
