"""The members of an event, one by one, and the code of each action."""

from __future__ import annotations

import base64

import pytest

from fhirpub.audit.event import MEANINGS, agent_of, outcome_of, patients_of
from fhirpub.audit.record import Agent
from tests.unit.audit.test_event import ORIGIN, PATIENT, REPORT, an_event

ACTIONS_OF_CODES = {
    "C": ["register", "endpoint.create", "client.add", "tenant.add", "hold.add"],
    "R": [
        *("read", "vread", "history", "endpoint.read", "delivery.read", "event.deliver"),
        *("audit.read", "audit.export", "erase.list", "hold.list", "transfer"),
    ],
    "U": [
        *("revise", "update", "endpoint.update", "endpoint.pause", "endpoint.enable"),
        *("endpoint.secret.rotate", "endpoint.token.rotate", "client.rotate", "client.disable"),
        *("client.passkey.add", "client.passkey.remove", "tenant.disable", "key.rotate"),
        "quota.set",
    ],
    "D": ["endpoint.delete", "erase", "hold.release"],
}
TYPES_OF_OWN = {
    "110114": [
        *("token", "unauthenticated", "console.link", "console.sign-in", "console.sign-out"),
    ],
    "110106": ["event.deliver", "audit.export", "transfer"],
}


@pytest.mark.parametrize("action", [*MEANINGS, "never.heard.of"])
def test_each_action_has_the_code_of_what_it_does(action: str) -> None:
    (code,) = [code for code, some in ACTIONS_OF_CODES.items() if action in some] or ["E"]

    assert an_event(action)["action"] == code


@pytest.mark.parametrize("action", [*MEANINGS, "never.heard.of"])
def test_each_action_of_a_client_has_the_type_of_its_kind(action: str) -> None:
    (code,) = [code for code, some in TYPES_OF_OWN.items() if action in some] or ["rest"]

    assert an_event(action)["type"]["code"] == code


@pytest.mark.parametrize("status", [399, 400, 499, 500])
def test_an_outcome_changes_with_the_class_of_the_status(status: int) -> None:
    expected = {399: "0", 400: "4", 499: "4", 500: "8"}

    assert outcome_of({"status": status}) == expected[status]


def test_an_event_was_recorded_and_last_updated_at_the_time_of_its_record() -> None:
    event = an_event(at=1_800_000_000_123)

    assert event["recorded"] == "2027-01-15T08:00:00.123Z"
    assert event["meta"]["lastUpdated"] == event["recorded"]
    assert event["meta"]["versionId"] == "1"


def test_the_source_of_an_event_is_this_service_in_its_environment() -> None:
    source = an_event()["source"]

    assert source["site"] == "sandbox"
    assert source["observer"] == {
        "identifier": {"system": "urn:ietf:rfc:3986", "value": ORIGIN.base_url}
    }
    assert source["type"][0]["code"] == "4"


def test_a_record_without_an_environment_has_no_site() -> None:
    assert "site" not in an_event(agent=Agent(client="c"))["source"]


def test_this_service_is_an_agent_with_its_address() -> None:
    _client, service = an_event()["agent"]

    assert service["who"]["identifier"]["value"] == ORIGIN.base_url
    assert service["network"] == {"address": ORIGIN.base_url, "type": "5"}


def test_an_event_without_a_patient_a_resource_or_a_request_has_no_entity() -> None:
    assert "entity" not in an_event("token", agent=Agent(client="c"))


def test_a_query_is_kept_in_base64_as_it_was_sent() -> None:
    query, _request = an_event("search", query="code=%C3%BC&a=\u00fc")["entity"]

    assert base64.b64decode(query["query"]).decode() == "code=%C3%BC&a=\u00fc"


def test_entities_are_patients_then_resources_then_the_query_and_the_request() -> None:
    entities = an_event("search", what=(REPORT,), patients=(PATIENT,), query="a=1")["entity"]

    assert [one["type"]["code"] for one in entities] == [
        "1",
        "DiagnosticReport",
        "2",
        "XrequestId",
    ]


def test_a_client_that_was_changed_is_a_security_entity_and_others_a_resource_of_security() -> (
    None
):
    client, tenant = an_event("client.add", agent=Agent(user="u"), what=("Client/1", "Tenant/2"))[
        "entity"
    ]

    assert (client["role"]["code"], client["name"]) == ("11", "Client/1")
    assert (tenant["role"]["code"], tenant["what"]) == ("13", {"identifier": {"value": "2"}})


def test_a_delivery_that_a_client_fetched_goes_to_the_client() -> None:
    client, service = an_event("event.deliver")["agent"]

    assert client["type"]["coding"][0]["code"] == "110152"
    assert (client["requestor"], service["requestor"]) == (False, True)


def test_the_patients_of_a_record_are_named_once_in_their_order() -> None:
    record = {"patients": ["Patient/b"], "what": ["Patient/a/_history/2", "Patient/b", "Client/1"]}

    assert patients_of(record) == ["Patient/b", "Patient/a"]


def test_the_agent_of_a_record_is_a_client_or_a_user_or_none() -> None:
    assert agent_of({"client": "c", "user": "u"}) == "c"
    assert agent_of({"user": "u"}) == "u"
    assert agent_of({}) == ""


@pytest.mark.parametrize(
    ("count", "said"), [(0, "HTTP status 401"), (2, "HTTP status 401, 2 attempts")]
)
def test_an_outcome_says_how_many_attempts_it_stands_for(count: int, said: str) -> None:
    assert an_event("token", status=401, count=count)["outcomeDesc"] == said
