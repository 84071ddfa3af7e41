from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.audit.event import (
    DICOM,
    MEANINGS,
    OWN_ACTIONS,
    Origin,
    event_of,
    is_readable,
)
from fhirpub.audit.record import BEGUN, Agent
from fhirpub.fhir.schema import own_schemas
from fhirpub.fhir.xml.writer import write_xml
from tests.audit_trail import CLIENT, a_record

ORIGIN = Origin("0123456789ab", "https://fhir.example.org", "https://issuer.example.org")
BALP = "https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit."
REPORT = "DiagnosticReport/5a5b5c5d-0000-4000-8000-aabbccddeeff"
PATIENT = "Patient/11111111-2222-4333-8444-555555555555"
OTHER_PATIENT = "Patient/11111111-2222-4333-8444-666666666666"
COMMAND = Agent(user="admin", host="db-1.example.org", environment="production")


def an_event(action: str = "read", **record: Any) -> dict[str, Any]:
    members = orjson.loads(a_record(action, **record))
    return event_of(members, ORIGIN, block=3, place=14)


def profile_of(event: dict[str, Any]) -> str:
    return "".join(event["meta"].get("profile", [])).removeprefix(BALP)


NAMES = st.one_of(
    st.sampled_from([REPORT, f"{REPORT}/_history/3", PATIENT, "Client/1", "Endpoint/a", "x"]),
    st.from_regex(r"\A[A-Z][a-z]{0,9}/[A-Za-z0-9.-]{1,70}\Z"),
)
ACTIONS = st.one_of(st.sampled_from(sorted(MEANINGS)), st.from_regex(r"\A[a-z]+(\.[a-z]+)*\Z"))
AGENTS = st.sampled_from([CLIENT, COMMAND, Agent(), Agent(address="192.0.2.1"), Agent(user="u")])


@settings(deadline=None)
@given(
    action=ACTIONS,
    agent=AGENTS,
    status=st.sampled_from([102, 200, 201, 304, 401, 404, 429, 500, 503]),
    what=st.lists(NAMES, max_size=4).map(tuple),
    patients=st.lists(st.sampled_from([PATIENT, OTHER_PATIENT]), max_size=2).map(tuple),
    query=st.sampled_from(["", "patient=1", "a=%C3%A9&b=ü"]),
    count=st.sampled_from([0, 17]),
)
def test_every_record_is_a_valid_event_in_json_and_in_xml(agent: Agent, **record: Any) -> None:
    event = an_event(agent=agent, **record)

    assert [*own_schemas().problems("AuditEvent", event)] == []
    assert write_xml(event)


def test_an_entity_with_a_name_and_a_query_would_not_be_valid() -> None:
    event = an_event("search", query="code=1")
    event["entity"][0]["name"] = "both"

    (issue,) = own_schemas().problems("AuditEvent", event)
    assert "sev-1" in issue.diagnostics


def test_the_id_is_where_the_record_stands() -> None:
    assert an_event()["id"] == "0123456789ab-3-14"


@pytest.mark.parametrize(
    ("status", "outcome", "said"),
    [
        (200, "0", "HTTP status 200"),
        (304, "0", "HTTP status 304"),
        (BEGUN, "0", "The change was begun; another event has its outcome."),
        (403, "4", "HTTP status 403"),
        (503, "8", "HTTP status 503"),
    ],
)
def test_the_outcome_follows_from_the_status(status: int, outcome: str, said: str) -> None:
    event = an_event(status=status)

    assert (event["outcome"], event["outcomeDesc"]) == (outcome, said)


@pytest.mark.parametrize(
    ("action", "code", "interaction"),
    [
        ("read", "R", "read"),
        ("vread", "R", "vread"),
        ("history", "R", "history-instance"),
        ("search", "E", "search-type"),
        ("register", "C", "create"),
        ("revise", "U", "update"),
        ("update", "U", "patch"),
        ("validate", "E", "operation"),
        ("endpoint.delete", "D", ""),
        ("erase", "D", ""),
        ("never.heard.of", "E", ""),
    ],
)
def test_an_action_has_a_code_and_perhaps_an_interaction(
    action: str, code: str, interaction: str
) -> None:
    event = an_event(action)

    *rest, own = event["subtype"]
    assert event["action"] == code
    assert [one["code"] for one in rest] == ([interaction] if interaction else [])
    assert own == {"system": OWN_ACTIONS, "code": action}


def test_a_read_goes_from_the_service_to_the_client_and_all_else_the_other_way() -> None:
    def roles(action: str) -> list[str]:
        agents = an_event(action)["agent"]
        return [agent["type"]["coding"][0]["code"] for agent in agents]

    assert roles("read") == ["110152", "110153"]
    assert roles("search") == ["110153", "110152"]
    assert roles("register") == ["110153", "110152"]


def test_a_client_is_an_agent_with_its_address() -> None:
    client, service = an_event()["agent"]

    assert client["who"]["identifier"] == {"system": ORIGIN.issuer, "value": CLIENT.client}
    assert client["network"] == {"address": "192.0.2.7", "type": "2"}
    assert (client["requestor"], service["requestor"]) == (True, False)


def test_refusals_of_unknown_clients_are_counted() -> None:
    event = an_event("unauthenticated", agent=Agent(), status=401, count=17)

    client, _service = event["agent"]
    assert event["type"] == {"system": DICOM, "code": "110114", "display": "User Authentication"}
    assert event["outcomeDesc"] == "HTTP status 401, 17 attempts"
    assert client["who"] == {"display": "a client without a valid token"}
    assert "network" not in client


def test_a_command_has_a_user_and_a_host() -> None:
    event = an_event("client.add", agent=COMMAND)

    user, _service = event["agent"]
    assert user["who"] == {"identifier": {"value": "admin"}}
    assert user["network"] == {"address": "db-1.example.org", "type": "1"}
    assert event["type"]["code"] == "110100"
    assert event["source"]["site"] == "production"


def test_a_delivery_leaves_the_service_for_an_endpoint() -> None:
    event = an_event("event.deliver", agent=Agent(), what=(REPORT, "Endpoint/8f0a"))

    (service,) = event["agent"]
    assert service["requestor"]
    assert event["type"]["code"] == "110106"
    assert event["entity"][1] == {
        "what": {"identifier": {"value": "8f0a"}},
        "type": event["entity"][0]["type"],
        "role": {
            "system": "http://terminology.hl7.org/CodeSystem/object-role",
            "code": "16",
            "display": "Data Destination",
        },
        "name": "Endpoint/8f0a",
    }


def test_a_patient_that_was_read_is_among_the_patients_once() -> None:
    entities = an_event(what=(f"{PATIENT}/_history/2",), patients=(PATIENT,))["entity"]

    named = [(one["what"].get("reference"), one["type"]["code"]) for one in entities]
    assert named[:2] == [(PATIENT, "1"), (f"{PATIENT}/_history/2", "2")]


def test_what_a_search_found_is_no_system_object_since_the_query_is_the_only_one() -> None:
    event = an_event("search", query="code=1", what=(REPORT,))

    found, query, _request = event["entity"]
    assert found["type"] == {
        "system": "http://hl7.org/fhir/resource-types",
        "code": "DiagnosticReport",
    }
    assert (query["type"]["code"], query["role"]["code"]) == ("2", "24")


def test_the_id_of_the_request_is_an_entity_as_balp_has_it() -> None:
    (entity,) = an_event()["entity"]

    assert entity["what"] == {"identifier": {"value": "r-1"}}
    assert entity["type"]["code"] == "XrequestId"


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        (REPORT, True),
        (f"{REPORT}/_history/12", True),
        ("Binary/5a5b5c5d-0000-4000-8000-aabbccddeeff.1.1", True),
        ("Endpoint/5a5b5c5d", False),
        ("Client/5a5b5c5d", False),
        ("DiagnosticReport", False),
        ("DiagnosticReport/with_underscore", False),
        (f"Patient/{'x' * 65}", False),
    ],
)
def test_only_what_fhir_can_read_is_a_reference(name: str, *, readable: bool) -> None:
    assert is_readable(name) is readable


@pytest.mark.parametrize(
    ("record", "profile"),
    [
        ({"what": (REPORT,)}, "Read"),
        ({"what": (REPORT,), "patients": (PATIENT,)}, "PatientRead"),
        ({"what": (f"{PATIENT}/_history/1",), "action": "vread"}, "PatientRead"),
        ({"action": "search", "query": "code=1"}, "Query"),
        ({"action": "search", "query": "code=1", "patients": (PATIENT,)}, "PatientQuery"),
        ({"action": "register", "what": (REPORT,), "patients": (PATIENT,)}, "PatientCreate"),
        ({"action": "update", "what": (REPORT,)}, "Update"),
        ({"action": "revise", "what": (REPORT,), "patients": (PATIENT,)}, "PatientUpdate"),
        ({"action": "audit.search", "query": "date=2027"}, "Query"),
        ({"what": (REPORT,), "patients": (PATIENT, OTHER_PATIENT)}, ""),
        ({"what": (REPORT, REPORT)}, ""),
        ({"what": ()}, ""),
        ({"what": (REPORT,), "status": 404}, ""),
        ({"what": (REPORT,), "status": BEGUN}, ""),
        ({"what": (REPORT,), "agent": Agent(client="x")}, ""),
        ({"what": (REPORT,), "agent": Agent(address="192.0.2.1")}, ""),
        ({"what": ("Endpoint/1",)}, ""),
        ({"action": "search"}, ""),
        ({"action": "search", "query": "code=1", "what": (REPORT, REPORT)}, "Query"),
        ({"action": "search", "query": "code=1", "what": ("Endpoint/1",)}, ""),
        ({"action": "history", "what": (REPORT,)}, ""),
        ({"action": "batch"}, ""),
    ],
)
def test_a_profile_is_stated_only_where_the_event_conforms_to_it(
    record: dict[str, Any], profile: str
) -> None:
    assert profile_of(an_event(**record)) == profile
