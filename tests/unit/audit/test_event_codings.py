"""Codes of events, each with its system and its name there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.audit.event import MEANINGS
from fhirpub.audit.record import Agent
from tests.unit.audit.test_event import an_event

HL7 = "http://terminology.hl7.org/CodeSystem"
DICOM = "http://dicom.nema.org/resources/ontology/DCM"
INTERACTIONS = {
    "read": "read",
    "vread": "vread",
    "history": "history-instance",
    "search": "search-type",
    "register": "create",
    "revise": "update",
    "update": "patch",
    "validate": "operation",
    "operation": "operation",
    "batch": "batch",
    "audit.read": "read",
    "audit.search": "search-type",
}
PROFILES = {
    **dict.fromkeys(("read", "vread", "audit.read"), "Read"),
    **dict.fromkeys(("search", "audit.search"), "Query"),
    **dict.fromkeys(("revise", "update"), "Update"),
    "register": "Create",
}


def codings_in(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield each coding of HL7 or DICOM in an event."""
    if isinstance(value, dict):
        if value.get("system", "").startswith((HL7, DICOM)):
            yield value["system"], value["code"], value.get("display", "")
        for item in value.values():
            yield from codings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from codings_in(item)


WHAT = ("DiagnosticReport/1", "Client/c", "Endpoint/e", "Key/k")
CODINGS = {
    f"{HL7}/audit-event-type": {"rest": "Restful Operation"},
    f"{HL7}/security-source-type": {"4": "Application Server"},
    f"{HL7}/audit-entity-type": {"1": "Person", "2": "System Object"},
    f"{HL7}/object-role": {
        "1": "Patient",
        "4": "Domain Resource",
        "11": "Security User Entity",
        "13": "Security Resource",
        "16": "Data Destination",
        "24": "Query",
    },
    DICOM: {
        "110100": "Application Activity",
        "110106": "Export",
        "110114": "User Authentication",
        "110152": "Destination Role ID",
        "110153": "Source Role ID",
    },
}


def test_each_code_has_its_name_in_its_system() -> None:
    events = [
        an_event("history", what=WHAT, patients=("Patient/1",), query="a=1"),
        an_event("register", what=WHAT, patients=("Patient/1",)),
        *(an_event(action, agent=Agent(user="u")) for action in MEANINGS),
    ]
    found: dict[str, dict[str, str]] = {}

    for system, code, display in codings_in(events):
        found.setdefault(system, {}).setdefault(code, display)
        assert found[system][code] == display

    assert found == CODINGS


@pytest.mark.parametrize("action", MEANINGS)
def test_an_interaction_comes_before_the_action_of_the_service(action: str) -> None:
    codes = [one["code"] for one in an_event(action)["subtype"]]

    assert codes == [*filter(None, [INTERACTIONS.get(action)]), action]


@pytest.mark.parametrize("action", MEANINGS)
def test_only_some_actions_have_a_profile(action: str) -> None:
    assert MEANINGS[action].profile == PROFILES.get(action, "")
