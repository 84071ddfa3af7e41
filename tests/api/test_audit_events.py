"""The audit trail of a tenant, as AuditEvents."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest

from fhirpub.audit.record import Agent
from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import (
    AUDITOR,
    CLIENT,
    EVENTS,
    FILLED_BY_TESTS,
    NOON,
    REPORT,
    a_record,
    actions_found,
    events_found,
    fill,
)

OTHER_REPORT = "DiagnosticReport/5a5b5c5d-0000-4000-8000-aabbccddee00"
PATIENT = "Patient/11111111-2222-4333-8444-555555555555"
OTHER_PATIENT = "Patient/11111111-2222-4333-8444-666666666666"
COMMAND = Agent(user="admin", host="db-1.example.org", environment="sandbox")
RECORDS = [
    a_record("read", what=(REPORT,), patients=(PATIENT,), at=NOON),
    a_record("search", query="patient=1&_count=2", patients=(OTHER_PATIENT,), at=NOON + 1_000),
    a_record("register", status=201, what=(f"{REPORT}/_history/1",), at=NOON + 2_000),
    a_record("update", status=412, what=(f"{OTHER_REPORT}/_history/2",), at=NOON + 3_000),
    a_record("endpoint.pause", what=("Endpoint/8f0a",), at=NOON + 4_000),
    a_record("client.add", agent=COMMAND, what=("Client/0b6c",), at=NOON + 5_000),
    a_record(
        "unauthenticated",
        agent=Agent(environment="sandbox"),
        status=401,
        count=17,
        at=NOON + 6_000,
    ),
    a_record("read", status=503, what=(PATIENT,), at=NOON + 7_000),
    a_record("something.new", at=NOON + 8_000),
]
ACTIONS = ["something.new", "read", "unauthenticated", "client.add", "endpoint.pause", "update",
           "register", "search", "read"]  # fmt: skip


@pytest.fixture(scope="module")
def auditing(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    """A service whose trails have what the tests put into them."""
    folder = tmp_path_factory.mktemp("auditing")
    with RunningService(
        folder, config=FILLED_BY_TESTS, store_url=store_url("auditing")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def auditor(auditing: RunningService) -> Integrator:
    """A client that may read the trail of a tenant, which has one."""
    auditor = auditing.integrator("Audited", scopes=AUDITOR)
    fill(auditing, auditor.tenant.id, RECORDS)
    return auditor


def search(client: Integrator, query: str = "", **headers: str) -> Answer:
    return client.get(f"{EVENTS}?{query}" if query else EVENTS, **headers)


def next_link(answer: Answer) -> str:
    return next((one["url"] for one in answer.json["link"] if one["relation"] == "next"), "")


# What is found.


def test_a_search_without_parameters_returns_the_trail_the_newest_first(
    auditor: Integrator,
) -> None:
    answer = search(auditor)

    assert actions_found(answer) == ACTIONS
    assert "total" not in answer.json
    assert next_link(answer) == ""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"patient={PATIENT}", ["read", "read"]),
        (f"patient={PATIENT.partition('/')[2]}", ["read", "read"]),
        (f"patient:Patient={PATIENT.partition('/')[2]}", ["read", "read"]),
        (f"patient={PATIENT},{OTHER_PATIENT}", ["read", "search", "read"]),
        (f"patient={PATIENT}&patient={OTHER_PATIENT}", []),
        (f"patient={REPORT}", []),
        ("patient=https://elsewhere.example/Patient/1", []),
        (f"agent={CLIENT.client}&outcome=4", ["update"]),
        ("agent=admin", ["client.add"]),
        ("agent:identifier=admin", ["client.add"]),
        ("agent:identifier=https://elsewhere.example|admin", []),
        ("agent=nothing", []),
        (f"entity={REPORT}", ["register", "read"]),
        (f"entity={REPORT}/_history/1", ["register"]),
        (f"entity={REPORT},{OTHER_REPORT}", ["update", "register", "read"]),
        (f"entity:DiagnosticReport={REPORT.partition('/')[2]}", ["register", "read"]),
        (f"entity={REPORT.partition('/')[2]}", ["register", "read"]),
        (f"entity={PATIENT}", ["read", "read"]),
        ("entity=Endpoint/8f0a", ["endpoint.pause"]),
        ("action=C", ["client.add", "register"]),
        ("action=http://hl7.org/fhir/audit-event-action|C", ["client.add", "register"]),
        ("action=C,U", ["client.add", "endpoint.pause", "update", "register"]),
        ("outcome=4,8", ["read", "unauthenticated", "update"]),
        ("subtype=patch", ["update"]),
        ("subtype=endpoint.pause", ["endpoint.pause"]),
        ("subtype=http://hl7.org/fhir/restful-interaction|", ["read", "update", "register",
                                                               "search", "read"]),
        ("date=2027-01-15", ACTIONS),
        ("date=2027-01-15T08:00:02Z", ["register"]),
        ("date=ge2027-01-15T08:00:07Z", ["something.new", "read"]),
        ("date=gt2027-01-15T08:00:01Z&date=lt2027-01-15T08:00:04Z", ["update", "register"]),
        ("date=ne2027-01-15", []),
        ("_lastUpdated=le2027-01-15T08:00:00Z", ["read"]),
        (f"patient={PATIENT}&outcome=0&action=R", ["read"]),
        ("_sort=-date&_total=none&_format=json&_pretty=false", ACTIONS),
    ],
)  # fmt: skip
def test_a_search_finds_the_events_that_its_parameters_describe(
    auditor: Integrator, query: str, expected: list[str]
) -> None:
    assert actions_found(search(auditor, query, Prefer="handling=strict")) == expected


def test_an_absolute_url_of_the_service_names_a_patient(auditor: Integrator) -> None:
    url = f"{auditor.service.base_url}/fhir/r4/{PATIENT}"

    assert actions_found(search(auditor, f"patient={url}")) == ["read", "read"]


def test_the_issuer_is_the_system_of_the_ids_of_clients(auditor: Integrator) -> None:
    query = f"agent:identifier={auditor.service.base_url}|{CLIENT.client}"

    assert len(events_found(search(auditor, query))) == 7


def test_a_search_by_form_finds_the_same(auditor: Integrator) -> None:
    form = urlencode({"patient": PATIENT}).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = auditor.request("POST", f"{EVENTS}/_search?outcome=0", form, kind)

    assert actions_found(answer) == ["read"]


def test_ids_of_events_find_them(auditor: Integrator) -> None:
    ids = [event["id"] for event in events_found(search(auditor))]
    strange = f"{ids[0]}9999,{'0' * 12}-1-1,nothing"

    answer = search(auditor, f"_id={ids[7]},{ids[2]},{strange}")

    assert actions_found(answer) == ["unauthenticated", "search"]


def test_pages_of_a_search_by_ids_lead_from_one_to_the_next(auditor: Integrator) -> None:
    ids = ",".join(event["id"] for event in events_found(search(auditor)))

    first = search(auditor, f"_id={ids}&_count=5")
    second = auditor.get(next_link(first))

    assert actions_found(first) + actions_found(second) == ACTIONS
    assert next_link(second) == ""


# Pages.


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_pages_lead_through_all_blocks_without_a_gap(auditing: RunningService, count: int) -> None:
    client = auditing.integrator("Pages", scopes=AUDITOR)
    times = [NOON + 600_000 * number for number in range(20)]  # in blocks of half an hour
    fill(auditing, client.tenant.id, [a_record(at=time) for time in times[:11]])
    fill(auditing, client.tenant.id, [a_record(at=time) for time in times[11:]])

    pages = [search(client, f"_count={count}&agent={CLIENT.client}")]
    while next_link(pages[-1]):
        pages.append(client.get(next_link(pages[-1])))

    recorded = [event["recorded"] for page in pages for event in events_found(page)]
    assert len(recorded) == len(times)
    assert recorded == sorted(recorded, reverse=True)
    assert all(len(events_found(page)) == count for page in pages[:-1])


def test_a_search_reads_few_blocks_and_leads_on_from_an_empty_page(
    auditing: RunningService,
) -> None:
    client = auditing.integrator("Bounded", scopes=AUDITOR)
    fill(auditing, client.tenant.id, [a_record("batch"), *(a_record(at=NOON + 3_600_000 * hour)
                                                 for hour in range(1, 70))])  # fmt: skip

    first = search(client, "subtype=batch")
    second = client.get(next_link(first))

    assert events_found(first) == []
    assert actions_found(second) == ["batch"]
    assert next_link(second) == ""


@pytest.mark.parametrize("change", ["_cursor=AAAA", "agent=other"])
def test_a_link_serves_its_own_search_alone(auditor: Integrator, change: str) -> None:
    following = next_link(search(auditor, "_count=1"))
    name = change.partition("=")[0]
    other = re.sub(f"[?&]{name}=[^&]*", "", following) + f"&{change}"

    answer = auditor.get(other)

    assert (answer.status, answer.problems) == (400, ["page-link-invalid"])


def test_a_link_of_another_tenant_is_refused(
    auditing: RunningService, auditor: Integrator
) -> None:
    following = next_link(search(auditor, "_count=1"))

    answer = auditing.integrator("Other", scopes=AUDITOR).get(following)

    assert (answer.status, answer.problems) == (400, ["page-link-invalid"])


# What is wrong.


def test_all_that_is_wrong_is_reported_at_once(auditor: Integrator) -> None:
    answer = search(
        auditor,
        "date=yesterday&_count=0&action:not=C&_summary=count&agent:identifier=x|&nonsense=1",
        Prefer="handling=strict",
    )

    places = {"date", "_count", "action", "_summary", "agent", "nonsense"}
    assert answer.status == 400
    assert answer.issue_expressions == places


def test_an_unknown_parameter_is_reported_with_the_one_that_was_meant(
    auditor: Integrator,
) -> None:
    answer = search(auditor, "pateint=1&outcome=8&agent=")

    (outcome,) = (e["resource"] for e in answer.json["entry"] if e["search"]["mode"] == "outcome")
    said = [issue["diagnostics"] for issue in outcome["issue"]]
    assert actions_found(answer) == ["read"]
    assert "did you mean patient?" in said[0]
    assert "agent has no value" in said[1]


@pytest.mark.parametrize("query", ["_sort=date", "_total=accurate", "_include=*", "a.b=1"])
def test_what_the_trail_cannot_do_is_unknown(auditor: Integrator, query: str) -> None:
    lenient = search(auditor, query)
    strict = search(auditor, query, Prefer="handling=strict")

    assert actions_found(lenient) == ACTIONS
    assert strict.problems == ["parameter-unknown"]


def test_too_many_values_are_refused(auditor: Integrator) -> None:
    many = ",".join(["x"] * 5_000)

    form = urlencode({"agent": many}).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = auditor.request("POST", f"{EVENTS}/_search", form, kind)

    assert answer.problems == ["search-too-costly"]


# One event.


def test_an_event_is_read_as_it_was_found(auditor: Integrator) -> None:
    for event in events_found(search(auditor)):
        answer = auditor.get(f"{EVENTS}/{event['id']}")

        assert answer.json == event
        assert answer.headers["etag"] == 'W/"1"'


def test_an_event_says_who_read_what_of_which_patient(auditor: Integrator) -> None:
    event = events_found(search(auditor, "date=2027-01-15T08:00:00Z"))[0]

    assert event["meta"]["profile"] == [
        "https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit.PatientRead"
    ]
    assert event["agent"][0]["who"]["identifier"]["value"] == CLIENT.client
    assert [one["what"]["reference"] for one in event["entity"][:2]] == [PATIENT, REPORT]


def test_the_query_of_a_search_is_in_its_event(auditor: Integrator) -> None:
    (event,) = events_found(search(auditor, "subtype=search"))

    (query,) = (one["query"] for one in event["entity"] if "query" in one)
    assert base64.b64decode(query) == b"patient=1&_count=2"


def test_an_event_can_be_asked_for_in_xml_and_in_part(auditor: Integrator) -> None:
    event = events_found(search(auditor))[0]

    xml = auditor.get(f"{EVENTS}/{event['id']}?_format=xml")
    part = auditor.get(f"{EVENTS}/{event['id']}?_elements=recorded")
    parts = events_found(search(auditor, "_elements=recorded"))

    assert xml.headers["content-type"] == "application/fhir+xml"
    assert b"<AuditEvent " in xml.body
    assert "outcomeDesc" not in part.json
    assert part.json == parts[0]


def test_a_search_can_be_answered_in_xml(auditor: Integrator) -> None:
    answer = search(auditor, "_format=xml")

    assert answer.body.count(b"<AuditEvent>") == len(ACTIONS)


def test_a_head_request_returns_the_headers_alone(auditor: Integrator) -> None:
    event = events_found(search(auditor))[0]

    answer = auditor.request("HEAD", f"{EVENTS}/{event['id']}")

    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-None-Match": 'W/"1"'}, 304),
        ({"If-Modified-Since": "Fri, 15 Jan 2027 08:00:08 GMT"}, 304),
        ({"If-Modified-Since": "Fri, 15 Jan 2027 08:00:07 GMT"}, 200),
        ({"If-Match": 'W/"2"'}, 412),
    ],
)
def test_conditions_are_those_of_other_reads(
    auditor: Integrator, headers: dict[str, str], status: int
) -> None:
    event = events_found(search(auditor))[0]

    answer = auditor.request("GET", f"{EVENTS}/{event['id']}", headers=headers)

    assert answer.status == status


@pytest.mark.parametrize("end", ["-1-99", "-99-0", "-0-0", "-1", ""])
def test_an_event_that_there_is_not_is_404(auditor: Integrator, end: str) -> None:
    prefix = events_found(search(auditor))[0]["id"].partition("-")[0]

    answer = auditor.get(f"{EVENTS}/{prefix}{end}")

    assert (answer.status, answer.problems) == (404, ["resource-unknown"])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_an_event_cannot_be_changed(auditor: Integrator, method: str) -> None:
    event = events_found(search(auditor))[0]

    answer = auditor.request(method, f"{EVENTS}/{event['id']}", {"resourceType": "AuditEvent"})

    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


# Who may.


def test_an_event_of_another_tenant_is_404(auditing: RunningService, auditor: Integrator) -> None:
    other = auditing.integrator("Another", scopes=AUDITOR)
    fill(auditing, other.tenant.id, RECORDS)
    event = events_found(search(auditor))[0]

    answer = other.get(f"{EVENTS}/{event['id']}")

    assert answer.status == 404


def test_a_tenant_finds_its_own_events_alone(
    auditing: RunningService, auditor: Integrator
) -> None:
    other = auditing.integrator("Empty", scopes=AUDITOR)
    event = events_found(search(auditor))[0]

    for query in ("", f"patient={PATIENT}", f"_id={event['id']}"):
        assert events_found(search(other, query)) == []


@pytest.mark.parametrize("scopes", [(), ("system/*.cruds",), ("system/DiagnosticReport.rs",)])
@pytest.mark.parametrize("enforced", [True, False])
def test_the_scope_must_name_the_type_even_where_scopes_are_not_enforced(
    auditing: RunningService,
    strict: RunningService,
    scopes: tuple[str, ...],
    *,
    enforced: bool,
) -> None:
    client = (strict if enforced else auditing).integrator("Curious", scopes=scopes)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    answers = [
        search(client),
        client.request("POST", f"{EVENTS}/_search", b"", kind),
        client.get(f"{EVENTS}/{client.tenant.audit_prefix}-1-0"),
    ]

    assert [answer.status for answer in answers] == [403, 403, 403]


def test_reading_and_finding_are_two_permissions(auditing: RunningService) -> None:
    reader = auditing.integrator("Reader", scopes=("system/AuditEvent.r",))
    finder = auditing.another_client(reader.tenant, scopes=("system/AuditEvent.s",))
    fill(auditing, reader.tenant.id, RECORDS)
    event = events_found(search(finder))[0]

    assert reader.get(f"{EVENTS}/{event['id']}").status == 200
    assert finder.get(f"{EVENTS}/{event['id']}").status == 403
    assert search(reader).status == 403


def test_without_an_audit_trail_there_is_no_address(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> None:
    config = Config(audit=AuditConfig(enabled=False), auth=AuthConfig(enforce_scopes=True))
    folder = tmp_path_factory.mktemp("unaudited")
    with RunningService(folder, config=config, store_url=store_url("unaudited")) as running:
        client = running.integrator(scopes=AUDITOR)
        statement = client.get("/fhir/r4/metadata").json["rest"][0]["resource"]

        assert search(client).status == 404
        assert "AuditEvent" not in [one["type"] for one in statement]


# How it is declared.


def test_the_statement_declares_every_parameter(auditor: Integrator) -> None:
    resources = auditor.get("/fhir/r4/metadata").json["rest"][0]["resource"]
    (declared,) = (one for one in resources if one["type"] == "AuditEvent")

    names = [one["name"] for one in declared["searchParam"]]
    answer = search(auditor, "&".join(f"{name}=2027" for name in names), Prefer="handling=strict")

    assert [one["code"] for one in declared["interaction"]] == ["read", "search-type"]
    assert events_found(answer) == []


def test_a_batch_can_search_the_trail(auditor: Integrator) -> None:
    batch = {
        "resourceType": "Bundle",
        "type": "batch",
        "entry": [{"request": {"method": "GET", "url": "AuditEvent?agent=admin"}}],
    }

    (entry,) = auditor.request("POST", "/fhir/r4", batch).json["entry"]

    assert entry["response"]["status"].startswith("200")
    assert entry["resource"]["entry"][0]["resource"]["agent"][0]["name"] == "admin"
