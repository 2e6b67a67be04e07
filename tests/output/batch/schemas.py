"""What readers of JUnit XML and of SARIF 2.1.0 ask for, written down from their documentation: the elements and
properties that we use, and nothing beside them."""

from __future__ import annotations

from typing import Any

JUNIT_XSD = """<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:complexType name="problem">
    <xs:simpleContent>
      <xs:extension base="xs:string">
        <xs:attribute name="type" type="xs:string" use="required"/>
        <xs:attribute name="message" type="xs:string" use="required"/>
      </xs:extension>
    </xs:simpleContent>
  </xs:complexType>
  <xs:element name="testcase">
    <xs:complexType>
      <xs:choice minOccurs="0">
        <xs:element name="error" type="problem"/>
        <xs:element name="failure" type="problem"/>
      </xs:choice>
      <xs:attribute name="name" use="required">
        <xs:simpleType><xs:restriction base="xs:string"><xs:minLength value="1"/></xs:restriction></xs:simpleType>
      </xs:attribute>
      <xs:attribute name="classname" type="xs:string" use="required"/>
      <xs:attribute name="time" type="xs:decimal" use="required"/>
    </xs:complexType>
  </xs:element>
  <xs:element name="testsuite">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="properties">
          <xs:complexType>
            <xs:sequence><xs:any processContents="skip" maxOccurs="unbounded"/></xs:sequence>
          </xs:complexType>
        </xs:element>
        <xs:element ref="testcase" maxOccurs="unbounded"/>
        <xs:element name="system-out" type="xs:string"/>
        <xs:element name="system-err" type="xs:string"/>
      </xs:sequence>
      <xs:attribute name="name" type="xs:string" use="required"/>
      <xs:attribute name="id" type="xs:nonNegativeInteger" use="required"/>
      <xs:attribute name="package" type="xs:string" use="required"/>
      <xs:attribute name="hostname" type="xs:string" use="required"/>
      <xs:attribute name="timestamp" type="xs:dateTime" use="required"/>
      <xs:attribute name="tests" type="xs:nonNegativeInteger" use="required"/>
      <xs:attribute name="failures" type="xs:nonNegativeInteger" use="required"/>
      <xs:attribute name="errors" type="xs:nonNegativeInteger" use="required"/>
      <xs:attribute name="time" type="xs:decimal"/>
    </xs:complexType>
  </xs:element>
  <xs:element name="testsuites">
    <xs:complexType>
      <xs:sequence><xs:element ref="testsuite" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
    </xs:complexType>
  </xs:element>
</xs:schema>
"""


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(of: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": of, **more}


TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object({"text": TEXT})
RULE = _object({"id": TEXT, "shortDescription": MESSAGE, "fullDescription": MESSAGE, "help": MESSAGE})
"""With what code scanning on GitHub asks for beyond the standard."""
LOCATION = _object(
    {
        "physicalLocation": _object(
            {
                "artifactLocation": _object({"uri": {"type": "string", "format": "uri-reference", "minLength": 1}}),
                "region": _object({"startLine": {"type": "integer", "minimum": 1}}),
            }
        )
    }
)
SARIF = _object(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": _list(
            _object(
                {
                    "tool": _object(
                        {
                            "driver": _object(
                                {"name": TEXT, "version": TEXT},
                                rules=_list(RULE, uniqueItems=True),
                            )
                        }
                    ),
                    "results": _list(
                        _object(
                            {
                                "ruleId": TEXT,
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": _list(LOCATION, minItems=1),
                                "partialFingerprints": {"type": "object", "additionalProperties": TEXT},
                            }
                        )
                    ),
                },
                columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                invocations=_list(
                    _object(
                        {"executionSuccessful": {"type": "boolean"}},
                        toolExecutionNotifications=_list(
                            _object({"message": MESSAGE}, level=LEVEL, locations=_list(LOCATION))
                        ),
                    )
                ),
            ),
            minItems=1,
        ),
    }
)
