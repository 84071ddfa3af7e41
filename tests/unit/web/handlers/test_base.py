"""Which callers a handler allows: their token, address, certificate, quotas and scopes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest

from fhirpub.auth.clients import edit_client
from fhirpub.auth.networks import parse_networks
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config, LimitsConfig, ServerConfig
from fhirpub.errors import NotAuthenticated
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.error_mapping import AddressNotPermitted
from tests.bodies import register_body
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import REPORTS, Asked, asked, on_request, running

HEADER = "X-Client-Cert"
OURS, OTHER = (f":{base64.b64encode(data).decode()}:" for data in (b"\x30\x01", b"\x30\x02"))
NOWHERE = f"{REPORTS}/00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service behind a proxy that names certificates; a client may send three requests."""
    config = Config(
        server=ServerConfig(certificate_header=HEADER, trusted_proxies=["127.0.0.1"]),
        limits=LimitsConfig(requests_per_client=3),
    )
    with RunningService(tmp_path_factory.mktemp("bounded"), config=config) as service:
        yield service


# The token.


def test_a_request_without_a_token_is_refused(service: RunningService) -> None:
    answer = service.request("GET", REPORTS)

    assert (answer.status, answer.problems) == (401, ["token-missing"])


@pytest.mark.parametrize("known", [False, True])
def test_two_tokens_are_refused_also_if_they_are_known(lab: Integrator, *, known: bool) -> None:
    if known:
        assert lab.get(REPORTS).status == 200

    with pytest.raises(NotAuthenticated):
        running(lab).call(_with_two(lab))


async def _with_two(lab: Integrator) -> None:
    async with asked(lab, "GET", REPORTS) as one:
        one.request.headers.add("Authorization", f"Bearer {lab.token}")
        later = one.handler.prepare()
        if later is not None:
            await later


def test_a_token_comes_before_the_format(service: RunningService) -> None:
    assert service.request("GET", REPORTS, headers={"Accept": "image/png"}).status == 401


def test_a_caller_that_was_authenticated_otherwise_needs_no_token(lab: Integrator) -> None:
    async def authenticated() -> str:
        async with asked(lab, "GET", REPORTS) as one:
            caller = one.handler.caller
            del one.handler.caller
            one.handler.authenticated = replace(caller, client_id="person")
            del one.request.headers["Authorization"]
            one.handler.prepare()
            return one.handler.caller.client_id

    assert running(lab).call(authenticated()) == "person"


def test_a_request_that_was_answered_in_the_meantime_is_not_counted(lab: Integrator) -> None:
    async def ready() -> list[bool]:
        async with asked(lab, "GET", REPORTS) as one:
            called: list[bool] = []
            one.handler.ready = lambda: called.append(True)  # type: ignore[method-assign]
            sent = one.request.headers.get_list("Authorization")
            await one.handler._authenticate(sent)
            one.handler._answered = True
            await one.handler._authenticate(sent)
            return called

    assert running(lab).call(ready()) == [True]


# The address.


@pytest.mark.parametrize(
    ("networks", "status"), [(["127.0.0.0/8"], 200), (["198.51.100.0/24"], 403), ([], 200)]
)
def test_a_client_with_networks_may_call_from_them_only(
    service: RunningService, networks: list[str], status: int
) -> None:
    lab = service.integrator()
    service.call(edit_client(service.services.store, lab.client_id, networks=networks))

    assert lab.get(REPORTS).status == status


def test_the_line_of_another_address_names_no_tenant(service: RunningService) -> None:
    lab = service.integrator()
    store = service.services.store
    service.call(edit_client(store, lab.client_id, networks=["198.51.100.0/24"]))
    with caught_lines() as caught:
        name = uuid4().hex
        answer = lab.get(REPORTS, X_Request_Id=name)
        line = caught.of(name)

    assert answer.problems == ["address-not-permitted"]
    assert "tenant" not in line
    assert line["address"] == "127.0.0.1"


def test_behind_a_proxy_the_address_that_it_names_counts(bounded: RunningService) -> None:
    lab = bounded.integrator()
    store = bounded.services.store
    bounded.call(edit_client(store, lab.client_id, networks=["198.51.100.0/24"]))

    found = [
        lab.get(REPORTS, X_Forwarded_For=f"{at}.7").status for at in ("198.51.100", "203.0.1")
    ]

    assert found == [200, 403]


# The certificate.


@pytest.mark.parametrize(("sent", "status"), [(OURS, 200), (OTHER, 401), ("x", 401), ("", 401)])
def test_a_token_with_a_certificate_is_of_no_use_without_it(
    bounded: RunningService, sent: str, status: int
) -> None:
    lab = bounded.integrator()
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": bounded.config.auth.audience,
    }
    kind = {"Content-Type": "application/x-www-form-urlencoded", HEADER: OURS}
    token = bounded.request("POST", "/oauth/token", urlencode(form).encode(), kind)
    bound = replace(lab, token=token.json["access_token"])

    answer = bound.get(REPORTS, **({"X_Client_Cert": sent} if sent else {}))

    assert answer.status == status


def test_a_caller_with_another_certificate_or_address_is_none(lab: Integrator) -> None:
    async def use(one: Asked) -> list[bool]:
        handler, known = one.handler, one.handler.caller
        found: list[bool] = []
        both: list[dict[str, Any]] = [
            {"certificate": "x"},
            {"networks": parse_networks(("192.0.2.0/24",))},
        ]
        for changes in both:
            handler.caller = replace(known, **changes)
            with pytest.raises((NotAuthenticated, AddressNotPermitted)):
                handler.ready()
            found.append(hasattr(handler, "caller"))
        handler.caller = known
        return found

    assert on_request(lab, use) == [False, False]


def test_a_token_without_a_certificate_needs_none(bounded: RunningService) -> None:
    assert bounded.integrator().get(REPORTS, X_Client_Cert=OURS).status == 200


# Rates and quotas.


def test_a_client_may_send_as_many_requests_as_the_rate_and_no_more(
    bounded: RunningService,
) -> None:
    lab, other = bounded.integrator(), bounded.integrator()

    assert [lab.get(NOWHERE).status for _ in range(4)] == [404, 404, 404, 429]
    assert other.get(NOWHERE).status == 404


def test_another_client_of_the_tenant_has_a_rate_of_its_own(bounded: RunningService) -> None:
    first = bounded.integrator()
    second = bounded.another_client(first.tenant)

    found = [[lab.get(NOWHERE).status for _ in range(3)] for lab in (first, second)]

    assert 429 not in [*found[0], *found[1]]


def test_the_capability_statement_counts_for_no_quota(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    config = Config(quotas=QuotasConfig(client_requests_per_minute=1))
    with RunningService(tmp_path_factory.mktemp("quota"), config=config) as service:
        lab = service.integrator()

        found = [lab.get("/fhir/r4/metadata").status for _ in range(2)]
        found += [lab.get(NOWHERE).status for _ in range(2)]

    assert found == [200, 200, 404, 429]


# Scopes.


def read(lab: Integrator) -> Answer:
    return lab.get(NOWHERE)


def search(lab: Integrator) -> Answer:
    return lab.get(REPORTS)


def register(lab: Integrator) -> Answer:
    return lab.register(register_body(uuid4().hex))


def update(lab: Integrator) -> Answer:
    return lab.patch(NOWHERE, {"resourceType": "DiagnosticReport", "status": "amended"})


def update_one(lab: Integrator) -> Answer:
    body = {"resourceType": "DiagnosticReport", "status": "amended"}
    return lab.patch(f"{REPORTS}?identifier=a|b", body)


@pytest.mark.parametrize(
    ("ask", "scope", "permitted"),
    [
        (read, "r", True),
        (read, "cus", False),
        (search, "s", True),
        (search, "cru", False),
        (register, "c", True),
        (register, "rus", False),
        (update, "u", True),
        (update, "crs", False),
        (update_one, "us", True),
        (update_one, "u", False),
        (update_one, "s", False),
    ],
)
def test_an_interaction_needs_its_scope(
    strict_service: RunningService,
    ask: Callable[[Integrator], Answer],
    scope: str,
    *,
    permitted: bool,
) -> None:
    answer = ask(strict_service.integrator(scopes=(f"system/DiagnosticReport.{scope}",)))

    assert (answer.status != 403) is permitted
    assert permitted or answer.problems == ["scope-missing"]


def test_scopes_do_not_count_where_they_are_not_enforced(service: RunningService) -> None:
    assert service.integrator(scopes=("webhooks.read",)).get(REPORTS).status == 200


@pytest.mark.parametrize(("counts", "status"), [(True, 403), (False, 200)])
def test_scopes_count_for_a_caller_whose_scopes_always_do(
    service: RunningService, status: int, *, counts: bool
) -> None:
    lab = service.integrator(scopes=("webhooks.read",))

    async def ask() -> int:
        async with asked(lab, "GET", REPORTS) as one:
            one.handler.authenticated = replace(one.handler.caller, scopes_count=counts)
            one.handler._refusal = None
            try:
                one.handler.prepare()
            except Exception as problem:  # noqa: BLE001 - as a request begins
                one.handler._defer_refusal(problem)
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert service.call(ask()) == status


def test_what_came_with_another_resource_is_read_with_the_right_to_that_one(
    strict_service: RunningService,
) -> None:
    lab = strict_service.integrator(scopes=("system/DiagnosticReport.s",))
    other = strict_service.integrator(scopes=("system/Observation.c",))

    found = [one.get("/fhir/r4/Patient").status for one in (lab, other)]

    assert found == [200, 403]


def test_a_scope_comes_before_the_format(strict_service: RunningService) -> None:
    lab = strict_service.integrator(scopes=("system/DiagnosticReport.c",))

    assert lab.get(REPORTS, Accept="image/png").status == 403


def test_the_right_to_a_report_is_none_to_what_did_not_come_with_it(
    strict_service: RunningService,
) -> None:
    lab = strict_service.integrator(scopes=("system/DiagnosticReport.rs",))
    auditor = strict_service.integrator(scopes=("system/AuditEvent.s",))

    assert [one.get("/fhir/r4/AuditEvent").status for one in (lab, auditor)] == [403, 200]
