"""``fhirpub check``: whether the service can start, and whether its settings are safe."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import click

from fhirpub.app.services import build_services
from fhirpub.app.stores import key_file, key_source, open_store
from fhirpub.auth.clients import ends_soon
from fhirpub.cli.advice.files import (
    advise_on_disk,
    advise_on_settings_file,
    advise_on_store_files,
)
from fhirpub.cli.advice.finding import Finding, warning
from fhirpub.cli.advice.machine import advise_on_machine
from fhirpub.cli.advice.settings import advise
from fhirpub.cli.encryption.findings import find_secrets
from fhirpub.cli.error_hints import explain
from fhirpub.cli.options import read_config, with_config_file, with_json
from fhirpub.cli.printing import print_json
from fhirpub.config.allowed_networks import parse_allowed_network
from fhirpub.config.settings import DEFAULT_FILE, Config
from fhirpub.errors import (
    ConfigurationError,
    FhirpubError,
    InvalidContent,
    PluginError,
    SecretsUnavailable,
    StoreUnavailable,
)
from fhirpub.fhir.times import instant
from fhirpub.interactions.reindex import refuse_changed_keys
from fhirpub.plugin_host import loader as plugin_loader
from fhirpub.plugin_host.issuers import load_issuers
from fhirpub.plugin_host.schemas import schema_and_element_problems
from fhirpub.plugin_host.sinks import load_event_sinks
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.upgrades.versions import UpgradeNeeded
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management.secret_encryption import live_secrets, token_of
from fhirpub.webhooks.transport.sinks import SCHEME, Sinks

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command(short_help="Check whether the service can start.")
@click.option("--strict", is_flag=True, help="Exit with status 1 also if there is a warning.")
@with_config_file
@with_json
def check(config_file: Path | None, *, strict: bool, as_json: bool) -> None:
    """Check configuration, plugins, store, secrets, webhooks, schemas; print a line per finding.

    A SQLite store that does not exist is created, as by `fhirpub serve`; one of an older release
    is not upgraded. What is unsafe with real patients is looked for with [auth] environment =
    "production". The exit status is 1 if there is an error, and 0 if there are only warnings.
    """
    findings = asyncio.run(_findings(config_file))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            level = click.style(f"{finding.level:<7}", fg=_COLOURS[finding.level])
            click.echo(f"{level}  {finding.subject:<13}  {finding.text}")
    failing = {"error", "warning"} if strict else {"error"}
    sys.exit(any(finding.level in failing for finding in findings))


async def _findings(config_file: Path | None) -> list[Finding]:
    try:
        config = read_config(config_file)
    except PluginError as problem:
        return list(_errors("plugins", problem))
    except ConfigurationError as problem:
        return list(_errors("configuration", problem))
    found = [*_configuration(config, config_file or Path(DEFAULT_FILE)), *_plugins(config)]
    key = key_file(config)
    is_new = key is not None and not key.exists()
    try:
        key_source(config).read()
    except FhirpubError as problem:
        return [*found, *_errors("secrets", problem)]
    # The key of a new store may have to be wrapped by a plugin.
    if not is_new or _can_start(found):
        try:
            found += [finding async for finding in _reporting("store", _store(config))]
        except UpgradeNeeded as state:  # what follows would upgrade it
            return [*found, _upgrade(state)]
    if _can_start(found):
        created = is_new and key is not None and key.exists()
        secrets = find_secrets(config, created=created)
        found += [finding async for finding in _reporting("secrets", secrets)]
        found += [finding async for finding in _reporting("webhooks", _webhooks(config))]
        found += [finding async for finding in _reporting("webhooks", _networks(config))]
        found += [finding async for finding in _reporting("clients", _clients(config))]
        found += [finding async for finding in _reporting("issuers", _issuers(config))]
    if _can_start(found):
        found += [finding async for finding in _reporting("schemas", _schemas(config))]
    return found


def _can_start(found: Iterable[Finding]) -> bool:
    return all(finding.level != "error" for finding in found)


def _configuration(config: Config, source: Path) -> Iterator[Finding]:
    text = str(source) if source.exists() else "built-in defaults"
    if config.auth.environment != "production":
        text += ", for a sandbox: what is unsafe in production only is not looked for"
    yield Finding("configuration", "ok", text)
    yield from advise(config)
    yield from advise_on_settings_file(config, source)
    yield from advise_on_machine(config)


def _plugins(config: Config) -> Iterator[Finding]:
    if not config.plugins.enabled:
        yield warning("plugins", "none is enabled: no resource type is served: name some")
    found = plugin_loader.examine(config.plugins.enabled)
    problems = {name: list(wrong) for name, wrong in found.problems.items()}
    for name, declared in found.types.items():
        plugin = found.owners[name]
        if plugin not in found.problems:
            wrong = schema_and_element_problems(declared)
            problems.setdefault(plugin, []).extend(f"plugin {plugin}: {item}" for item in wrong)
    for plugin in dict.fromkeys(config.plugins.enabled):
        types = ", ".join(name for name, owner in found.owners.items() if owner == plugin)
        if not problems.get(plugin):
            yield Finding("plugins", "ok", f"{plugin} adds {types or 'no resource type'}")
        for item in problems.get(plugin, ()):
            yield Finding("plugins", "error", item)


async def _store(config: Config) -> AsyncIterator[Finding]:
    async with open_store(config, upgrade=False) as store:
        await store.check()
    yield Finding("store", "ok", "can be read and written, and has its tables and indexes")
    for advice in (*advise_on_store_files(config), *advise_on_disk(config)):
        yield advice


def _upgrade(state: UpgradeNeeded) -> Finding:
    text = (
        f"has schema version {state.found}, which the first start of this release, or another"
        f" command of it, upgrades to {state.own}. Before that, make a backup with the older"
        " release, or copy the stopped store: nothing else leads back, and `fhirpub transfer` of"
        " this release upgrades the store, too. See in the changelog whether processes of the"
        " older release may go on. The rest is not checked"
    )
    return warning("store", text)


async def _webhooks(config: Config) -> AsyncIterator[Finding]:
    """Check that the secrets of endpoints can be decrypted, and that their sinks are enabled."""
    async with open_store(config) as store:
        endpoints = await store.all_endpoints()
    for endpoint in await _without_sink(config, endpoints):
        sink = endpoint.url.partition("/")[0]
        advice = "enable the plugin that has it, or its events wait and are given up"
        yield warning("webhooks", f"endpoint {endpoint.id}: no sink {sink}: {advice}")
    for endpoint in endpoints:
        live_secrets(endpoint, store.cipher, now=now_ms())
        token_of(endpoint, store.cipher)
    yield Finding(
        "webhooks", "ok", f"the secrets of all endpoints ({len(endpoints)}) can be decrypted"
    )


async def _without_sink(config: Config, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    """Return the endpoints whose URLs name a sink that no enabled plugin has."""
    sinks = Sinks(load_event_sinks(config), timeout_seconds=config.webhooks.timeout_seconds)
    found = []
    for endpoint in endpoints:
        try:
            if endpoint.url.startswith(SCHEME):
                sinks.check(endpoint.url)
        except InvalidContent:
            found.append(endpoint)
    await sinks.close()
    return found


async def _networks(config: Config) -> AsyncIterator[Finding]:
    """Warn of entries that are open to more tenants than one, or to none."""
    async with open_store(config) as store:
        tenants = {tenant.id for tenant in await store.tenants() if not tenant.disabled}
    for text in config.webhooks.allow_networks:
        entry = parse_allowed_network(text)
        unknown = sorted(entry.tenants - tenants)
        setting = f"[webhooks] allow_networks: {text}"
        if unknown:
            names = ", ".join(unknown)
            yield Finding("webhooks", "warning", f"{setting}: no tenant, or disabled: {names}")
        if not entry.tenants and len(tenants) > 1 and config.auth.environment == "production":
            where = "" if entry.ports else ", on every port"
            advice = f"is open to all tenants ({len(tenants)}){where}: add tenant=ID"
            yield Finding("webhooks", "warning", f"{setting} {advice}")


async def _clients(config: Config) -> AsyncIterator[Finding]:
    """Warn of clients whose secrets end soon, or have ended, and of those that may do nothing."""
    environment, now = config.auth.environment, now_ms()
    async with open_store(config) as store:
        everyone = await store.clients()
    if everyone and all(client.environment != environment for client in everyone):
        text = (
            f"all clients ({len(everyone)}) belong to another environment than {environment} and"
            " get no token: add them with the settings of this service: fhirpub client add"
        )
        yield warning("clients", text)
    for client in everyone:
        if client.disabled or client.environment != environment:
            continue
        if config.auth.enforce_scopes and not client.scopes:
            advice = f"the client {client.id} has no scopes: fhirpub client scopes {client.id}"
            yield Finding("clients", "warning", advice)
        end = ends_soon(client, now)
        if end is not None:
            when = f"{'ended' if end <= now else 'ends'} on {instant(end)[:10]}"
            advice = f"the secret of {client.id} {when}: fhirpub client rotate {client.id}"
            yield Finding("clients", "warning", advice)


async def _issuers(config: Config) -> AsyncIterator[Finding]:
    """Check the other issuers of tokens, and warn of tenants that are unknown or disabled."""
    issuers = load_issuers(config)
    async with open_store(config) as store:
        tenants = {tenant.id for tenant in await store.tenants() if not tenant.disabled}
    for issuer in issuers:
        held = f"{issuer.name} ({issuer.url}) acts for {len(issuer.tenants)} tenants"
        yield Finding("issuers", "ok", held)
        unknown = ", ".join(one for one in issuer.tenants if one not in tenants)
        if unknown:
            yield warning("issuers", f"{issuer.name}: no tenant, or disabled: {unknown}")


async def _schemas(config: Config) -> AsyncIterator[Finding]:
    async with build_services(config) as services:
        names = ", ".join(services.types) or "no resource type"
        yield Finding("schemas", "ok", f"compiled for {names}")
        try:
            await refuse_changed_keys(services.store, services.context.searched)
        except ConfigurationError as problem:
            for error in _errors("identifiers", problem):
                yield error


async def _reporting(subject: str, findings: AsyncIterator[Finding]) -> AsyncIterator[Finding]:
    """Yield findings, and the problem that ends them as findings about a subject."""
    try:
        async for finding in findings:
            yield finding
    except UpgradeNeeded:
        raise
    except FhirpubError as problem:
        for error in _errors(subject, problem):
            yield error


def _errors(subject: str, problem: FhirpubError) -> Iterator[Finding]:
    """Yield a problem as findings, one for each of its lines."""
    text = str(problem)
    if isinstance(problem, StoreUnavailable):
        text = explain(problem.reason)
    elif isinstance(problem, SecretsUnavailable):
        text = problem.reason
    for line in text.splitlines():
        yield Finding(subject, "error", line)
