"""Tokens of an OpenID Connect issuer, of third-party code, act for its tenants and no others."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlencode, urlsplit

import pytest

from fhirpub.auth.tenants import add_tenant, change_tenant, require_tenant
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_api import TokenHolder, TokenIssuer
from fhirpub.plugin_host.issuers import load_issuers
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.testing.plugin_contracts import TokenIssuerContract
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.testing.service import Answer, RunningService, Service
from fhirpub_oidc.claims import issuers_of
from fhirpub_oidc.settings import IssuerSettings
from tests.bodies import SYSTEM, register_body
from tests.node.packages import Scripts
from tests.node.provider import Provider
from tests.unit.auth.assertions.signing import Pair, key_set, pair
from tests.waiting import wait_until

AUDIENCE = "https://fhir.lab.example"
NORTH, SOUTH = "3f0c8b0e-1111-4222-8333-444455556666", "3f0c8b0e-2222-4222-8333-444455556666"
SECRET = "a-secret-of-the-ward"
SEARCH = "/fhir/r4/DiagnosticReport"
CLOUD = "https://login.cloud.example/tenant"


def settings(**changes: Any) -> IssuerSettings:
    usual: dict[str, Any] = {
        "issuers": [f"corp {CLOUD}", "ward https://login.ward.example"],
        "audiences": [f"corp {AUDIENCE}", f"ward {AUDIENCE}"],
        "tenants": [f"corp ward {NORTH}", f"corp lab {SOUTH}", f"ward * {SOUTH}"],
        "scopes": ["corp system/DiagnosticReport.cruds system/Patient.rs", "ward system/*.rs"],
        "roles": ["corp writer system/DiagnosticReport.cud system/Patient.rs"],
    }
    return IssuerSettings(**{**usual, **changes})


class TestIssuer(TokenIssuerContract):
    claims: ClassVar[Mapping[str, Any]] = {
        "iss": CLOUD,
        "aud": AUDIENCE,
        "client_id": "ward",
        "azp": "other",
        "scope": "openid writer system/DiagnosticReport.rs",
    }
    holder = TokenHolder(
        client="ward",
        tenant=NORTH,
        scopes=(
            "system/DiagnosticReport.cud",
            "system/Patient.rs",
            "system/DiagnosticReport.rs",
        ),
    )

    @pytest.fixture
    def issuer(self) -> TokenIssuer:
        return issuers_of(settings())[0]


class TestIssuerOfOneTenant(TokenIssuerContract):
    """Claims as other products write them: the client in ``azp``, roles in a list."""

    claims: ClassVar[Mapping[str, Any]] = {
        "azp": "app",
        "roles": ["reader", 1, "offline"],
        "org": "nowhere",
    }
    holder = TokenHolder(client="app", tenant=SOUTH, scopes=("system/*.rs",))

    @pytest.fixture
    def issuer(self) -> TokenIssuer:
        made = settings(tenant_claim="org", scope_claim="roles", roles=["ward reader system/*.rs"])
        return issuers_of(made)[1]


def test_a_claim_names_the_tenant() -> None:
    corp = issuers_of(settings(tenant_claim="org"))[0]

    found = corp.identify({"client_id": "x", "org": "lab"})

    assert (found.tenant, found.scopes) == (SOUTH, ())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"issuers": ["corp"]}, "issuers: 'corp' must be NAME URL"),
        ({"issuers": [""]}, "issuers: '' must be NAME URL"),
        ({"tenants": [f"corp {NORTH}"]}, "must be NAME VALUE TENANT"),
        ({"scopes": ["crop system/*.rs"]}, "begins with the name of no issuer"),
    ],
)
def test_entries_that_cannot_be_read_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r"must|begins") as refusal:
        settings(**changes)
    assert words in str(refusal.value)


def test_all_wrong_entries_are_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"corp a b.*crop x") as refusal:
        settings(issuers=["corp https://a", "corp a b"], scopes=["crop x"])
    assert str(refusal.value).count("; ") > 1


def configured(group: IssuerSettings, **auth: Any) -> Config:
    return Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "oidc"]),
        auth=AuthConfig(**auth),
        by_plugin={"oidc": group},
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {name: [] for name in ("issuers", "audiences", "tenants", "scopes", "roles")},
            "no issuer",
        ),
        ({"issuers": ["corp http://login.corp.example", "ward https://b.example"]}, "https://"),
        ({"issuers": ["corp nonsense", "ward https://b.example"]}, "https://"),
        ({"issuers": ["corp https://a@b.example", "ward https://b.example"]}, "or a user"),
        ({"issuers": ["corp https://b.example", "ward https://b.example"]}, "another issuer"),
        ({"issuers": ["corp https://a.example", "corp https://b.example"]}, "another issuer"),
        ({"audiences": [f"ward {AUDIENCE}"]}, "has an audience that is not"),
        ({"tenants": [f"ward * {SOUTH}"]}, "has no tenant"),
        ({"tenants": [f"ward * {SOUTH}", "corp * north"]}, "not the id of a tenant"),
        ({"scopes": ["ward system/*.rs"]}, "has no scope"),
        ({"scopes": ["ward system/*.rs", "corp everything"]}, "which is not a scope"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_issuer_that_lacks_something_prevents_the_start(
    changes: dict[str, Any], words: str
) -> None:
    usual = settings()
    names = {entry.split()[0] for entry in changes.get("issuers", usual.issuers)}
    kept = {
        key: [entry for entry in getattr(usual, key) if entry.split()[0] in names]
        for key in ("audiences", "tenants", "scopes")
    }
    group = settings(**{**kept, "roles": [], **changes})

    with pytest.raises(PluginError, match=words):
        load_issuers(configured(group))


def test_an_issuer_on_this_machine_is_for_a_sandbox() -> None:
    group = settings(issuers=["corp http://127.0.0.1:1", "ward https://b.example"])

    assert load_issuers(configured(group))[0].url == "http://127.0.0.1:1"
    with pytest.raises(PluginError, match="https://"):
        load_issuers(configured(group, environment="production"))


class Issuer(Provider):
    """oidc-provider, which grants tokens to clients."""

    def token(self, client: str, *, resource: str = AUDIENCE, scope: str = "") -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "client_secret": SECRET,
            "resource": resource,
            "scope": scope or "system/DiagnosticReport.cruds",
        }
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/token", urlencode(form), headers)
        answer = json.load(connection.getresponse())
        connection.close()
        return str(answer["access_token"])


@contextmanager
def serving(
    folder: Path,
    store: str,
    issuer: str,
    tenants: Mapping[str, str],
    *,
    clock: Clock = now_ms,
    quotas: QuotasConfig | None = None,
) -> Iterator[RunningService]:
    """Run a service that accepts tokens of an issuer, whose clients have tenants."""
    group = IssuerSettings(
        issuers=[f"corp {issuer}"],
        audiences=[f"corp {AUDIENCE}"],
        tenants=[f"corp {client} {tenant}" for client, tenant in tenants.items()],
        scopes=["corp system/DiagnosticReport.cruds system/Patient.rs"],
        roles=["corp reader system/DiagnosticReport.rs"],
    )
    webhooks = WebhooksConfig(
        allow_networks=["127.0.0.1/32"], connect_seconds=8.0, timeout_seconds=10.0
    )
    config = replace(configured(group), webhooks=webhooks, quotas=quotas or QuotasConfig())
    with RunningService(folder, config=config, store_url=store, clock=clock) as running:
        for name, tenant in (("North", NORTH), ("South", SOUTH)):
            made = add_tenant(running.services.store, name, clock=now_ms, tenant_id=tenant)
            running.call(made)
        yield running


def call(
    service: Service, token: str, method: str = "GET", path: str = SEARCH, body: Any = None
) -> Answer:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/fhir+json"}
    raw = None if body is None else json.dumps(body).encode()
    return service.request(method, path, raw, headers)


@pytest.fixture(scope="module", params=["RS256", "ES256"])
def provider(request: pytest.FixtureRequest, node: Scripts) -> Iterator[Issuer]:
    given = {
        "algorithm": request.param,
        "scopes": ["system/DiagnosticReport.cruds", "system/*.cruds", "reader"],
        "clients": [
            {"client_id": name, "client_secret": SECRET} for name in ("ward", "lab", "stranger")
        ],
    }
    running = Issuer(node, given)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def service(
    provider: Issuer,
    store_url: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningService]:
    tenants = {"ward": NORTH, "lab": SOUTH}
    folder, store = tmp_path_factory.mktemp("oidc"), store_url("oidc")
    with serving(folder, store, provider.url, tenants) as running:
        yield running


def test_a_client_of_the_issuer_publishes_and_reads(
    service: RunningService, provider: Issuer
) -> None:
    token = provider.token("ward")
    register = f"{SEARCH}/$register"

    made = call(service, token, "POST", register, register_body("R-1"))

    assert made.status == 201
    found = call(service, token, path=f"{SEARCH}?identifier={quote(f'{SYSTEM}|R-1')}")
    assert (found.status, found.json["total"]) == (200, 1)


def test_another_client_of_the_issuer_acts_for_its_own_tenant(
    service: RunningService, provider: Issuer
) -> None:
    call(service, provider.token("ward"), "POST", f"{SEARCH}/$register", register_body("R-2"))

    assert call(service, provider.token("lab")).json["total"] == 0


def test_a_role_of_the_issuer_stands_for_its_scopes(
    service: RunningService, provider: Issuer
) -> None:
    token = provider.token("lab", scope="reader")

    assert call(service, token).status == 200
    refused = call(service, token, "POST", f"{SEARCH}/$register", register_body("R-3"))
    assert refused.status == 403


def test_wider_scopes_than_those_of_the_issuer_count_as_these(
    service: RunningService, provider: Issuer
) -> None:
    token = provider.token("ward", scope="system/*.cruds")

    assert call(service, token).status == 200
    assert call(service, token, path="/fhir/r4/Observation/x").status in (403, 404)
    assert call(service, token, path="/fhir/r4/webhook-endpoints").status in (403, 404)


@pytest.mark.parametrize("wrong", ["client", "audience"])
def test_a_token_of_the_issuer_for_others_is_refused(
    service: RunningService, provider: Issuer, wrong: str
) -> None:
    resource = "https://other.example" if wrong == "audience" else AUDIENCE
    token = provider.token("stranger" if wrong == "client" else "ward", resource=resource)

    refused = call(service, token)

    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


class Site:
    """An issuer that signs what it is asked to sign, and misbehaves on demand."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.url = receiver.url.removesuffix("/webhook")
        self.keys = Reply(status=200, body=key_set(pair("ES384", "k1")))
        receiver.answer_by(self._reply)

    def _reply(self, received: Received) -> Reply:
        if received.path == "/keys":
            return self.keys
        document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return Reply(status=200, body=json.dumps(document).encode())

    def token(self, *, by: Pair | None = None, **changes: Any) -> str:
        now = int(time.time())  # noqa: TID251 - the service has the same clock
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "exp": now + 600,
            "client_id": "ward",
        }
        usual = {**claims, "scope": "system/DiagnosticReport.rs", "jti": str(time.monotonic_ns())}
        return (by or pair("ES384", "k1")).sign({**usual, **changes}, header={"typ": "at+jwt"})


@pytest.fixture
def site() -> Iterator[Site]:
    with Receiver() as receiver:
        yield Site(receiver)


@pytest.fixture
def watched(
    site: Site, store_url: Callable[[str], str], tmp_path: Path
) -> Iterator[RunningService]:
    """A service of the issuer that misbehaves, with a quota of its clients."""
    quotas = QuotasConfig(client_requests_per_minute=1_000)
    tenants = {"ward": NORTH}
    store = store_url("watched")
    with serving(tmp_path, store, site.url, tenants, quotas=quotas) as running:
        yield running


@pytest.mark.parametrize(
    "keys",
    [
        Reply(status=200, body=b'{"keys":[' + b" " * 5_000_000 + b"]}"),
        Reply(status=200, body=b"[" * 60_000),
        Reply(status=200, body=b'{"keys":[{}]}'),
        Reply(status=200, body=b"<html>"),
        Reply(status=500),
        Reply(status=302, headers={"Location": "/elsewhere"}),
        Reply(misbehaviour="endless-body"),
        Reply(misbehaviour="dripping-body"),
        Reply(misbehaviour="silent"),
        Reply(misbehaviour="reset"),
    ],
    ids=lambda reply: f"{reply.status} {len(reply.body)} {reply.misbehaviour}",
)
def test_keys_that_cannot_be_read_refuse_only_tokens_of_their_issuer(
    watched: RunningService, site: Site, keys: Reply
) -> None:
    lab = watched.integrator(scopes=("system/DiagnosticReport.rs",))
    site.keys = keys
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(call, watched, site.token()) for _ in range(3)]
        begun = time.monotonic()
        assert lab.get(SEARCH).status == 200
        took = time.monotonic() - begun
        refused = [one.result() for one in waiting]

    assert {one.status for one in refused} == {401}
    assert all(one.headers["www-authenticate"].startswith("Bearer") for one in refused)
    assert took < 4  # and not the five of the others
    assert len([one for one in site.receiver.received if one.path == "/keys"]) <= 2


def test_a_rotated_key_is_found_and_the_old_one_ends(watched: RunningService, site: Site) -> None:
    site.keys = Reply(
        status=200, headers={"Cache-Control": "max-age=1"}, body=key_set(pair("ES384", "k1"))
    )
    assert call(watched, site.token()).status == 200
    site.keys = replace(site.keys, body=key_set(pair("RS256", "k2")))
    time.sleep(1.1)

    assert call(watched, site.token(by=pair("RS256", "k2"))).status == 200
    assert call(watched, site.token()).status == 401


def test_a_client_of_an_issuer_has_its_own_name_in_quotas_and_the_audit_trail(
    watched: RunningService, site: Site
) -> None:
    tenant = watched.call(require_tenant(watched.services.store, NORTH))
    auditor = watched.another_client(tenant, scopes=("system/AuditEvent.rs",))

    answer = call(watched, site.token())

    left = answer.headers["ratelimit"]  # sixteen more are granted each second
    assert re.match(r'"client_requests_per_minute";r=(999|1000)', left)
    name = quote(f"{watched.base_url}|corp:ward")

    def entries() -> Any:
        return auditor.get(f"/fhir/r4/AuditEvent?agent:identifier={name}").json.get("entry")

    assert wait_until(lambda: bool(entries()), seconds=30.0)
    agent = entries()[0]["resource"]["agent"][0]
    assert agent["who"]["identifier"]["value"] == "corp:ward"


def test_a_disabled_tenant_ends_the_tokens_of_its_issuers(
    site: Site, store_url: Callable[[str], str], tmp_path: Path
) -> None:
    passed = [0]
    store = store_url("gone")
    with serving(
        tmp_path, store, site.url, {"ward": NORTH}, clock=lambda: now_ms() + passed[0]
    ) as running:
        token = site.token()
        assert call(running, token).status == 200
        running.call(change_tenant(running.services.store, NORTH, disabled=True))
        passed[0] = 31_000

        refused = call(running, token)

    assert (refused.status, refused.problems) == (401, ["client-disabled"])
