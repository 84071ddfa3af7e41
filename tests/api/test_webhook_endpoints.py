"""A tenant's own endpoints over HTTP: permissions, results and refusals."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.auth.keys import rotate
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import BrokenRule
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import AttemptResult, Delivery
from fhirpub.tenant import Tenant
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.routes import webhook_routes
from fhirpub.webhooks import verify
from fhirpub.webhooks.transport.signing import new_secret
from tests.gate import Gate, gate
from tests.waiting import until

ENDPOINTS = "/webhooks/v1/endpoints"
ROUTES = [(route.method, route.path) for route in webhook_routes()]
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"],
    dispatch_in_server=False,
    timeout_seconds=5.0,  # what fails in a network of the operator takes all of it (D-282)
    connect_seconds=5.0,
    endpoints_per_tenant=3,
)


@pytest.fixture(scope="module")
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that sends no events on its own, and sends to receivers on this machine only."""
    url = ""
    settings = SETTINGS
    if request.config.getoption("--store") == "mongodb":
        url = request.getfixturevalue("replica_set").url("endpoints")
        keys = tmp_path_factory.mktemp("keys") / "keys"
        keys.write_text("A" * 43 + "=\n")
        settings = dataclasses.replace(settings, keys_file=str(keys))
    with RunningService(
        tmp_path_factory.mktemp("endpoints"), config=Config(webhooks=settings), store_url=url
    ) as running:
        yield running


@pytest.fixture(scope="module")
def receivers() -> Iterator[Receiver]:
    """One receiver for all tests; each test sets its replies."""
    with Receiver() as running:
        yield running


@pytest.fixture
def receiver(receivers: Receiver) -> Receiver:
    """The receiver, without the requests and replies of earlier tests."""
    receivers.received.clear()
    receivers.answer(Reply())
    return receivers


@pytest.fixture
def added(lab: Integrator, receiver: Receiver) -> dict[str, Any]:
    """An endpoint that was just added, with its secrets."""
    answer = lab.request("POST", ENDPOINTS, {"url": receiver.url})
    assert answer.status == 201
    body: dict[str, Any] = answer.json
    return body


def test_a_challenge_that_holds_the_token_is_known_again(
    lab: Integrator, receiver: Receiver
) -> None:
    body = {"url": receiver.url, "bearer_token": "e"}
    for _ in range(3):  # nearly every challenge contains an e
        endpoint = lab.request("POST", ENDPOINTS, body).json
        verified(lab, endpoint, receiver)


def test_endpoints_that_are_added_at_once_are_no_more_than_may_be(
    service: RunningService, lab: Integrator, receiver: Receiver
) -> None:
    async def many() -> list[Any]:
        add, fields = service.services.endpoints.add, {"url": receiver.url}
        adding = (add(lab.tenant.id, fields) for _ in range(8))
        return await asyncio.gather(*adding, return_exceptions=True)

    added = service.call(many())

    kept = lab.get(ENDPOINTS).json["endpoints"]
    assert len(kept) == SETTINGS.endpoints_per_tenant
    assert sum(isinstance(item, BrokenRule) for item in added) == 8 - len(kept)


def path_of(endpoint: dict[str, Any], *more: str) -> str:
    return "/".join([ENDPOINTS, endpoint["id"], *more])


def act(lab: Integrator, endpoint: dict[str, Any], *more: str, body: Any = None) -> Answer:
    return lab.request("POST", path_of(endpoint, *more), body)


def verified(lab: Integrator, endpoint: dict[str, Any], receiver: Receiver) -> None:
    """Verify a new endpoint with a receiver that repeats the challenge."""
    receiver.answer(Reply(status=200, echo=True))
    assert act(lab, endpoint, "verify").json["state"] == "active"
    receiver.answer(Reply())
    receiver.received.clear()


def delivered(service: RunningService, endpoint: dict[str, Any], number: int) -> list[Delivery]:
    """Put deliveries into the endpoint's queue as the relay does."""
    stored = service.call(service.services.store.all_endpoints())
    (tenant,) = {item.tenant for item in stored if item.id == endpoint["id"]}
    deliveries = [
        Delivery(
            endpoint=endpoint["id"],
            tenant=tenant,
            sequence=sequence,
            event_id=f"evt_{sequence}",
            event_type="a.created" if sequence % 2 else "a.updated",
            resource=f"DiagnosticReport/{sequence}",
            created=1_795_242_833_412 + sequence,
            body=json.dumps({"sequence": sequence}).encode(),
        )
        for sequence in range(1, number + 1)
    ]
    assert service.call(service.services.store.append(deliveries)) == number
    return deliveries


def ended(service: RunningService, delivery: Delivery, state: Any, **attempt: Any) -> None:
    """Finish a delivery as the dispatcher does."""
    store, now = service.services.store, service.services.clock()
    (begun,) = service.call(store.begin([delivery.key], now=now, until=now + 1000))
    last = dataclasses.replace(begun.attempts[-1], ended=now, **attempt)
    service.call(store.finish([AttemptResult(key=delivery.key, attempt=last, state=state)]))


# Permissions

A_BODY: dict[str, Any] = {"POST": {}, "PATCH": {}}


def filled(path: str, endpoint_id: str) -> str:
    return path.replace("{}", endpoint_id, 1).replace("{}", "evt_1")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_without_a_token_nothing_is_returned(
    method: str, path: str, service: RunningService, added: dict[str, Any]
) -> None:
    assert service.request(method, filled(path, added["id"])).status == 401


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if "{}" in route[1]])
def test_an_endpoint_of_another_tenant_is_not_there(
    method: str, path: str, service: RunningService, added: dict[str, Any], lab: Integrator
) -> None:
    stranger = service.integrator()

    answer = stranger.request(method, filled(path, added["id"]), A_BODY.get(method))

    assert answer.status == 404
    assert lab.get(path_of(added)).json["revision"] == 1


def test_another_tenants_endpoints_are_not_listed(
    service: RunningService, added: dict[str, Any], lab: Integrator
) -> None:
    assert service.integrator().get(ENDPOINTS).json == {"endpoints": []}
    assert [endpoint["id"] for endpoint in lab.get(ENDPOINTS).json["endpoints"]] == [added["id"]]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that demands scopes."""
    config = Config(auth=AuthConfig(enforce_scopes=True), webhooks=SETTINGS)
    with RunningService(tmp_path_factory.mktemp("strict"), config=config) as running:
        yield running


@pytest.fixture(scope="module")
def others(strict: RunningService) -> dict[str, Integrator]:
    """Clients of one tenant, by their scope."""
    first = strict.integrator(scopes=("webhooks.read",))
    more = ("webhooks.write", "system/*.cruds")
    return {
        "webhooks.read": first,
        **{name: strict.another_client(first.tenant, scopes=(name,)) for name in more},
    }


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_each_route_demands_its_scope(
    method: str, path: str, others: dict[str, Integrator]
) -> None:
    answers = {
        scope: other.request(method, filled(path, "none"), A_BODY.get(method)).status
        for scope, other in others.items()
    }

    needed = "webhooks.read" if method == "GET" else "webhooks.write"
    assert {scope for scope, status in answers.items() if status != 403} == {needed}


# Adding


def test_what_is_added_is_shown_with_its_secrets_once(lab: Integrator, receiver: Receiver) -> None:
    answer = lab.request("POST", ENDPOINTS, {"url": receiver.url, "description": "ward"})

    made = answer.json
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert re.fullmatch(r"whsec_.{44}", made.pop("signing_secret"))
    assert re.fullmatch(r"whtok_.{43}", made.pop("bearer_token"))
    assert made["state"] == "unverified"
    shown = lab.get(answer.headers["location"])
    assert shown.json == made
    assert shown.headers["etag"] == answer.headers["etag"] == 'W/"1"'


def test_the_store_has_neither_secret_nor_token_as_they_are(
    service: RunningService, added: dict[str, Any], lab: Integrator
) -> None:
    stored = service.call(service.services.store.endpoint(lab.tenant.id, added["id"]))

    assert stored is not None
    kept = b"".join([*(secret.sealed for secret in stored.secrets), stored.token])
    assert added["signing_secret"].encode() not in kept
    assert added["bearer_token"].encode() not in kept


def test_a_secret_and_a_token_may_be_brought_along(lab: Integrator, receiver: Receiver) -> None:
    brought = {"signing_secret": new_secret(), "bearer_token": "t0ken"}

    answer = lab.request("POST", ENDPOINTS, {"url": receiver.url, **brought})

    assert answer.json.items() >= brought.items()


def test_everything_that_is_wrong_is_reported_at_once(lab: Integrator) -> None:
    answer = lab.request(
        "POST",
        ENDPOINTS,
        {
            "url": "http://10.0.0.1/",
            "event_types": ["*", "diagnostic_report.create", 1],
            "payload": "full",
            "ordering": None,
            "description": "x" * 201,
            "bearer_token": "a\r\nX-Evil: 1",
            "signing_secret": "whsec_AAAA",
            "event_type": [],
        },
    )

    assert answer.status == 400
    assert answer.issue_expressions == {
        *("url", "event_types[1]", "event_types[2]", "payload", "ordering", "description"),
        *("bearer_token", "signing_secret", "event_type"),
    }
    diagnostics = " ".join(issue["diagnostics"] for issue in answer.issues)
    assert "did you mean diagnostic_report.created?" in diagnostics
    assert "did you mean event_types?" in diagnostics
    assert "Evil" not in diagnostics
    assert "AAAA" not in diagnostics


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, {"url"}),
        ({"url": 1}, {"url"}),
        ({"url": "https://example.invalid/"}, {"url"}),
        ({"url": "https://user@example.org/"}, {"url"}),
        ([], set()),
        (b"{", set()),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused(
    body: Any, place: set[str], lab: Integrator
) -> None:
    answer = lab.request("POST", ENDPOINTS, body)

    assert answer.status == 400
    assert answer.issue_expressions == place


@pytest.mark.parametrize("token", ["", "a b", "ä", "x" * 1025, "a\n"])
def test_a_token_that_cannot_stand_in_a_header_is_refused(
    token: str, lab: Integrator, receiver: Receiver
) -> None:
    answer = lab.request("POST", ENDPOINTS, {"url": receiver.url, "bearer_token": token})

    assert (answer.status, answer.issue_expressions) == (400, {"bearer_token"})


def test_a_body_that_is_not_json_or_too_large_is_refused(lab: Integrator) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    assert lab.request("POST", ENDPOINTS, b"url=x", form).status == 415
    assert lab.request("POST", ENDPOINTS, b" " * 65_537).status == 413


def test_a_change_in_another_media_type_is_answered_with_the_supported_one(
    lab: Integrator, added: dict[str, Any]
) -> None:
    place, patch = f"{ENDPOINTS}/{added['id']}", {"Content-Type": "application/merge-patch+json"}

    refused = lab.request("PATCH", place, b"{}", patch)

    supported = [
        refused.headers["accept-patch"],
        lab.request("OPTIONS", place).headers["accept-patch"],
    ]
    assert (refused.status, supported) == (415, ["application/json"] * 2)


@pytest.mark.parametrize(
    ("accept", "status"),
    [("application/json", 200), ("*/*", 200), ("application/fhir+json", 200), ("text/xml", 406)],
)
def test_answers_are_plain_json(accept: str, status: int, lab: Integrator) -> None:
    answer = lab.get(ENDPOINTS, Accept=accept)

    assert answer.status == status
    assert status != 200 or answer.headers["content-type"] == "application/json"


def test_the_number_of_endpoints_of_a_tenant_is_limited(
    lab: Integrator, receiver: Receiver
) -> None:
    statuses = [
        lab.request("POST", ENDPOINTS, {"url": receiver.url}).status for _number in range(4)
    ]

    assert statuses == [201, 201, 201, 422]


def test_a_tenant_may_add_another_after_removing_one(lab: Integrator, receiver: Receiver) -> None:
    for _number in range(4):
        answer = lab.request("POST", ENDPOINTS, {"url": receiver.url})
        assert answer.status == 201
        assert lab.request("DELETE", path_of(answer.json)).status == 204


# Changing


def test_fields_that_are_named_are_changed_and_no_others(
    lab: Integrator, added: dict[str, Any]
) -> None:
    change = {"event_types": ["*.created", "*.created"], "ordering": "strict"}

    changed = lab.patch(path_of(added), change, If_Match='W/"1"')

    expected = {**added, "event_types": ["*.created"], "ordering": "strict", "revision": 2}
    del expected["signing_secret"], expected["bearer_token"]
    assert changed.json == expected
    assert changed.headers["etag"] == 'W/"2"'


def test_a_change_of_an_endpoint_that_has_changed_since_is_refused(
    lab: Integrator, added: dict[str, Any]
) -> None:
    lab.patch(path_of(added), {"description": "first"})

    late = lab.patch(path_of(added), {"description": "second"}, If_Match='W/"1"')
    gone = lab.request("DELETE", path_of(added), headers={"If-Match": 'W/"1"'})

    assert (late.status, gone.status) == (412, 412)
    assert lab.get(path_of(added)).json["description"] == "first"


@pytest.mark.parametrize("field", ["state", "id", "bearer_token", "signing_secret", "revision"])
def test_other_fields_cannot_be_changed(
    field: str, lab: Integrator, added: dict[str, Any]
) -> None:
    answer = lab.patch(path_of(added), {field: "active"})

    assert (answer.status, answer.issue_expressions) == (400, {field})


def test_at_another_address_it_has_to_be_verified_again(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)

    same = lab.patch(path_of(added), {"url": receiver.url, "description": "new"})
    other = lab.patch(path_of(added), {"url": f"{receiver.url}/2"})

    assert (same.json["state"], other.json["state"]) == ("active", "unverified")


@pytest.mark.parametrize("why", ["gone", "operator"])
def test_a_state_is_no_way_around_the_verification(
    why: str,
    service: RunningService,
    lab: Integrator,
    added: dict[str, Any],
    receiver: Receiver,
) -> None:
    disabled(service, lab, added, why=why)
    lab.patch(path_of(added), {"url": f"{receiver.url}/2"})

    assert act(lab, added, "enable").status == 422
    assert not receiver.received


def test_a_paused_endpoint_at_another_address_has_to_be_verified(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)
    act(lab, added, "pause")

    assert lab.patch(path_of(added), {"url": f"{receiver.url}/2"}).json["state"] == "unverified"
    assert act(lab, added, "enable").status == 422


def test_what_the_client_has_is_not_sent_again(lab: Integrator, added: dict[str, Any]) -> None:
    assert lab.get(path_of(added), If_None_Match='W/"1"').status == 304


def test_what_was_removed_is_not_there(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    assert lab.request("DELETE", path_of(added)).status == 204

    assert lab.get(path_of(added)).status == 404
    assert lab.request("DELETE", path_of(added)).status == 404
    kept = service.call(service.services.store.endpoint(lab.tenant.id, added["id"]))
    assert kept is not None
    assert (kept.secrets, kept.token) == ((), b"")


# Verifying and trying


def test_an_endpoint_that_repeats_the_challenge_is_verified(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(Reply(status=200, echo=True))

    answer = act(lab, added, "verify")

    (sent,) = receiver.received
    verify(sent.headers, sent.body, added["signing_secret"], now=now_of(sent.headers))
    assert sent.headers["authorization"] == f"Bearer {added['bearer_token']}"
    assert sent.json["event_type"] == "endpoint.verification"
    assert sent.json["sequence"] == 0
    assert answer.json.items() >= {"passed": True, "state": "active", "status": 200}.items()


@pytest.mark.parametrize(
    "reply", [Reply(status=200), Reply(status=500, echo=True), Reply(misbehaviour="reset")]
)
def test_an_endpoint_that_does_not_repeat_the_challenge_is_not_verified(
    reply: Reply, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(reply)

    answer = act(lab, added, "verify")

    assert answer.json.items() >= {"passed": False, "state": "unverified"}.items()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(), {"passed": True, "status": 204, "reason": "", "why": ""}),
        (
            Reply(status=302),
            {"why": "the answer was 302; redirects are not followed"},
        ),
        (
            Reply(misbehaviour="reset"),
            {"passed": False, "status": None, "reason": "E_PRIVATE_NETWORK"},
        ),
    ],
    ids=lambda value: getattr(value, "misbehaviour", None) or getattr(value, "status", None),
)
def test_a_test_event_returns_its_outcome(
    reply: Reply,
    expected: dict[str, Any],
    lab: Integrator,
    added: dict[str, Any],
    receiver: Receiver,
) -> None:
    verified(lab, added, receiver)
    receiver.answer(reply)

    answer = act(lab, added, "test")

    assert answer.json.items() >= expected.items()
    assert answer.json["milliseconds"] >= 0
    assert receiver.received[0].json["event_type"] == "endpoint.test"


# States


def test_a_paused_endpoint_goes_on(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)

    states = [act(lab, added, verb).json["state"] for verb in ("pause", "pause", "enable")]

    assert states == ["paused", "paused", "active"]
    assert not receiver.received


@pytest.mark.parametrize("verb", ["pause", "enable"])
def test_an_unverified_endpoint_has_to_be_verified_first(
    verb: str, lab: Integrator, added: dict[str, Any]
) -> None:
    assert act(lab, added, verb).status == 422


def test_a_disabled_endpoint_goes_on_once_it_takes_a_test(
    service: RunningService, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    disabled(service, lab, added, why="gone")
    receiver.answer(Reply(status=503), Reply())

    failing = act(lab, added, "enable")
    healthy = act(lab, added, "enable")

    assert failing.status == 422
    assert "(status 503): it stays disabled" in failing.issues[0]["diagnostics"]
    assert (healthy.status, healthy.json["state"], healthy.json["why"]) == (200, "active", "")


def test_only_the_operator_enables_what_the_operator_has_disabled(
    service: RunningService, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)
    tenant, administration = lab.tenant.id, service.services.endpoints
    service.call(administration.disable(tenant, added["id"]))

    assert act(lab, added, "enable").status == 422
    enabled = service.call(administration.enable(tenant, added["id"], operator=True))
    assert enabled.state == "active"


def test_what_the_operator_disables_during_the_test_event_stays_disabled(
    service: RunningService, lab: Integrator
) -> None:
    tenant, administration = lab.tenant.id, service.services.endpoints

    async def both(id_: str, receiver: Gate) -> str:
        enabling = asyncio.create_task(administration.enable(tenant, id_))
        await until(lambda: receiver.received)
        await administration.disable(tenant, id_)
        receiver.may_answer.set()
        with pytest.raises(BrokenRule):
            await enabling
        return (await administration.endpoint(tenant, id_)).state

    with gate() as receiver:
        added = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        disabled(service, lab, added, why="gone")

        assert service.call(both(added["id"], receiver)) == "disabled"


def test_what_the_operator_enables_has_to_be_verified_if_it_never_was(
    service: RunningService, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    tenant, administration = lab.tenant.id, service.services.endpoints
    for _twice in range(2):
        service.call(administration.disable(tenant, added["id"]))
    assert act(lab, added, "verify").json["state"] == "disabled"

    assert act(lab, added, "enable").status == 422
    enabled = service.call(administration.enable(tenant, added["id"], operator=True))
    assert (enabled.state, enabled.why) == ("unverified", "")


def test_what_the_operator_enables_at_another_address_has_to_be_verified_again(
    service: RunningService, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)
    tenant, administration = lab.tenant.id, service.services.endpoints
    service.call(administration.disable(tenant, added["id"]))
    changed = lab.patch(path_of(added), {"url": f"{receiver.url}/2"}).json

    assert changed["state"] == "disabled"
    enabled = service.call(administration.enable(tenant, added["id"], operator=True))
    assert (enabled.state, enabled.why) == ("unverified", "")


def test_an_address_that_changes_during_the_test_event_has_to_be_verified_again(
    service: RunningService, lab: Integrator
) -> None:
    tenant, administration = lab.tenant.id, service.services.endpoints

    async def both(id_: str, receiver: Gate) -> str:
        await administration.disable(tenant, id_)
        enabling = asyncio.create_task(administration.enable(tenant, id_, operator=True))
        await until(lambda: receiver.received)
        await administration.change(tenant, id_, {"url": f"{receiver.url}/2"})
        receiver.may_answer.set()
        return (await enabling).state

    with gate() as receiver:
        receiver.may_answer.set()
        added = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        assert act(lab, added, "verify").json["state"] == "active"
        receiver.may_answer.clear()
        receiver.received.clear()

        assert service.call(both(added["id"], receiver)) == "unverified"


def disabled(
    service: RunningService, lab: Integrator, endpoint: dict[str, Any], *, why: str
) -> None:
    store = service.services.store
    stored = service.call(store.endpoint(lab.tenant.id, endpoint["id"]))
    assert stored is not None
    changed = dataclasses.replace(stored, state="disabled", why=why, revision=stored.revision + 1)
    assert service.call(store.put_endpoint(lab.tenant.id, changed))


# Rotating


def test_during_a_rotation_either_secret_verifies(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    rotated = act(lab, added, "secret:rotate", body={"grace_seconds": 60}).json
    act(lab, added, "test")

    (sent,) = receiver.received
    for secret in (added["signing_secret"], rotated["signing_secret"]):
        verify(sent.headers, sent.body, secret, now=now_of(sent.headers))
    assert len(rotated["old_secrets_until"]) == 1
    assert "bearer_token" not in rotated


def test_without_grace_the_old_secret_ends_at_once(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    act(lab, added, "secret:rotate", body={"grace_seconds": 0})
    act(lab, added, "test")

    assert receiver.received[0].headers["webhook-signature"].count("v1,") == 1


def test_a_rotation_without_a_body_has_a_day_of_grace(
    lab: Integrator, added: dict[str, Any]
) -> None:
    assert len(act(lab, added, "secret:rotate").json["old_secrets_until"]) == 1


@pytest.mark.parametrize("verb", ["secret%3Arotate", "token%3arotate"])
def test_the_colon_may_come_escaped(verb: str, lab: Integrator, added: dict[str, Any]) -> None:
    assert act(lab, added, verb).status == 200


def test_no_more_than_five_old_secrets_are_kept(lab: Integrator, added: dict[str, Any]) -> None:
    statuses = [act(lab, added, "secret:rotate").status for _number in range(6)]
    at_once = act(lab, added, "secret:rotate", body={"grace_seconds": 0})

    assert statuses == [200] * 5 + [422]
    assert at_once.json["old_secrets_until"] == []


@pytest.mark.parametrize(
    "body",
    [
        *({"grace_seconds": wrong} for wrong in (-1, 604_801, 1.5, "1", None, True)),
        {"signing_secret": "whsec_"},
        {"signing_secret": 7},
        {"signing_secret": None},
        {"grace_seconds": "1", "signing_secret": ""},
        {"grace": 1},
    ],
)
def test_a_rotation_that_cannot_be_is_refused(
    body: dict[str, Any], lab: Integrator, added: dict[str, Any]
) -> None:
    answer = act(lab, added, "secret:rotate", body=body)

    assert (answer.status, answer.issue_expressions) == (400, set(body))


def test_a_new_token_is_sent_from_now_on(
    lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    made = act(lab, added, "token:rotate").json["bearer_token"]
    given = act(lab, added, "token:rotate", body={"bearer_token": "mine"}).json["bearer_token"]
    act(lab, added, "test")

    assert made not in (added["bearer_token"], "mine")
    assert given == "mine"
    assert receiver.received[0].headers["authorization"] == "Bearer mine"


def now_of(headers: Any) -> float:
    """Return the time of a delivery, for the receiver's clock."""
    return float(headers["webhook-timestamp"])


# The delivery log


def test_deliveries_are_listed_newest_first_in_pages(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    delivered(service, added, 5)

    first = lab.get(f"{path_of(added, 'deliveries')}?limit=3").json
    second = lab.get(first["next"]).json

    sequences = [delivery["sequence"] for delivery in first["deliveries"] + second["deliveries"]]
    assert sequences == [5, 4, 3, 2, 1]
    assert second["next"] is None


def test_deliveries_are_found_by_what_became_of_them(
    service: RunningService, lab: Integrator, added: dict[str, Any], receiver: Receiver
) -> None:
    verified(lab, added, receiver)
    one, two, three, _four = delivered(service, added, 4)
    ended(service, one, "delivered", status=204)
    ended(service, two, "dead", reason="E_TIMEOUT")
    ended(service, three, "retrying", status=500)

    def found(query: str) -> list[int]:
        answer = lab.get(f"{path_of(added, 'deliveries')}?{query}").json
        return [delivery["sequence"] for delivery in answer["deliveries"]]

    states = {state: found(f"status={state}") for state in ("delivered", "dead", "retrying")}
    assert states == {"delivered": [1], "dead": [2], "retrying": [3]}
    assert found("status=pending") == [4]
    assert found("event_type=a.created") == [3, 1]
    assert found("since=2026-11-21T06:33:53.415Z") == [4, 3]
    assert found("status=held") == []
    act(lab, added, "pause")
    assert found("status=held") == [4, 3]


def test_a_page_of_one_state_may_be_empty_before_the_last(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    ended(service, delivered(service, added, 201)[0], "delivered", status=204)

    first = lab.get(f"{path_of(added, 'deliveries')}?status=delivering").json
    last = lab.get(first["next"]).json

    assert (first["deliveries"], last) == ([], {"deliveries": [], "next": None})


def test_a_delivery_is_shown_with_its_attempts(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    (one,) = delivered(service, added, 1)
    ended(service, one, "dead", status=500, duration=12, answer=b"\xffno", dialled=("10.0.0.1",))

    whole = lab.get(path_of(added, "deliveries", "evt_1")).json

    (attempt,) = whole["attempts"]
    del attempt["begun"]
    assert attempt == {
        "number": 1,
        "milliseconds": 12,
        "status": 500,
        "reason": "",
        "why": "the answer was 500, not 2xx",
        "answer": "\ufffdno",
    }
    assert whole["body"] == {"sequence": 1}
    assert whole["status"] == "dead"
    assert lab.get(path_of(added, "deliveries", "evt_2")).status == 404


def test_events_are_listed_behind_a_place_for_reconciliation(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    delivered(service, added, 5)

    first = lab.get(f"{path_of(added, 'events')}?after_seq=2&limit=2").json
    second = lab.get(first["next"]).json

    assert [event["body"]["sequence"] for event in first["events"]] == [3, 4]
    assert [event["sequence"] for event in second["events"]] == [5]
    assert (first["last_sequence"], second["next"]) == (5, None)


@pytest.mark.parametrize(
    ("more", "query", "place"),
    [
        ("deliveries", "status=lost", "status"),
        ("deliveries", "after=3", "after"),
        ("deliveries", "limit=101", "limit"),
        ("deliveries", "before=-1", "before"),
        ("deliveries", "since=yesterday", "since"),
        ("deliveries", "until=2026-11-21T10:00:00", "until"),
        ("events", "after_seq=x", "after_seq"),
        ("events", "limit=1000", "limit"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_refused(
    more: str, query: str, place: str, lab: Integrator, added: dict[str, Any]
) -> None:
    answer = lab.get(f"{path_of(added, more)}?{query}")

    assert (answer.status, answer.issue_expressions) == (400, {place})


@pytest.mark.parametrize(
    ("body", "replayed"),
    [
        ({"status": "dead"}, [2]),
        ({"status": "delivered"}, [1, 3]),
        ({"event_ids": ["evt_1", "evt_9"]}, [1]),
        ({"from_seq": 2, "to_seq": 2}, [2]),
        ({"since": "2026-11-21T07:33:53.414+01:00"}, [2, 3]),
        ({"until": "2026-11-21T06:33:53.414Z"}, [1]),
    ],
)
def test_what_is_named_is_sent_again(
    body: Any,
    replayed: list[int],
    service: RunningService,
    lab: Integrator,
    added: dict[str, Any],
) -> None:
    one, two, three = delivered(service, added, 3)
    for delivery, state in ((one, "delivered"), (two, "dead"), (three, "delivered")):
        ended(service, delivery, state, status=204)

    answer = act(lab, added, "replay", body=body)

    open_ = lab.get(f"{path_of(added, 'deliveries')}?status=held").json["deliveries"]
    assert answer.json == {"reopened": len(replayed), "state": "unverified", "next": None}
    assert [item["sequence"] for item in open_][::-1] == replayed


def test_a_long_replay_goes_on_where_it_stopped(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    deliveries = delivered(service, added, 201)
    past = [dataclasses.replace(delivery, state="delivered", ended=1) for delivery in deliveries]
    service.call(service.services.store.put_deliveries(past))

    first = act(lab, added, "replay", body={"from_seq": 1}).json
    second = act(lab, added, "replay", body=first["next"]).json

    assert first["next"] == {"from_seq": 201}
    assert (first["reopened"], second["reopened"], second["next"]) == (200, 1, None)


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({}, set()),
        ({"status": "held"}, {"status"}),
        ({"status": ["dead"]}, {"status"}),
        ({"event_ids": []}, {"event_ids"}),
        ({"event_ids": "evt_1"}, {"event_ids"}),
        ({"from_seq": 0, "to_seq": "3"}, {"from_seq", "to_seq"}),
        ({"to_seq": 10**15 + 1}, {"to_seq"}),
        ({"since": 5, "until": "2026-11-21"}, {"since", "until"}),
        ({"dead": True, "since": "yesterday"}, {"dead", "since"}),
    ],
)
def test_a_replay_of_nothing_in_particular_is_refused(
    body: Any, places: set[str], lab: Integrator, added: dict[str, Any]
) -> None:
    answer = act(lab, added, "replay", body=body)

    assert (answer.status, answer.issue_expressions) == (400, places)


def test_the_statistics_of_an_endpoint_are_numbers(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    for number, delivery in enumerate(delivered(service, added, 5)):
        if number < 4:
            state, status = ("delivered", 204) if number else ("dead", 500)
            ended(service, delivery, state, status=status, duration=number * 10)
    condition = {"breaker": {"state": "open"}, "streak": {"failures": 3, "since": 1000}}
    service.call(service.services.store.save_health(added["id"], json.dumps(condition).encode()))

    stats = lab.get(path_of(added, "stats")).json
    stats.pop("by_hour"), stats.pop("by_day")

    assert stats == {
        "state": "unverified",
        "deliveries": {"delivered": 3, "dead": 1, "held": 1},
        "last_sequence": 5,
        "oldest_undelivered": "2026-11-21T06:33:53.417Z",
        "window_seconds": 86_400,
        "attempts": 4,
        "success_rate": 0.75,
        "p50_milliseconds": 10,
        "p95_milliseconds": 30,
        "breaker": "open",
        "failures_in_a_row": 3,
        "failing_since": "1970-01-01T00:00:01.000Z",
        "warned": False,
        "throttled_until": None,
    }


def test_the_statistics_count_the_attempts_of_each_hour_and_day(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    for number, delivery in enumerate(delivered(service, added, 3)):
        state, status = ("delivered", 204) if number else ("dead", 500)
        ended(service, delivery, state, status=status, duration=10)

    stats = lab.get(path_of(added, "stats")).json

    assert [len(stats["by_hour"]), len(stats["by_day"])] == [24, 7]
    for counts in (stats["by_hour"], stats["by_day"]):
        assert [(one["succeeded"], one["failed"]) for one in counts[:-1]] == [(0, 0)] * (
            len(counts) - 1
        )
        assert (counts[-1]["succeeded"], counts[-1]["failed"]) == (2, 1)


def test_deliveries_are_found_by_the_resource_that_they_are_about(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    delivered(service, added, 3)

    found = lab.get(path_of(added, "deliveries") + "?resource=DiagnosticReport/2").json

    assert [one["sequence"] for one in found["deliveries"]] == [2]


def test_the_warning_of_failures_ends_with_them(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    shown = []
    for streak in ({"failures": 3, "since": 1000}, {"failures": 0, "since": 0}):
        condition = json.dumps({"streak": streak, "warned": 1000}).encode()
        service.call(service.services.store.save_health(added["id"], condition))
        shown.append(lab.get(path_of(added, "stats")).json["warned"])

    assert shown == [True, False]


@pytest.mark.parametrize("condition", [b"", b"[]", b'{"breaker": 1}', b"\xff"])
def test_a_note_that_cannot_be_read_does_no_harm(
    condition: bytes, service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    service.call(service.services.store.save_health(added["id"], condition))

    assert lab.get(path_of(added, "stats")).json["breaker"] == "closed"


def test_the_events_are_listed_with_their_schemas(lab: Integrator) -> None:
    listed = lab.get("/webhooks/v1/event-types").json

    schemas = {type_name["name"]: type_name["schema"] for type_name in listed["event_types"]}
    shared = {schema["$id"] for schema in listed["shared_schemas"]}
    assert {"diagnostic_report.created", "endpoint.disabled"} <= schemas.keys()
    assert {schema["$ref"] for schema in schemas.values()} <= shared


def test_an_attempt_of_which_nothing_is_known_says_so(
    service: RunningService, lab: Integrator, added: dict[str, Any]
) -> None:
    (one,) = delivered(service, added, 1)
    now = service.services.clock()
    service.call(service.services.store.begin([one.key], now=now, until=now + 60_000))

    whole = lab.get(path_of(added, "deliveries", "evt_1")).json

    assert whole["status"] == "delivering"
    assert "not known what came of it" in whole["attempts"][0]["why"]


# Without the key


async def _store_in_clear(folder: Path, tenant: Tenant) -> None:
    store = SqliteStore(folder / "fhirpub.db", deadline_seconds=10)
    await store.start()
    await store.put_tenant(tenant)
    await rotate(store, AuthConfig(), clock=now_ms)
    await store.stop()


def test_a_lost_key_is_reported_as_the_operators_fault(receiver: Receiver, tmp_path: Path) -> None:
    """The store has salts and signing keys in clear, as those of earlier releases."""
    config = Config(webhooks=SETTINGS)
    with RunningService(tmp_path, config=config) as first:
        lab = first.integrator()
        kept = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
    asyncio.run(_store_in_clear(tmp_path, lab.tenant))
    (tmp_path / "fhirpub.webhook-keys").unlink()

    with RunningService(tmp_path, config=config) as second:
        lab = second.another_client(lab.tenant)
        refused = [
            act(lab, kept, "test"),
            act(lab, kept, "token:rotate"),
            lab.request("POST", ENDPOINTS, {"url": receiver.url}),
        ]
        shown = lab.get(path_of(kept))

    assert [answer.status for answer in refused] == [503, 503, 503]
    assert "the operator" in refused[0].issues[0]["diagnostics"]
    assert shown.status == 200
