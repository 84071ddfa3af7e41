"""What JSON can say and XML cannot is not written."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import NotExpressible
from fhirpub.fhir.xml.writer import write_xml

SPECIMEN = {"resourceType": "Specimen", "id": "s"}
INEXPRESSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "a name that R4 does not have": ({"nickname": "a"}, ""),
    "a type that R4 does not have": ({"contained": [{"resourceType": "Thing"}]}, "contained[0]"),
    "one where many may be": ({"note": {"text": "a"}}, "note"),
    "many where one may be": ({"status": ["available"]}, "status"),
    "a text where an object is": ({"type": "blood"}, "type"),
    "an object where a text is": ({"status": {"a": "b"}}, "status"),
    "a text where a number is": (
        {"collection": {"quantity": {"value": "1"}}},
        "collection.quantity.value",
    ),
    "a number where a text is": ({"receivedTime": 2026}, "receivedTime"),
    "a truth where a number is": (
        {"collection": {"quantity": {"value": True}}},
        "collection.quantity.value",
    ),
    "false where many may be": ({"note": False}, "note"),
    "false beside a text": ({"receivedTime": "2024", "_receivedTime": False}, "receivedTime"),
    "false beside many objects": ({"note": [{"text": "a"}], "_note": False}, "note"),
    "what stands beside an object": ({"type": {"text": "a"}, "_type": {"id": "a"}}, "type"),
    "a narrative that is no XML": (
        {"text": {"status": "generated", "div": "<div>"}},
        "text.div",
    ),
    "a narrative that breaks out": (
        {"text": {"status": "generated", "div": '<div/></text><active value="true"/><text>'}},
        "text.div",
    ),
    "a character that XML does not have": ({"receivedTime": "\uffff"}, ""),
}


@pytest.mark.parametrize("case", INEXPRESSIBLE)
def test_what_xml_cannot_say_is_not_written(case: str) -> None:
    change, place = INEXPRESSIBLE[case]

    with pytest.raises(NotExpressible) as caught:
        write_xml({**SPECIMEN, **change})

    assert caught.value.place == place
