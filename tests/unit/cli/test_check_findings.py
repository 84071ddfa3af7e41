"""``fhirpub check`` goes on where it can, and names each thing that it has found."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.cli.check import _clients, _issuers
from fhirpub.config.settings import AuthConfig, Config, PluginsConfig, StorageConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.tenant import Tenant
from tests.unit.plugin_host.installing import V2, Install
from tests.unit.plugin_host.test_issuers import SOURCE as ISSUERS
from tests.unit.plugin_host.test_issuers import TENANT as ISSUED

DAY_MS = 86_400_000


def found(run: Any, **variables: str) -> list[tuple[str, str, str]]:
    findings = json.loads(run("check", "--json", **variables).stdout)
    return [(one["subject"], one["level"], one["text"]) for one in findings]


def test_a_strict_check_fails_at_a_warning_as_json_too(run: Any) -> None:
    variables = {"FHIRPUB_AUTH__ENVIRONMENT": "production"}

    assert run("check", "--strict", "--json", **variables).returncode == 1
    assert run("check", "--json", **variables).returncode == 0


def test_each_problem_of_the_settings_is_a_finding(run: Any) -> None:
    variables = {"FHIRPUB_SERVER__WORKERS": "0", "FHIRPUB_AUTH__AUDIENCE": ""}

    assert [(subject, level) for subject, level, _text in found(run, **variables)] == [
        ("configuration", "error")
    ] * 2


def test_keys_that_cannot_be_read_do_not_hide_what_was_found_before(run: Any) -> None:
    findings = found(run, FHIRPUB_STORE_KEYS="no key")

    assert [(subject, level) for subject, level, _text in findings] == [
        *(("configuration", "ok"), ("plugins", "ok"), ("secrets", "error"))
    ]


def test_the_store_that_is_there_is_looked_at_although_a_plugin_is_wrong(run: Any) -> None:
    run("check")

    findings = found(run, FHIRPUB_PLUGINS__ENABLED="diagnosticreport,nothing-such")

    shown = [(subject, level) for subject, level, text in findings if "file system (" not in text]
    assert shown == [
        ("configuration", "ok"),
        ("plugins", "ok"),
        ("plugins", "error"),
        ("store", "ok"),
    ]


def test_no_store_is_created_while_a_plugin_is_wrong(run: Any, tmp_path: Path) -> None:
    found(run, FHIRPUB_PLUGINS__ENABLED="nothing-such")

    assert not (tmp_path / "fhirpub-data").exists()


def test_a_service_without_a_plugin_serves_nothing(run: Any) -> None:
    warnings = [
        (subject, text)
        for subject, level, text in found(run, FHIRPUB_PLUGINS__ENABLED="")
        if level == "warning" and subject == "plugins"
    ]

    assert warnings == [
        ("plugins", "none is enabled: no resource type is served: name some"),
    ]


# Clients


async def warnings_of_clients(config: Config, *new: NewClient, days_ago: int) -> list[str]:
    """Return the findings about clients that were added some days ago."""
    tenant = Tenant.new("Lab", created=1)
    async with open_store(config) as store:
        await store.put_tenant(tenant)
        for number, one in enumerate(new):
            fields = {name: getattr(one, name) for name in ("scopes", "valid_days")}
            client = NewClient(
                tenant=tenant.id, name="", environment="sandbox", id=f"c-{number}", **fields
            )
            await add_client(store, client, clock=lambda: now_ms() - days_ago * DAY_MS)
    return [one.text async for one in _clients(config)]


def a_client(**fields: Any) -> NewClient:
    return NewClient(tenant="", name="", environment="sandbox", **fields)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        storage=StorageConfig(url=f"sqlite:///{tmp_path}/lab.db"),
        auth=AuthConfig(enforce_scopes=True),
    )


def test_a_secret_that_has_ended_is_a_warning_as_one_that_ends_soon(config: Config) -> None:
    scopes = ("system/*.rs",)
    clients = [a_client(scopes=scopes, valid_days=days) for days in (1, 12, 0)]

    ended, ends = asyncio.run(warnings_of_clients(config, *clients, days_ago=10))

    assert ended.startswith("the secret of c-0 ended on 20")
    assert ends.startswith("the secret of c-1 ends on 20")


def test_a_client_without_scopes_whose_secret_ends_is_warned_of_twice(config: Config) -> None:
    texts = asyncio.run(warnings_of_clients(config, a_client(valid_days=1), days_ago=0))

    assert [text.partition(" ends on ")[0] for text in texts] == [
        "the client c-0 has no scopes: fhirpub client scopes c-0",
        "the secret of c-0",
    ]


# Issuers


@pytest.mark.parametrize("disabled", [True, False])
def test_a_tenant_of_an_issuer_must_not_be_disabled(
    install: Install, tmp_path: Path, *, disabled: bool
) -> None:
    install("one", ISSUERS % [("corp", "https://login.example")], group=V2)
    config = Config(
        storage=StorageConfig(url=f"sqlite:///{tmp_path}/lab.db"),
        plugins=PluginsConfig(enabled=["one"]),
    )

    async def findings() -> list[tuple[str, str]]:
        async with open_store(config) as store:
            tenant = Tenant(id=ISSUED, name="Lab", salt=bytes(32), created=1, disabled=disabled)
            await store.put_tenant(tenant)
        return [(one.level, one.text) async for one in _issuers(config)]

    ok, *warnings = asyncio.run(findings())

    assert ok == ("ok", "corp (https://login.example) acts for 1 tenants")
    assert warnings == [("warning", f"corp: no tenant, or disabled: {ISSUED}")] * disabled
