from __future__ import annotations

import copy
import hashlib
import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from fhirpub.storage.contract import Resources
from fhirpub.storage.store import Store
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.routes import Route, routes
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests import raw
from tests.bodies import SYSTEM, document, register_body
from tests.panels import panel

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
CHANGE = {"resourceType": "DiagnosticReport", "status": "amended"}
MEMBERS = [
    {**part.example, **({part.patient: {"reference": "Patient/p1"}} if part.patient else {})}
    for part in DIAGNOSTIC_REPORT.parts
    if part.repeats
]
REGISTERED = panel("T-1", *MEMBERS, presentedForm=[document(b"%PDF-1.4 theirs")], result=None)
BODIES = {"PATCH": CHANGE, "POST": REGISTERED}
UNKNOWN_ID = "5a5b5c5d-0000-4000-8000-aabbccddeeff"
UNKNOWN_DOCUMENT = f"{UNKNOWN_ID}.1.1"


@dataclass(frozen=True, slots=True)
class Holdings:
    """A tenant's client, and the ids of all its resources, by type."""

    owner: Integrator
    ids: dict[str, str]


@pytest.fixture
def theirs(service: RunningService) -> Holdings:
    owner = service.integrator("Theirs")
    created = owner.register(REGISTERED)
    members = [
        entry["valueReference"]["reference"].split("/")
        for entry in created.json["parameter"]
        if "valueReference" in entry
    ]
    report = owner.get(created.headers["location"]).json
    entry = owner.get(BASE).json["entry"][0]["resource"]
    return Holdings(
        owner,
        {
            **dict(members),
            "DiagnosticReport": report["id"],
            "Patient": report["subject"]["reference"].partition("/")[2],
            "Organization": report["performer"][0]["reference"].partition("/")[2],
            "Binary": entry["presentedForm"][0]["url"].rpartition("/")[2],
        },
    )


def with_ids(service: RunningService) -> list[Route]:
    """Return the routes to the resources and documents of a tenant.

    The routes to its endpoints are in test_webhook_endpoints.py, those to its audit trail in
    test_audit_events.py.
    """
    own = {"AuditEvent", "CapabilityStatement", "CodeSystem", "OperationDefinition"}
    return [
        route
        for route in routes(service.services)
        if "{}" in route.path and route.type_name and route.type_name not in own
    ]


def filled(route: Route, resource_id: str) -> str:
    return route.path.replace("{}", resource_id, 1).replace("{}", "1")


def asked(caller: Integrator, route: Route, resource_id: str) -> Answer:
    body = BODIES.get(route.method)
    conditions = {"If-Match": "*"} if route.path.endswith("$revise") else {}
    return caller.request(route.method, filled(route, resource_id), body, conditions)


def same(answer: Answer, resource_id: str) -> tuple[Any, ...]:
    """Return the headers and body of a response without those that are unique to it."""
    passing = {"date", "x-request-id"}
    headers = {name: value for name, value in answer.headers.items() if name not in passing}
    return answer.status, headers, nameless(answer).replace(resource_id.encode(), b"<id>")


def nameless(answer: Answer) -> bytes:
    """Return the body of a response without the id of its request."""
    return answer.body.replace(answer.headers["x-request-id"].encode(), b"<request>")


# The resources of another tenant are invisible (D-24).


def test_there_are_routes_to_every_kind_of_thing(
    service: RunningService, theirs: Holdings
) -> None:
    assert {id_.type_name for id_ in with_ids(service)} == set(theirs.ids)
    assert len(with_ids(service)) >= 7


def test_the_owner_gets_everything_by_its_id(service: RunningService, theirs: Holdings) -> None:
    for route in with_ids(service):
        answer = asked(theirs.owner, route, theirs.ids[route.type_name])

        assert answer.status in (200, 204), route


def test_another_tenants_id_gets_the_bytes_of_a_random_one(
    service: RunningService, lab: Integrator, theirs: Holdings
) -> None:
    for route in with_ids(service):
        their_id = theirs.ids[route.type_name]
        unknown_id = UNKNOWN_DOCUMENT if route.type_name == "Binary" else UNKNOWN_ID

        foreign, unknown = asked(lab, route, their_id), asked(lab, route, unknown_id)

        assert unknown.status == 404, route
        assert same(foreign, their_id) == same(unknown, unknown_id), route


def test_another_tenants_id_is_not_there_under_any_type(
    service: RunningService, lab: Integrator, theirs: Holdings
) -> None:
    for route in with_ids(service):
        for their_id in theirs.ids.values():
            assert asked(lab, route, their_id).status == 404, (route, their_id)


@pytest.mark.parametrize(
    "condition",
    [{"If-None-Match": 'W/"1"'}, {"If-None-Match": "*"}, {"If-Match": "*"}, {"Range": "bytes=0-"}],
)
def test_no_condition_reveals_another_tenants_resource(
    service: RunningService, lab: Integrator, theirs: Holdings, condition: dict[str, str]
) -> None:
    for route in with_ids(service):
        path = filled(route, theirs.ids[route.type_name])
        body = BODIES.get(route.method)

        assert lab.request(route.method, path, body, condition).status == 404, route


def test_a_head_returns_no_more_than_a_get(
    service: RunningService, lab: Integrator, theirs: Holdings
) -> None:
    for route in with_ids(service):
        if route.method == "GET":
            path = filled(route, theirs.ids[route.type_name])

            assert lab.request("HEAD", path).status == 404, route


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"resourceType":"DiagnosticReport","status":"nonsense"}',
        b'{"resourceType":"DiagnosticReport","subject":{}}',
        b'{"resourceType":"Patient"}',
    ],
)
@pytest.mark.parametrize("if_match", ["", 'W/"1"', 'W/"9"', "nonsense"])
def test_no_update_however_wrong_reveals_a_report(
    lab: Integrator, theirs: Holdings, body: bytes, if_match: str
) -> None:
    headers = {"If-Match": if_match} if if_match else {}
    their_id = theirs.ids["DiagnosticReport"]

    foreign = lab.request("PATCH", f"{BASE}/{their_id}", body, headers)
    unknown = lab.request("PATCH", f"{BASE}/{UNKNOWN_ID}", body, headers)

    assert same(foreign, their_id) == same(unknown, UNKNOWN_ID)
    assert foreign.status == 404


def test_nothing_that_a_tenant_tries_changes_anothers_report(
    lab: Integrator, theirs: Holdings
) -> None:
    path = f"{BASE}/{theirs.ids['DiagnosticReport']}"
    before = theirs.owner.get(path).body

    lab.patch(path, CHANGE)
    lab.register(register_body("T-1", conclusion="Not theirs"))

    assert theirs.owner.get(path).body == before
    assert theirs.owner.get(f"{path}/_history").json["total"] == 1


# Searches.


@pytest.mark.parametrize(
    "query",
    ["", "identifier=T-1", f"identifier={SYSTEM}|T-1", f"identifier={SYSTEM}|", "_id={id}"],
)
def test_a_search_finds_nothing_of_another_tenant(
    lab: Integrator, theirs: Holdings, query: str
) -> None:
    url = f"{BASE}?{query.replace('{id}', theirs.ids['DiagnosticReport'])}"

    assert theirs.owner.get(url).json["total"] == 1
    assert lab.get(url).json["total"] == 0
    assert "entry" not in lab.get(url).json


def test_a_cursor_of_another_tenant_is_as_useless_as_an_invented_one(
    service: RunningService, lab: Integrator
) -> None:
    other = service.integrator()
    for value in ("A", "B", "C"):
        other.register(register_body(value))
        lab.register(register_body(value))
    url = other.get(f"{BASE}?_count=1").json["link"][1]["url"]

    foreign, invented = lab.get(url), lab.get(f"{url[:-8]}AAAAAAAA")

    assert other.get(url).status == 200
    assert (foreign.status, nameless(foreign)) == (400, nameless(invented))


# Registrations.


def test_one_identifier_in_two_tenants_is_two_reports(lab: Integrator, theirs: Holdings) -> None:
    mine = lab.register(register_body("T-1", conclusion="Mine"))

    location = mine.headers["location"]
    assert mine.status == 201
    assert theirs.ids["DiagnosticReport"] not in location
    assert lab.get(location).json["conclusion"] == "Mine"
    assert theirs.owner.get(location).status == 404
    assert lab.get(f"{BASE}?identifier=T-1").json["total"] == 1


def test_the_parts_of_one_identifier_in_two_tenants_are_apart(
    lab: Integrator, theirs: Holdings
) -> None:
    report = lab.get(lab.register(register_body("T-1")).headers["location"]).json

    assert report["subject"]["reference"] != f"Patient/{theirs.ids['Patient']}"
    assert theirs.owner.get(f"/fhir/r4/{report['subject']['reference']}").status == 404


def test_one_document_in_two_tenants_is_read_by_each_that_sent_it(
    service: RunningService, lab: Integrator, theirs: Holdings
) -> None:
    data = b"%PDF-1.4 theirs"
    path = f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}"
    assert lab.get(path).status == 404

    lab.register(register_body("A", presentedForm=[document(data)]))

    assert lab.get(path).body == theirs.owner.get(path).body == b"%PDF-1.4 theirs"
    assert service.integrator().get(path).status == 404


def test_a_reference_to_another_tenants_document_is_not_followed(
    lab: Integrator, theirs: Holdings
) -> None:
    url = f"{lab.service.base_url}/fhir/r4/Binary/{theirs.ids['Binary']}"

    created = lab.register(register_body("A", presentedForm=[{"url": url}]))

    assert created.status == 201
    assert "data" not in lab.get(created.headers["location"]).json["presentedForm"][0]
    assert lab.get(url).status == 404


def hints(tenant: str) -> dict[str, str]:
    names = "X-Tenant X-Tenant-Id X-Org-Id X-Organization Tenant X-Forwarded-User From".split()
    return dict.fromkeys(names, tenant) | {"Cookie": f"tenant={tenant}; org_id={tenant}"}


def test_a_tenant_named_in_a_header_or_the_address_is_ignored(
    lab: Integrator, theirs: Holdings
) -> None:
    tenant = theirs.owner.tenant.id
    query = "&".join(f"{name}={tenant}" for name in ("tenant", "tenant_id", "org_id", "org"))
    path = f"{BASE}/{theirs.ids['DiagnosticReport']}"

    assert lab.request("GET", f"{path}?{query}", headers=hints(tenant)).status == 404
    assert lab.request("GET", f"{BASE}?{query}", headers=hints(tenant)).json["total"] == 0
    assert lab.request("GET", f"/{tenant}{path}").status == 404


def test_a_registration_that_names_another_tenant_is_its_senders(
    lab: Integrator, theirs: Holdings
) -> None:
    tenant = theirs.owner.tenant.id
    body = register_body("H-1", meta={"tag": [{"system": "urn:tenant", "code": tenant}]})
    body["parameter"][1]["resource"]["identifier"] = [{"system": "urn:tenant", "value": tenant}]

    created = lab.request("POST", f"{REGISTER}?tenant={tenant}", body, hints(tenant))

    assert created.status == 201
    assert lab.get(created.headers["location"]).status == 200
    assert theirs.owner.get(created.headers["location"]).status == 404
    assert theirs.owner.get(f"{BASE}?identifier=H-1").json["total"] == 0


def test_no_refusal_holds_the_id_of_another_tenant_or_of_what_it_has(
    lab: Integrator, theirs: Holdings
) -> None:
    wrong = register_body("T-1", status="amended")
    rule = copy.deepcopy(register_body("T-1"))
    rule["parameter"][2]["resource"]["subject"]["reference"] = "Patient/other"
    bodies = [wrong, rule, {}, register_body("T-1", system=f"urn:{lab.tenant.id}")]

    answers = [lab.register(body) for body in bodies]
    answers += [lab.get(f"{BASE}?{query}") for query in ("_count=x", "identifier=|", "_cursor=x")]
    answers += [lab.get("/nowhere"), lab.request("PUT", BASE), lab.get(f"{BASE}/{UNKNOWN_ID}")]

    secret = [theirs.owner.tenant.id, theirs.owner.client_id, *theirs.ids.values()]
    for answer in answers:
        assert answer.status >= 400
        for name in [*secret, lab.tenant.id, lab.client_id]:
            assert name.encode() not in answer.body


def test_every_question_to_the_store_begins_with_the_tenant() -> None:
    names = Resources.__abstractmethods__

    assert len(names) >= 7
    for name in names:
        _self, tenant, *_rest = inspect.signature(getattr(Resources, name)).parameters.values()
        assert (tenant.name, tenant.annotation, tenant.default) == ("tenant", "str", tenant.empty)
        assert tenant.kind is tenant.POSITIONAL_OR_KEYWORD


def test_no_engine_asks_without_a_tenant(service: RunningService) -> None:
    engine: type[Store] = type(service.services.store)

    for name in Resources.__abstractmethods__:
        promised = list(inspect.signature(getattr(Resources, name)).parameters)
        assert list(inspect.signature(getattr(engine, name)).parameters) == promised


# Authentication (D-17 to D-20).

OPEN = {
    ("POST", "/oauth/token"),
    ("POST", "/oauth/revoke"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/smart-configuration"),
    ("GET", "/fhir/r4/.well-known/smart-configuration"),
    ("GET", "/fhir/r4/CodeSystem/{}"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/openapi.json"),
}


def closed(service: RunningService) -> list[Route]:
    return [route for route in routes(service.services) if (route.method, route.path) not in OPEN]


def test_every_route_states_whether_it_needs_a_token_and_few_do_not(
    service: RunningService,
) -> None:
    table = routes(service.services)

    stated = [
        (route, next(vars(k)["requires_token"] for k in route.handler.__mro__ if _states(k)))
        for route in table
    ]

    assert {(route.method, route.path) for route, needs in stated if not needs} == OPEN
    assert len(table) > len(OPEN) + 10


def _states(kind: type) -> bool:
    return "requires_token" in vars(kind)


UNPROVEN: dict[str, list[str]] = {
    "no header": [],
    "an empty header": ["Authorization:"],
    "the scheme alone": ["Authorization: Bearer"],
    "the scheme and a blank": ["Authorization: Bearer "],
    "two blanks": ["Authorization: Bearer  {token}"],
    "a tab": ["Authorization: Bearer\t{token}"],
    "no blank": ["Authorization: Bearer{token}"],
    "no scheme": ["Authorization: {token}"],
    "another scheme": ["Authorization: Token {token}"],
    "basic": ["Authorization: Basic {token}"],
    "a colon": ["Authorization: Bearer: {token}"],
    "two headers": ["Authorization: Bearer {token}", "Authorization: Bearer {token}"],
    "two schemes": ["Authorization: Basic eDp5", "Authorization: Bearer {token}"],
    "a comma at the end": ["Authorization: Bearer {token},"],
    "a parameter": ["Authorization: Bearer {token}, realm=x"],
    "two tokens": ["Authorization: Bearer {token} {token}"],
    "quotes": ['Authorization: Bearer "{token}"'],
    "a token cut short": ["Authorization: Bearer {cut}"],
    "a token and more": ["Authorization: Bearer {token}A"],
    "no-break space": ["Authorization: Bearer\xa0{token}"],
    "a letter that is no letter of ASCII": ["Authorization: Bearer {token}\xe9"],
    "another header": ["X-Authorization: Bearer {token}", "Proxy-Authorization: Bearer {token}"],
    "a cookie": ["Cookie: access_token={token}"],
}


@pytest.mark.parametrize("case", UNPROVEN)
def test_every_other_route_wants_exactly_one_good_header(
    service: RunningService, lab: Integrator, case: str
) -> None:
    parts = {"token": lab.token, "cut": lab.token[:-6]}
    lines = [name.format(**parts) for name in UNPROVEN[case]]

    for route in closed(service):
        exchange = raw.request(service, f"{route.method} {filled(route, UNKNOWN_ID)}", *lines)

        answer = exchange.answer
        assert (answer.status, answer.issues[0]["code"]) == (401, "security"), route
        assert answer.headers["www-authenticate"].startswith('Bearer realm="fhirpub"'), route
        assert answer.json["resourceType"] == "OperationOutcome"


@pytest.mark.parametrize(
    "query", ["access_token={token}", "token={token}", "Authorization=Bearer%20{token}"]
)
def test_a_token_in_the_address_proves_nothing(
    service: RunningService, lab: Integrator, query: str
) -> None:
    for route in closed(service):
        path = f"{filled(route, UNKNOWN_ID)}?{query.replace('{token}', lab.token)}"

        assert service.request(route.method, path).status == 401, route


def test_a_token_in_a_form_proves_nothing(service: RunningService, lab: Integrator) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = f"access_token={lab.token}&identifier=A".encode()

    assert service.request("POST", f"{BASE}/_search", body, form).status == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEARER"])
def test_the_scheme_may_be_written_in_any_case(
    service: RunningService, lab: Integrator, scheme: str
) -> None:
    headers = {"Authorization": f"{scheme} {lab.token}"}

    assert service.request("GET", "/metadata", headers=headers).status == 200


def test_invalid_token_is_answered_only_to_a_request_with_a_token(
    service: RunningService, lab: Integrator
) -> None:
    none = service.request("GET", "/metadata")
    bad = service.request("GET", "/metadata", headers={"Authorization": f"Bearer {lab.token}A"})

    assert none.headers["www-authenticate"] == 'Bearer realm="fhirpub"'
    assert 'Bearer realm="fhirpub", error="invalid_token"' in bad.headers["www-authenticate"]
    assert [none.problems, bad.problems] == [["token-missing"], ["token-invalid"]]


def test_the_open_routes_hold_nothing_of_a_tenant(
    service: RunningService, theirs: Holdings
) -> None:
    secret = [theirs.owner.tenant.id, theirs.owner.client_id, *theirs.ids.values()]

    for method, path in OPEN:
        answer = service.request(method, path)

        assert answer.status in (200, 400, 404)
        for name in secret:
            assert name.encode() not in answer.body
