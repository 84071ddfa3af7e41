"""The interface for administration: its addresses, bodies, refusals and description."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from fhirpub.administration.table import OPERATIONS
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.storage.contract import SigningKey
from tests.administration.conftest import Administered


def test_a_tenant_is_added_shown_renamed_disabled_and_enabled(administered: Administered) -> None:
    added = administered.request("POST", "/tenants", {"name": " Lab Uno "})
    path = f"/tenants/{added.json['id']}"
    renamed = administered.request("PATCH", path, {"name": "Lab Dos"})
    disabled = administered.request("POST", f"{path}/disable")
    enabled = administered.request("POST", f"{path}/enable")

    assert (added.status, added.json["name"]) == (201, "Lab Uno")
    assert renamed.json == {**added.json, "name": "Lab Dos"}
    assert (disabled.json["disabled"], enabled.json["disabled"]) == (True, False)
    assert administered.request("GET", path).json == enabled.json
    assert enabled.json in administered.request("GET", "/tenants").json


def test_a_request_with_a_key_adds_once_and_then_changes(administered: Administered) -> None:
    key = f"lab-{uuid4().hex}"

    first, again, renamed = (
        administered.request("PUT", f"/tenants/{key}", {"name": name})
        for name in ("Lab Uno", "Lab Uno", "Lab Dos")
    )

    assert first.json == again.json
    assert renamed.json == {**first.json, "name": "Lab Dos"}
    assert administered.request("GET", f"/tenants/{key}").json == renamed.json


def test_racing_requests_with_a_key_add_one_client_with_one_secret(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path, fields = f"/tenants/{tenant}/clients/ward", {"scopes": ["system/*.rs"]}

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda _: administered.request("PUT", path, fields), range(8))]

    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["client_id"] for answer in answers}) == 1
    assert sum("client_secret" in answer.json for answer in answers) == 1


def test_a_client_that_is_added_over_http_gets_tokens(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    client = administered.request("POST", f"/tenants/{tenant}/clients", {}).json

    fields = {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        "audience": administered.service.config.auth.audience,
    }
    form = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert administered.service.request("POST", "/oauth/token", form, headers).status == 200


def test_the_clients_of_a_tenant_are_listed_without_those_of_others(
    administered: Administered,
) -> None:
    ours, theirs = [
        administered.request("POST", "/tenants", {"name": name}).json["id"] for name in "ab"
    ]
    for tenant in (ours, theirs):
        administered.request("POST", f"/tenants/{tenant}/clients", {"name": "ward"})

    listed = administered.request("GET", f"/clients?tenant={ours}").json

    assert [one["tenant"] for one in listed] == [ours]


def test_keys_of_the_other_environment_are_not_listed(administered: Administered) -> None:
    service = administered.service
    ours = administered.request("POST", "/keys/rotate").json["kid"]
    theirs = SigningKey(
        kid="other", algorithm="ES256", environment="production", created=1, private_pem=b"pem"
    )
    service.call(service.services.store.put_signing_key(theirs))

    listed = [one["kid"] for one in administered.request("GET", "/keys").json]

    assert ours in listed
    assert "other" not in listed


def test_a_disabled_client_is_not_brought_back_by_its_key(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path = f"/tenants/{tenant}/clients/ward"
    client = administered.request("PUT", path, {}).json["client_id"]
    administered.request("POST", f"/clients/{client}/disable")

    refused = administered.request("PUT", path, {"scopes": ["system/*.rs"]})

    assert (refused.status, refused.problems) == (409, ["not-possible"])


def test_an_endpoint_with_a_key_keeps_its_secrets_and_is_replaced_once_removed(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path = f"/tenants/{tenant}/endpoints/lis"
    fields = {"url": "https://93.184.216.34/hooks", "event_types": ["*"]}

    first, again = (administered.request("PUT", path, fields) for _ in range(2))
    changed = administered.request("PUT", path, {**fields, "ordering": "strict"}).json
    removed = administered.request("DELETE", f"/endpoints/{first.json['id']}").json
    other = administered.request("PUT", path, fields).json

    assert first.json["signing_secret"]
    assert "signing_secret" not in again.json
    assert (again.json["revision"], changed["revision"], changed["ordering"]) == (1, 2, "strict")
    assert removed["state"] == "deleted"
    assert (other["id"] != first.json["id"], other["state"]) == (True, "active")


def test_an_endpoint_that_others_remove_meanwhile_is_there_after_its_request(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path, url = f"/tenants/{tenant}/endpoints/lis", "https://93.184.216.34/hooks"

    def put(number: int) -> int:
        fields = {"url": url, "event_types": ["*"], "description": f"lis {number}"}
        answer = administered.request("PUT", path, fields)
        if number % 2:
            administered.request("DELETE", f"/endpoints/{answer.json['id']}")
        return answer.status

    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(put, range(24))} == {200}


@pytest.mark.parametrize(
    ("method", "path", "status", "problem"),
    [
        ("GET", "/tenants/unknown", 404, "record-unknown"),
        ("POST", f"/clients/{UUID(int=1)}/rotate", 404, "record-unknown"),
        ("GET", "/nothing", 404, "address-unknown"),
        ("GET", "/tenants/", 404, "address-unknown"),
        ("DELETE", "/tenants", 405, "method-unsupported"),
        ("PATCH", "/openapi.json", 404, "address-unknown"),
    ],
)
def test_what_is_not_there_is_refused(
    administered: Administered, method: str, path: str, status: int, problem: str
) -> None:
    answer = administered.request(method, path)

    assert (answer.status, answer.problems) == (status, [problem])


def test_a_method_that_is_not_possible_has_those_that_are(administered: Administered) -> None:
    allowed = administered.request("DELETE", "/tenants").headers["allow"]

    assert sorted(allowed.split(", ")) == ["GET", "POST"]


def test_every_problem_of_a_request_is_named_with_its_place(administered: Administered) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    fields = {"nam": "x", "scopes": "all", "valid_days": -1, "networks": [1]}

    answer = administered.request("POST", f"/tenants/{tenant}/clients", fields)

    assert answer.status == 400
    assert answer.issue_expressions == {"nam", "scopes", "valid_days", "networks"}
    (unknown,) = [one for one in answer.issues if one["expression"] == ["nam"]]
    assert "did you mean name?" in unknown["diagnostics"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400),
        (b'"name"', 400),
        (b"{", 400),
        (b'{"name": "a", "name": "b"}', 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b'{"name": "' + b"a" * 2_000_000 + b'"}', 413),
    ],
)
def test_a_body_that_is_no_object_is_refused(
    administered: Administered, body: bytes, status: int
) -> None:
    key = {"Authorization": "Bearer " + "c0ffee" * 6, "Content-Type": "application/json"}

    assert administered.send("POST", "/admin/v1/tenants", body, key).status == status


def test_a_body_of_another_type_is_refused(administered: Administered) -> None:
    headers = {"Content-Type": "text/plain"}

    answer = administered.request("POST", "/tenants", {"name": "Lab"}, **headers)

    assert (answer.status, answer.problems) == (415, ["body-type-unsupported"])


def test_a_name_in_the_path_is_no_field(administered: Administered) -> None:
    answer = administered.request("PATCH", "/tenants/unknown?tenant=other", {"name": "x"})

    assert answer.status == 400


def test_a_response_to_head_has_no_body(administered: Administered) -> None:
    answer = administered.request("HEAD", "/tenants")

    assert (answer.status, answer.body) == (405, b"")


def test_responses_are_kept_by_no_cache(administered: Administered) -> None:
    headers = administered.request("GET", "/tenants").headers

    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_the_description_is_valid_and_has_every_operation(administered: Administered) -> None:
    document = administered.request("GET", "/openapi.json").json

    assert not [*OpenAPIV31SpecValidator(document).iter_errors()]
    described = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert described == {(one.method, one.path) for one in OPERATIONS}
    assert document["servers"] == [{"url": f"{administered.url}/admin/v1"}]


def test_every_operation_has_a_name_and_an_address_of_its_own() -> None:
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    shapes = {(one.method, re.sub(r"\{\w+\}", "{}", one.path)) for one in OPERATIONS}
    keyed = [one for one in OPERATIONS if one.path.endswith("{key}")]
    assert len(shapes) == len(OPERATIONS)
    assert {one.method for one in keyed} == {"PUT"}


def test_each_name_in_a_path_is_a_parameter() -> None:
    for one in OPERATIONS:
        in_path = {each.name for each in one.parameters if each.place == "path"}
        assert {*one.blanks} == in_path, one.command
        assert all(each.required for each in one.parameters if each.place == "path")


@pytest.mark.parametrize("key", [str(UUID(int=1)), "Lab", "a b", "-a", "a" * 101, "%C3%A4"])
def test_what_could_be_an_id_or_is_no_key_is_refused(administered: Administered, key: str) -> None:
    answer = administered.request("PUT", f"/tenants/{quote(key, safe='%')}", {"name": "Lab"})

    assert (answer.status, answer.issue_expressions) == (400, {"key"})


def test_the_endpoints_of_a_disabled_tenant_stay_disabled(administered: Administered) -> None:
    tenant = f"/tenants/lab-{uuid4().hex}"
    administered.request("PUT", tenant, {"name": "Lab"})
    fields = {"url": "https://93.184.216.34/x", "event_types": ["*"]}
    endpoint = administered.request("PUT", f"{tenant}/endpoints/lis", fields).json["id"]

    administered.request("POST", f"{tenant}/disable")
    administered.request("POST", f"{tenant}/enable")

    assert administered.request("GET", f"/endpoints/{endpoint}").json["state"] == "disabled"


def test_a_client_with_keys_gets_no_secret_and_is_saved_again_by_its_key(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path, (_private, public) = f"/tenants/{tenant}/clients/ward", new_key_pair()

    added, again = (administered.request("PUT", path, {"jwks": public}).json for _ in range(2))

    assert "client_secret" not in added
    assert added["keys"] == again["keys"] == [public["keys"][0]["kid"]]


def test_keys_that_cannot_be_used_are_refused_with_their_place(
    administered: Administered,
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    path = f"/tenants/{tenant}/clients"

    inside = administered.request("POST", path, {"jwks_url": "https://127.0.0.1/jwks.json"})
    private = administered.request("POST", path, {"jwks": {"keys": [new_key_pair()[0]]}})

    assert (inside.status, inside.issue_expressions) == (400, {"jwks_url"})
    assert (private.status, private.problems) == (422, ["not-possible"])


def test_of_very_many_wrong_fields_the_first_hundred_are_named(
    administered: Administered,
) -> None:
    fields = {f"n{number}": 1 for number in range(20_000)}

    answer = administered.request("POST", "/tenants", fields)

    assert (answer.status, len(answer.issues)) == (400, 100)


@pytest.mark.parametrize(
    ("method", "path", "fields", "place"),
    [
        ("PATCH", "", {"tenant": "other", "name": "x"}, "tenant"),
        ("PATCH", "?name=x", {}, "name"),
        ("POST", "/clients?name=x", {}, "name"),
        ("GET", "/patients/conflicts", {"after": ""}, "after"),
    ],
)
def test_a_parameter_in_another_place_than_its_own_is_refused(
    administered: Administered, method: str, path: str, fields: dict[str, str], place: str
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    answer = administered.request(method, f"/tenants/{tenant}{path}", fields)

    assert (answer.status, answer.issue_expressions) == (400, {place})


@pytest.mark.parametrize(
    ("method", "path", "fields", "name"),
    [
        ("GET", "/audit/service/records?from=1.2", None, "from"),
        ("GET", "/audit/service/records?from=1.2.x", None, "from"),
        ("GET", f"/audit/service/records?from=1.2.{'9' * 19}", None, "from"),
        ("POST", "/deliveries/replay", {"dead": True, "from": "e:"}, "from"),
        ("POST", "/deliveries/replay", {"dead": True, "from": "e:-1"}, "from"),
        ("GET", "/tenants/TENANT/patients/conflicts?after=x/y", None, "after"),
    ],
)
def test_a_place_that_no_response_had_is_refused(
    administered: Administered, method: str, path: str, fields: object, name: str
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]

    refused = administered.request(method, path.replace("TENANT", tenant), fields)

    assert (refused.status, refused.issue_expressions) == (400, {name})


@pytest.mark.parametrize(
    ("act", "action"),
    [
        ("rotate-secret", "endpoint.secret.rotate"),
        ("rotate-token", "endpoint.token.rotate"),
        ("pause", "endpoint.pause"),
        ("disable", "endpoint.disable"),
    ],
)
def test_an_act_on_an_endpoint_has_its_name_in_the_audit_trail(
    administered: Administered, act: str, action: str
) -> None:
    tenant = administered.request("POST", "/tenants", {"name": "Lab"}).json["id"]
    fields = {"url": "https://93.184.216.34/hooks", "event_types": ["endpoint.failing"]}
    endpoint = administered.request("POST", f"/tenants/{tenant}/endpoints", fields).json["id"]

    assert administered.request("POST", f"/endpoints/{endpoint}/{act}").status == 200

    assert administered.audit(tenant)[0]["action"] == action
