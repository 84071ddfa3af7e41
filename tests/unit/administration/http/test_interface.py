"""From a request to an operation and back, in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from structlog.testing import capture_logs

from fhirpub.administration.http.callers import Callers
from fhirpub.administration.http.interface import Interface
from fhirpub.administration.http.responses import Asked, Response
from fhirpub.config.administration import BOOTSTRAP, AdminConfig
from tests.unit.administration.admission import (
    AUDIENCE,
    BASE,
    FORM,
    KEY,
    Admission,
    admitting,
    callers_of,
)
from tests.unit.administration.office import Office


@dataclass
class Desk:
    """An interface, and the key of its caller."""

    admission: Admission
    interface: Interface

    @property
    def office(self) -> Office:
        return self.admission.office

    async def ask(
        self, method: str, address: str, fields: Any = None, *, key: str = KEY, **changes: Any
    ) -> Response:
        body = b"" if fields is None else orjson.dumps(fields)
        headers = {"authorization": [f"Bearer {key}"], "content-type": ["application/json"]}
        target, _, query = address.partition("?")
        usual = Asked(
            method=method,
            path=f"/admin/v1{target}",
            query=query,
            headers=headers,
            body=body,
            address="192.0.2.9",
            request_id="r-9",
        )
        return await self.interface.respond(replace(usual, **changes))

    async def token(self, **changes: Any) -> Response:
        """Ask for a token by an assertion."""
        form = self.admission.form(client_assertion=self.admission.assertion(**changes))
        headers = {"content-type": [FORM]}
        return await self.ask("POST", "/token", body=form, headers=headers)


def problems(response: Response) -> list[tuple[str, str]]:
    issues = json.loads(response.body)["issue"]
    return [(",".join(one.get("expression", [])), one["diagnostics"]) for one in issues]


def an_interface(office: Office, config: AdminConfig, callers: Callers) -> Interface:
    configured = office.with_config(admin=config)
    return Interface(configured.administration.config, callers, configured.under, audit=None)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with admitting(tmp_path) as admission:
        callers = admission.callers
        yield Desk(admission, an_interface(admission.office, admission.config, callers))


async def test_a_request_runs_an_operation(desk: Desk) -> None:
    answer = await desk.ask("POST", "/tenants", {"name": "Lab"})

    assert (answer.status, json.loads(answer.body)["name"]) == (201, "Lab")
    assert answer.headers["Content-Type"] == "application/json"


async def test_what_is_done_is_recorded_as_the_caller_and_its_address(desk: Desk) -> None:
    await desk.ask("POST", "/tenants", {"name": "Lab"})

    entries = (await desk.office.store.unsealed_audit(limit=9)).entries
    line = orjson.loads(entries[-1].records)
    assert (line["user"], line["address"], line["request"], line["environment"]) == (
        BOOTSTRAP,
        "192.0.2.9",
        "r-9",
        "sandbox",
    )


async def test_a_list_is_answered_as_a_list(desk: Desk) -> None:
    await desk.ask("POST", "/tenants", {"name": "Lab"})

    answer = await desk.ask("GET", "/tenants")

    assert [one["name"] for one in json.loads(answer.body)] == ["Lab"]


async def test_a_name_in_the_path_is_decoded(desk: Desk) -> None:
    await desk.ask("POST", "/tenants", {"name": "Süd/1"})

    assert (await desk.ask("GET", "/tenants/S%C3%BCd%2F1")).status == 200
    assert (await desk.ask("GET", "/tenants/S%FCd")).status == 400


@pytest.mark.parametrize("key", ["", "x", KEY[:-1], f"{KEY} ", KEY.upper()])
async def test_without_the_key_nothing_is_done(desk: Desk, key: str) -> None:
    answer = await desk.ask("POST", "/tenants", {"name": "Lab"}, key=key)

    assert answer.status == 401
    assert await desk.office.store.tenants() == []


async def test_without_a_bootstrap_key_none_is_taken(desk: Desk) -> None:
    for config in (
        AdminConfig(base_url=BASE),
        replace(desk.admission.config, bootstrap_key_hash=""),
    ):
        _ring, callers = callers_of(desk.office, config)
        bare = replace(desk, interface=an_interface(desk.office, config, callers))

        for key in ("", KEY):
            assert (await bare.ask("GET", "/tenants", key=key)).status == 401


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/nonsense", 404, None),
        ("GET", "/tenants/a/b/c", 404, None),
        ("GET", "/tenants/", 404, None),
        ("DELETE", "/tenants", 405, "POST, GET"),
        ("POST", "/tenants/x", 405, "PUT, GET, PATCH"),
        ("PATCH", "/deliveries/replay", 405, "GET, POST"),
        ("PUT", "/endpoints/reseal", 405, "GET, PATCH, DELETE, POST"),
        ("GET", "/token", 404, None),
    ],
)
async def test_an_address_without_an_operation_is_refused(
    desk: Desk, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await desk.ask(method, path)

    assert answer.status == status
    assert answer.headers.get("Allow") == allow


async def test_what_is_not_below_the_base_is_refused(desk: Desk) -> None:
    answer = await desk.ask("GET", "", path="/tenants")

    assert answer.status == 404
    assert "administration is below /admin/v1" in problems(answer)[0][1]


async def test_the_description_is_for_callers_alone(desk: Desk) -> None:
    assert (await desk.ask("GET", "/openapi.json")).status == 200
    assert (await desk.ask("GET", "/openapi.json", key="x")).status == 401


@pytest.mark.parametrize(
    ("path", "fields", "status", "place"),
    [
        ("/tenants?name=x", {}, 400, "name"),
        ("/tenants", {"nonsense": 1}, 400, "nonsense"),
        ("/tenants", [], 400, ""),
        ("/tenants", "x", 400, ""),
    ],
)
async def test_what_a_request_cannot_have_is_named(
    desk: Desk, path: str, fields: Any, status: int, place: str
) -> None:
    answer = await desk.ask("POST", path, fields)

    assert answer.status == status
    assert place in [one for one, _said in problems(answer)]


async def test_a_parameter_of_the_path_is_nowhere_else(desk: Desk) -> None:
    id_ = json.loads((await desk.ask("POST", "/tenants", {"name": "Lab"})).body)["id"]

    in_query = await desk.ask("GET", f"/tenants/{id_}?tenant=x")
    in_body = await desk.ask("PATCH", f"/tenants/{id_}", {"tenant": "x", "name": "y"})

    assert (in_query.status, in_body.status) == (400, 400)
    assert "tenant is in the path already" in problems(in_query)[0][1]
    assert ("tenant", "belongs into the path") in problems(in_body)


async def test_all_that_is_in_another_place_than_its_own_is_named(desk: Desk) -> None:
    answer = await desk.ask("PATCH", "/tenants/lab?name=New", {"tenant": "lab"})

    assert {("tenant", "belongs into the path"), ("name", "belongs into the body")} == {
        *problems(answer)
    }


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/xml"])
async def test_a_body_is_json(desk: Desk, media_type: str) -> None:
    headers = {"authorization": [f"Bearer {KEY}"], "content-type": [media_type]}

    assert (await desk.ask("POST", "/tenants", {"name": "x"}, headers=headers)).status == 415


async def test_the_type_of_a_body_may_have_parameters_and_any_case(desk: Desk) -> None:
    headers = {
        "authorization": [f"Bearer {KEY}"],
        "content-type": ["Application/JSON; charset=utf-8"],
    }

    assert (await desk.ask("POST", "/tenants", {"name": "x"}, headers=headers)).status == 201


async def test_a_long_body_is_read_as_a_short_one(desk: Desk) -> None:
    body = b'{"name":"x"' + b" " * 17_000 + b"}"

    assert (await desk.ask("POST", "/tenants", body=body)).status == 201


async def test_a_refusal_by_the_settings_is_a_422_with_its_text(desk: Desk) -> None:
    id_ = json.loads((await desk.ask("POST", "/tenants", {"name": "Lab"})).body)["id"]
    await desk.ask("POST", f"/tenants/{id_}/disable")

    answer = await desk.ask("POST", f"/tenants/{id_}/clients", {})

    assert answer.status == 422
    assert problems(answer) == [("", f"the tenant {id_} is disabled")]


async def test_a_refusal_is_logged_by_its_kind_and_a_success_too(desk: Desk) -> None:
    with capture_logs() as logged:
        await desk.ask("POST", "/tenants", {"name": "Lab"})
        await desk.ask("POST", "/tenants", {})

    lines = [one for one in logged if "operation" in one]
    assert [(one["event"], one.get("reason")) for one in lines] == [
        ("administered", None),
        ("not administered", "InvalidContent"),
    ]
    assert {(one["caller"], one["operation"]) for one in lines} == {(BOOTSTRAP, "tenantAdd")}


async def test_a_store_that_is_away_is_logged_with_its_reason(desk: Desk) -> None:
    await desk.office.store.stop()

    with capture_logs() as logged:
        answer = await desk.ask("GET", "/tenants")

    (line,) = [one for one in logged if one["event"] == "store unavailable"]
    assert (answer.status, line["log_level"]) == (503, "warning")
    assert (line["reason"], line["request_id"]) == ("not started, or stopped", "r-9")


@pytest.mark.parametrize(("key", "counted"), [("x", 1), (KEY, 0)])
async def test_a_request_without_a_caller_is_counted_with_its_address(
    desk: Desk, key: str, counted: int
) -> None:
    counts: list[tuple[str, int, str]] = []
    audit = SimpleNamespace(
        count_refusal=lambda action, status, address: counts.append((action, status, address))
    )
    desk.interface._audit = cast("Any", audit)

    await desk.ask("GET", "/tenants/guess", key=key)

    assert counts == [("unauthenticated", 401, "192.0.2.9")] * counted


async def test_an_assertion_gets_a_token_of_its_caller(desk: Desk) -> None:
    granted = json.loads((await desk.token()).body)

    answer = await desk.ask("POST", "/tenants", {"name": "Lab"}, key=granted["access_token"])

    assert (answer.status, granted["token_type"]) == (201, "Bearer")
    entries = (await desk.office.store.unsealed_audit(limit=9)).entries
    assert orjson.loads(entries[-1].records)["user"] == "ana"


async def test_a_token_is_taken_until_it_expires(desk: Desk) -> None:
    granted = json.loads((await desk.token()).body)
    key, seconds = granted["access_token"], granted["expires_in"]
    assert seconds == AdminConfig().token_seconds

    end = (desk.admission.now + seconds) * 1000
    desk.office.clock.now = end - 1
    assert (await desk.ask("GET", "/tenants", key=key)).status == 200
    desk.office.clock.now = end
    assert (await desk.ask("GET", "/tenants", key=key)).status == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"audience": "https://other.example.org"},
        {"audience": BASE},
        {"subject": "eva"},
        {"subject": "unknown"},
        {"subject": BOOTSTRAP},
    ],
)
async def test_another_assertion_gets_nothing(desk: Desk, changes: dict[str, Any]) -> None:
    answer = await desk.token(**changes)

    problem = json.loads(answer.body)
    assert (answer.status, problem["error"]) == (401, "invalid_client")
    assert problem["error_description"].startswith("the assertion ")


async def test_an_assertion_may_be_for_the_interface_as_a_whole(desk: Desk) -> None:
    assert (await desk.token(audience=AUDIENCE)).status == 200


async def test_a_line_of_the_log_has_who_asked_from_where_and_by_which_request(
    desk: Desk,
) -> None:
    with capture_logs() as logged:
        await desk.ask("POST", "/tenants", {"name": "Lab"})

    (line,) = [one for one in logged if "operation" in one]
    assert (line["address"], line["request_id"]) == ("192.0.2.9", "r-9")
