"""Reads the configuration: a TOML file, then the environment; reports all problems at once.

No other module reads the environment.
"""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fhirpub.config.administration import AdminConfig, admin_contradictions
from fhirpub.config.console import ConsoleConfig, console_contradictions
from fhirpub.config.groups import (
    PluginGroups,
    create_config,
    groups_of,
    has_own_settings,
    no_groups,
)
from fhirpub.config.monitoring import MetricsConfig, TracingConfig
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.reader import (
    LAST_PORT,
    check,
    describe,
    override,
    read_toml,
    wrong_networks,
)
from fhirpub.config.retention import RetentionConfig, wrong_policies
from fhirpub.config.settings import (
    ABSOLUTE_URI,
    DEFAULT_FILE,
    EMPTY_HOST,
    AuthConfig,
    Config,
    FhirConfig,
    LimitsConfig,
    PluginsConfig,
    ServerConfig,
    TerminologyConfig,
)
from fhirpub.config.webhooks import WebhooksConfig, webhook_contradictions
from fhirpub.errors import ConfigurationError

_NEXT_PORT = "each worker takes the next one"
_ABOVE_NOTHING = {
    "admin": ("token_seconds",),
    "console": ("idle_minutes", "session_hours"),
    "auth": ("token_seconds", "assertion_token_seconds"),
    "retention": ("erasures_per_minute",),
    "storage": ("deadline_seconds",),
    "limits": (
        "attachment_bytes",
        "request_bytes",
        "resource_bytes",
        "body_seconds",
        "idle_seconds",
        "head_seconds",
        "connections",
        "search_values",
        "search_seconds",
    ),
}
"""Settings that would cause every request to be refused if they were 0."""
_MAX_TOKEN_SECONDS = 36_500 * 86_400
"""A token that expires after the year 9999 would be refused."""
MAX_SECRET_DAYS = 36_500
_BASE_URL = re.compile(r"https?://[A-Za-z0-9._~:/@!$&'()*+,;=%\[\]-]+")
"""A URL in the characters of RFC 3986, without query and fragment."""
_HEADER_NAME = re.compile("[A-Za-z0-9-]{1,64}")
_HEAD = (
    "# Every setting of fhirpub with its default and its meaning.",
    "# Written by `fhirpub config`. A line that starts with `#key` shows a default: remove the",
    "# `#` to change it. FHIRPUB_SERVER__PORT=8080 in the environment overrides `port` of",
    "# [server], and so on for every key.",
)


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    plugin_groups: PluginGroups = no_groups,
) -> Config:
    """Return the settings of a file, overridden by those of the environment.

    Without ``file``, ``fhirpub.toml`` in the working directory is read if it exists.
    ``plugin_groups`` is asked only about plugins of which something is set that no resource type
    has: to import them takes time. Raises ConfigurationError with all problems, one per line, and
    what ``plugin_groups`` raises.
    """
    path = file or Path(DEFAULT_FILE)
    tables: dict[str, Any] = {}
    # A dangling link is a missing file, which is an error, not the absence of a configuration.
    if file is not None or os.path.lexists(path):
        tables = read_toml(path)
    variables = os.environ if environment is None else environment
    problems: list[str] = []
    plugins: dict[str, dict[str, Any]] = {"plugins": tables.get("plugins", {})}
    plugins = check(plugins, {"plugins": PluginsConfig}, [], source="")
    override(plugins, {"plugins": PluginsConfig}, variables, [])
    enabled = PluginsConfig(**plugins["plugins"]).enabled
    asked = [name for name in enabled if has_own_settings(name, tables, variables)]
    own = plugin_groups(asked)
    groups = groups_of(enabled, own)
    values = check(tables, groups, problems, source=str(path))
    override(values, groups, variables, problems)
    if not problems:
        problems += _contradictions(values)
    if problems:
        raise ConfigurationError("\n".join(problems))
    return create_config(values, own)


def misspelt_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a message for each variable that would be a setting with a second ``_``."""
    variables = os.environ if environment is None else environment
    settings = [
        (name.upper(), key.upper())
        for name, group in groups_of(PluginsConfig().enabled).items()
        for key in typing.get_type_hints(group)
    ]
    return [
        f"FHIRPUB_{group}_{key} is ignored: the setting is FHIRPUB_{group}__{key}, "
        "with two underscores"
        for group, key in settings
        if f"FHIRPUB_{group}_{key}" in variables
    ]


def reference(
    enabled: Sequence[str] | None = None, own: Mapping[str, type[Any]] | None = None
) -> str:
    """Return the reference configuration: every key, commented out, at its default.

    It has a group for each plugin of ``enabled``, by default of those that are without a
    configuration; ``own`` are the settings of plugins, by the name of the plugin.
    """
    names = PluginsConfig().enabled if enabled is None else enabled
    return "\n".join([*_HEAD, *describe(groups_of(names, own))]) + "\n"


def variable(name: str) -> str:
    """Return a variable that is not a setting, such as a client's secret; empty if unset."""
    return os.environ.get(name, "")


def _contradictions(values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    limits = LimitsConfig(**values["limits"])
    server = ServerConfig(**values["server"])
    fhir = FhirConfig(**values["fhir"])
    found = []
    if limits.drain_bytes < limits.request_bytes:
        found.append("[limits] drain_bytes must be at least request_bytes")
    if server.workers < 1:
        found.append("[server] workers must be at least 1")
    if server.port > LAST_PORT:
        found.append(f"[server] port must be at most {LAST_PORT}")
    found += _proxy_contradictions(server)
    found += [
        f"[{group}] host {EMPTY_HOST}"
        for group in ("server", "metrics", "admin", "console")
        if not values[group].get("host", "unset").strip()
    ]
    found += _auth_contradictions(AuthConfig(**values["auth"]))
    found += _key_contradictions(values["storage"], values["webhooks"])
    found += [
        f"[{group}] base_url must start with http:// or https://, name a host, and contain no "
        "blank, ? or #, and no letters beyond ASCII: write such a host as xn--…"
        for group in ("server", "admin", "console")
        if (url := values[group].get("base_url")) and not _is_base_url(url)
    ]
    found += [
        f"[{group}] {key} must be above 0"
        for group, keys in _ABOVE_NOTHING.items()
        for key in keys
        if values[group].get(key) == 0
    ]
    found += _wrong_uris(
        {
            "[fhir] organization_namespaces": fhir.organization_namespaces,
            "[patients] person_systems": PatientsConfig(**values["patients"]).person_systems,
            "[terminology] assume": TerminologyConfig(**values["terminology"]).assume,
        }
    )
    found += wrong_policies(RetentionConfig(**values["retention"]).policies)
    if not 1 <= fhir.page_size <= fhir.page_size_max:
        found.append("[fhir] page_size must be between 1 and page_size_max")
    found += _observation_contradictions(values)
    return found + webhook_contradictions(WebhooksConfig(**values["webhooks"]))


def _wrong_uris(settings: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"{name}: {text!r} is not an absolute URI"
        for name, texts in settings.items()
        for text in texts
        if not ABSOLUTE_URI.fullmatch(text)
    ]


def _proxy_contradictions(server: ServerConfig) -> list[str]:
    found, header = "[server] certificate_header", server.certificate_header
    problems = wrong_networks("[server] trusted_proxies", server.trusted_proxies)
    if header and not _HEADER_NAME.fullmatch(header):
        problems.append(f"{found} must be the name of a header, such as X-Client-Cert")
    if header and not server.trusted_proxies:
        problems.append(f"{found} needs trusted_proxies: it counts only from these")
    return problems


def _auth_contradictions(auth: AuthConfig) -> list[str]:
    found = []
    if not auth.audience:
        found.append("[auth] audience must not be empty: clients name it to request a token")
    found += [
        f"[auth] {name} must be at most {_MAX_TOKEN_SECONDS}"
        for name in ("token_seconds", "assertion_token_seconds")
        if getattr(auth, name) > _MAX_TOKEN_SECONDS
    ]
    if auth.secret_days > MAX_SECRET_DAYS:
        found.append(f"[auth] secret_days must be at most {MAX_SECRET_DAYS}")
    return found


def _key_contradictions(storage: Mapping[str, Any], webhooks: Mapping[str, Any]) -> list[str]:
    named = {storage.get("keys_file", ""), webhooks.get("keys_file", "")} - {""}
    if len(named) > 1:
        return ["[webhooks] keys_file is an older name of [storage] keys_file: set only one"]
    return []


def _is_base_url(text: str) -> bool:
    """Return whether links can begin with a text, which is put into headers unchanged."""
    try:
        parts = urlsplit(text)
        return bool(_BASE_URL.fullmatch(text) and parts.hostname and parts.port != 0)
    except ValueError:  # an invalid port or IPv6 address
        return False


def _observation_contradictions(values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    tracing, admin = TracingConfig(**values["tracing"]), AdminConfig(**values["admin"])
    server, metrics = ServerConfig(**values["server"]), MetricsConfig(**values["metrics"])
    console = ConsoleConfig(**values["console"])
    found = [*admin_contradictions(admin), *port_contradictions(server, metrics, admin, console)]
    found += console_contradictions(console)
    development = PluginsConfig(**values["plugins"]).environment == "development"
    if development and AuthConfig(**values["auth"]).environment == "production":
        found.append(
            "[plugins] environment: development writes what exceptions say to the log, and must "
            "not be set where [auth] environment is production"
        )
    if not 0 <= tracing.sample_ratio <= 1:
        found.append("[tracing] sample_ratio must be from 0 to 1")
    if tracing.endpoint and not _is_base_url(tracing.endpoint):
        found.append("[tracing] endpoint must start with http:// or https://, and name a host")
    return found


def port_contradictions(
    server: ServerConfig, metrics: MetricsConfig, admin: AdminConfig, console: ConsoleConfig
) -> list[str]:
    """Return the problems with the ports of metrics, administration and the console."""
    found = []
    last = metrics.port + max(0, server.workers - 1)
    if metrics.port and last > LAST_PORT:
        found.append(f"[metrics] port: the last worker would use {last}, above {LAST_PORT}")
    taken = range(metrics.port, last + 1) if metrics.port else ()
    if metrics.host == server.host and server.port in taken:
        found.append(f"[metrics] port: must differ from that of [server]; {_NEXT_PORT}")
    if admin.port and (admin.host, admin.port) == (server.host, server.port):
        found.append("[admin] port: must differ from that of [server]")
    if metrics.host == admin.host and admin.port in taken:
        found.append(f"[admin] port: must differ from that of [metrics]; {_NEXT_PORT}")
    if metrics.host == console.host and console.port in taken:
        found.append(f"[console] port: must differ from that of [metrics]; {_NEXT_PORT}")
    others = {"server": (server.host, server.port), "admin": (admin.host, admin.port)}
    found += [
        f"[console] port: must differ from that of [{name}]"
        for name, other in others.items()
        if console.port and (console.host, console.port) == other
    ]
    return found
