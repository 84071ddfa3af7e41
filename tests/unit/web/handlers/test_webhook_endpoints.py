"""Scopes, tags, secrets and bodies of the endpoints of a tenant."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.unit.web.handlers.asking import asked, named, running

ENDPOINTS = "/webhooks/v1/endpoints"
JSON = {"Content-Type": "application/json"}
ROTATE = "secret:rotate"


def call(lab: Integrator, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    kind = JSON if body is not None else {}
    return lab.request(method, path, body, kind | named(headers))


def add(lab: Integrator, url: str = "pull:laptop") -> Answer:
    answer = call(lab, "POST", ENDPOINTS, {"url": url})
    assert answer.status == 201, answer.body
    return answer


@pytest.fixture
def path(lab: Integrator) -> str:
    return f"{ENDPOINTS}/{add(lab).json['id']}"


def test_an_added_endpoint_is_located_and_its_secret_is_shown_once(lab: Integrator) -> None:
    added = add(lab, "https://93.184.215.14/hook")

    path = f"{ENDPOINTS}/{added.json['id']}"
    assert added.headers["location"] == f"{lab.service.base_url}{path}"
    assert added.headers["etag"] == 'W/"1"'
    assert added.headers["cache-control"] == "no-store"
    assert added.json["signing_secret"].startswith("whsec_")
    assert "signing_secret" not in lab.get(path).json


@pytest.mark.parametrize("act", ["", ROTATE, "token:rotate"])
def test_an_endpoint_whose_secrets_are_shown_is_named_in_the_record(
    lab: Integrator, act: str
) -> None:
    made = add(lab, "https://93.184.215.14/hook").json
    if act:
        call(lab, "POST", f"{ENDPOINTS}/{made['id']}/{act}", {})

    assert records_of_tenant(lab)[-1]["what"] == [f"Endpoint/{made['id']}"]


def test_endpoints_are_listed_oldest_first(lab: Integrator) -> None:
    ids = [add(lab).json["id"] for _ in range(3)]

    assert [each["id"] for each in lab.get(ENDPOINTS).json["endpoints"]] == ids


def test_an_endpoint_that_the_client_has_is_not_sent(lab: Integrator, path: str) -> None:
    known, other = (lab.get(path, If_None_Match=f'W/"{number}"') for number in (1, 2))

    assert (known.status, known.headers["etag"], other.status) == (304, 'W/"1"', 200)


def test_an_answer_is_json_and_never_fhir(lab: Integrator, path: str) -> None:
    found = [lab.get(path, Accept=kind) for kind in ("*/*", "application/fhir+xml")]

    assert found[0].headers["content-type"] == "application/json"
    assert found[1].status == 406


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_of_another_revision_is_refused(lab: Integrator, path: str, method: str) -> None:
    body = {"description": "d"} if method == "PATCH" else None

    refused = call(lab, method, path, body, If_Match='W/"2"')
    still = lab.get(path)
    done = call(lab, method, path, body, If_Match='W/"1"')

    assert (refused.status, still.headers["etag"], done.status < 300) == (412, 'W/"1"', True)


def test_a_change_has_the_next_tag(lab: Integrator, path: str) -> None:
    changed = call(lab, "PATCH", path, {"description": "d"})

    assert (changed.headers["etag"], changed.json["description"]) == ('W/"2"', "d")


def test_a_removed_endpoint_is_gone(lab: Integrator, path: str) -> None:
    removed = call(lab, "DELETE", path)

    assert (removed.status, removed.body, lab.get(path).status) == (204, b"", 404)


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null"])
def test_a_body_must_be_an_object(lab: Integrator, path: str, body: bytes) -> None:
    answer = call(lab, "PATCH", path, body)

    assert (answer.status, answer.problems) == (400, ["body-unexpected"])


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null"])
@pytest.mark.parametrize("name", ["/replay", "/test", f"/{ROTATE}", "/token:rotate"])
def test_the_body_of_an_act_must_be_an_object(
    lab: Integrator, path: str, name: str, body: bytes
) -> None:
    answer = call(lab, "POST", path + name, body)

    assert (answer.status, answer.problems) == (400, ["body-unexpected"])


@pytest.mark.parametrize(
    ("kind", "status"),
    [("application/json", 200), ("application/json; charset=utf-8", 200), ("text/plain", 415)],
)
def test_a_body_must_be_json(lab: Integrator, path: str, kind: str, status: int) -> None:
    answer = call(lab, "PATCH", path, {"description": "d"}, Content_Type=kind)

    assert answer.status == status


@pytest.mark.parametrize(("size", "status"), [(65_536, 200), (65_537, 413)])
def test_a_body_has_at_most_64_kib(lab: Integrator, path: str, size: int, status: int) -> None:
    body = b'{"description":"d"}'

    assert call(lab, "PATCH", path, body + b" " * (size - len(body))).status == status


@pytest.mark.parametrize(
    ("method", "name"),
    [
        *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/enable")),
        *(("POST", "/verify"), ("POST", "/test"), ("POST", f"/{ROTATE}")),
        *(("POST", "/token:rotate"), ("GET", "/stats")),
    ],
)
def test_an_endpoint_of_another_tenant_is_not_found(
    service: RunningService, path: str, method: str, name: str
) -> None:
    other = service.integrator("Other")
    body: Any = {} if method in ("POST", "PATCH") else None

    assert call(other, method, path + name, body).status == 404


def test_another_tenant_lists_none_of_them(service: RunningService, path: str) -> None:
    assert service.integrator("Other").get(ENDPOINTS).json == {"endpoints": []}


def test_event_types_have_their_schemas(lab: Integrator) -> None:
    found = {one["name"]: one for one in lab.get("/webhooks/v1/event-types").json["event_types"]}

    created = found["diagnostic_report.created"]
    assert created["resource_type"] == "DiagnosticReport"
    assert created["schema"]
    assert created["title"] == created["schema"]["title"]


@pytest.mark.parametrize(
    ("scope", "read", "changed"), [("webhooks.read", 200, 403), ("webhooks.write", 403, 201)]
)
def test_reading_and_changing_need_scopes_of_their_own(
    strict_service: RunningService, scope: str, read: int, changed: int
) -> None:
    lab = strict_service.integrator(scopes=(scope,))

    found = (
        lab.get(ENDPOINTS).status,
        call(lab, "POST", ENDPOINTS, {"url": "pull:laptop"}).status,
    )

    assert found == (read, changed)


def test_event_types_come_with_the_schemas_that_they_share(lab: Integrator) -> None:
    found = lab.get("/webhooks/v1/event-types").json

    assert set(found) == {"event_types", "shared_schemas"}
    assert found["shared_schemas"]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml"])
def test_an_empty_body_may_have_any_type(lab: Integrator, path: str, kind: str) -> None:
    answer = call(lab, "POST", f"{path}/{ROTATE}", b"", Content_Type=kind)

    assert answer.status == 200


@pytest.mark.parametrize("name", [ROTATE, "token:rotate"])
def test_a_new_secret_is_shown_once_and_kept_by_no_cache(
    lab: Integrator, path: str, name: str
) -> None:
    answer = call(lab, "POST", f"{path}/{name}", {})

    shown = {"signing_secret", "bearer_token"} & set(answer.json)
    assert len(shown) == 1
    assert (answer.headers["cache-control"], answer.headers["etag"]) == ("no-store", 'W/"2"')
    assert shown.isdisjoint(lab.get(path).json)


@pytest.mark.parametrize("name", ["pause", "enable", "verify", "test"])
def test_nothing_is_sent_to_an_endpoint_that_its_client_reads(
    lab: Integrator, path: str, name: str
) -> None:
    answer = call(lab, "POST", f"{path}/{name}", {} if name == "test" else None)

    assert (answer.status, answer.problems) == (422, ["endpoint-state"])


@pytest.mark.parametrize("name", ["verify", "test"])
@pytest.mark.parametrize(("running", "status"), [(3, 422), (4, 429)])
def test_a_trial_over_http_counts_once_among_four(
    lab: Integrator, path: str, name: str, running: int, status: int
) -> None:
    assert isinstance(lab.service, RunningService)
    with ExitStack() as others:
        for _number in range(running):
            others.enter_context(lab.service.services.endpoints.admit_trial(lab.tenant.id))

        answer = call(lab, "POST", f"{path}/{name}", {} if name == "test" else None)

    assert answer.status == status


def test_a_changed_endpoint_is_known_by_its_new_tag_alone(lab: Integrator, path: str) -> None:
    changed = call(lab, "PATCH", path, {"description": "other"})

    found = [lab.get(path, If_None_Match=f'W/"{number}"').status for number in (1, 2)]
    assert (changed.headers["etag"], found) == ('W/"2"', [200, 304])


def test_types_of_events_name_their_resource_if_they_have_one(lab: Integrator) -> None:
    known = lab.get("/webhooks/v1/event-types").json["event_types"]

    resources = {one["name"]: one["resource_type"] for one in known}
    assert resources["diagnostic_report.created"] == "DiagnosticReport"
    assert resources["endpoint.test"] is None


@pytest.mark.parametrize("act", ["pause", "enable"])
def test_an_endpoint_that_was_changed_is_answered_with_its_tag(lab: Integrator, act: str) -> None:
    path = add(lab, "https://93.184.215.14/hook").headers["location"]

    async def changed(tenant: str, endpoint_id: str) -> Any:
        found = await running(lab).services.endpoints.endpoint(tenant, endpoint_id)
        return replace(found, revision=7)

    async def found() -> tuple[int, str]:
        acts: Any = SimpleNamespace(**{act: changed})
        services = replace(running(lab).services, endpoints=acts)
        address = path.removeprefix(lab.service.base_url)
        async with asked(lab, "POST", f"{address}/{act}", services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status, one.exchange.headers["ETag"]

    assert running(lab).call(found()) == (200, 'W/"7"')


def test_all_schemas_that_events_share_are_shown(lab: Integrator) -> None:
    shown = lab.get("/webhooks/v1/event-types").json["shared_schemas"]

    known = running(lab).services.endpoints.event_types.shared
    assert len(shown) > 1
    assert [schema["$id"] for schema in shown] == [schema["$id"] for schema in known]
