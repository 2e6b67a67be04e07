"""The part of the Chrome trace-event format that is written here, as a JSON Schema: what each phase must have."""

from __future__ import annotations

NUMBER = {"type": "number"}
WHOLE = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}
ARGS = {"type": "object"}


def phase(letter: str, required: dict[str, object], **optional: object) -> dict[str, object]:
    """An event of one phase: it must have these fields and may have no others."""
    properties = {"ph": {"const": letter}, "name": {"type": "string"}, "pid": WHOLE, **required}
    return {
        "type": "object",
        "properties": {**properties, **optional},
        "required": [*properties],
        "additionalProperties": False,
    }


TIMED = {"ts": NUMBER, "cat": TEXT, "tid": WHOLE, "args": ARGS}
METADATA = {
    "process_name": {"name": TEXT},
    "thread_name": {"name": TEXT},
    "process_sort_index": {"sort_index": WHOLE},
    "thread_sort_index": {"sort_index": WHOLE},
}
EVENT = {
    "oneOf": [
        phase("X", {**TIMED, "dur": {"type": "number", "minimum": 0}}),
        phase("i", {**TIMED, "s": {"enum": ["g", "p", "t"]}}),
        phase("C", {"ts": NUMBER, "args": {"type": "object", "minProperties": 1, "additionalProperties": NUMBER}}),
        *(
            phase(
                "M",
                {
                    "name": {"const": name},
                    "args": {
                        "type": "object",
                        "properties": args,
                        "required": [*args],
                        "additionalProperties": False,
                    },
                },
                tid=WHOLE,
            )
            for name, args in METADATA.items()
        ),
    ]
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        "traceEvents": {"type": "array", "items": EVENT},
    },
    "required": ["traceEvents"],
    "additionalProperties": False,
}
