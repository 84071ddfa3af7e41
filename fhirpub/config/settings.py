"""Every setting, its default and its meaning; the only reader of the environment.

A configuration file is TOML with one table for each group below. A variable such as
``FHIRPUB_SERVER__PORT=8080`` overrides the file. ``fhirpub config`` prints the reference.
"""

# ruff: noqa: FBT003, RUF009 - a setting is its default and its meaning, side by side

from __future__ import annotations

import os
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from fhirpub.config.reader import (
    LAST_PORT,
    check,
    describe,
    override,
    read_toml,
    wrong_networks,
)
from fhirpub.config.reader import setting as _setting
from fhirpub.config.webhooks import WebhooksConfig, webhook_contradictions
from fhirpub.errors import ConfigurationError

DEFAULT_FILE = "fhirpub.toml"
Environment = Literal["sandbox", "production"]
ENVIRONMENTS: tuple[Environment, ...] = typing.get_args(Environment)
_ABOVE_NOTHING = {
    "auth": ("token_seconds",),
    "storage": ("deadline_seconds",),
    "limits": (
        "attachment_bytes",
        "request_bytes",
        "resource_bytes",
        "body_seconds",
        "idle_seconds",
    ),
}
"""What would refuse every request if it were 0."""
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
"""Of a namespace here, as of the system of an identifier, which is to be in it."""
EMPTY_HOST = "must not be empty; 0.0.0.0 is every address of the machine"
_MAX_TOKEN_SECONDS = 36_500 * 86_400
"""A token that lived beyond the year 9999 would be refused."""
_BASE_URL = re.compile(r"https?://[A-Za-z0-9._~:/@!$&'()*+,;=%\[\]-]+")
"""Without query and fragment, of RFC 3986's characters."""
_HEAD = (
    "# Every setting of fhirpub with its default and its meaning.",
    "# Written by `fhirpub config`. A line that starts with `#key` shows a default: take the",
    "# `#` away to change it. FHIRPUB_SERVER__PORT=8080 in the environment overrides",
    "# `port` of [server], and so on for every key.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the service listens and how it calls itself."""

    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on; 0 takes a free one.")
    base_url: str = _setting(
        "",
        "Address by which clients reach the service, such as https://fhir.example.org; used in "
        "Location headers and links, never taken from a request. Empty: http://host:port.",
    )
    workers: int = _setting(1, "Processes that serve. Each has its own event loop.")
    drain_seconds: float = _setting(
        30.0, "Longest wait for requests under way after SIGTERM, before the process ends."
    )
    trusted_proxies: list[str] = _setting(
        [],
        "Addresses or networks of reverse proxies whose X-Forwarded-For is believed. From "
        "everybody else the header is ignored.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """Tokens: who issues them, for whom, for how long."""

    issuer: str = _setting("", "Claim `iss` of the tokens. Empty: the base_url.")
    audience: str = _setting(
        "https://fhirpub.local/fhir",
        "Claim `aud`: clients must name it when they ask for a token.",
    )
    environment: Environment = _setting(
        "sandbox",
        "Credentials and signing keys belong to one environment and are refused in the other.",
    )
    token_seconds: int = _setting(86_400, "How long a token lives.")
    leeway_seconds: int = _setting(
        0, "Tolerance when `exp` and `nbf` are compared with the clock."
    )
    tenant_claim: str = _setting("org_id", "Claim that holds the tenant's id.")
    algorithm: Literal["ES256", "RS256"] = _setting("ES256", "Algorithm of new signing keys.")
    secret_grace_seconds: int = _setting(
        86_400, "How long a client's previous secret still works after `client rotate`."
    )
    enforce_scopes: bool = _setting(
        False, "Demand scopes such as system/DiagnosticReport.cruds; without them 403."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Where everything is kept."""

    url: str = _setting(
        "sqlite:///fhirpub-data/fhirpub.db",
        "sqlite:///relative/path.db, sqlite:////absolute.db, or mongodb://host/database with "
        "?replicaSet=name: a replica set or a sharded cluster, shared by many machines.",
    )
    deadline_seconds: float = _setting(
        10.0,
        "Longest wait for the store; after it the caller gets 503 and may repeat the request.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsConfig:
    """Which resource types are served."""

    enabled: list[str] = _setting(
        ["diagnosticreport"], "Names of plugins, as `fhirpub plugins` lists them."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeConfig:
    """Choices for one resource type, in a group of its name in lower case."""

    state_flow: Literal["open", "clinical"] = _setting(
        "open",
        "open: every status that updates accept may follow every other. clinical: only what "
        "makes sense between people may, such as corrected after final; anything else is a 422.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FhirConfig:
    """Choices that FHIR and the service's specification leave open."""

    metadata_public: bool = _setting(False, "Serve /metadata without a token.")
    default_timezone: str = _setting(
        "UTC", "Zone in which a time without an offset is read (IANA name)."
    )
    hash_check: Literal["warn", "strict", "off"] = _setting(
        "warn",
        "What a document whose hash does not match gets: a warning, a refusal (422), nothing.",
    )
    last_modified_style: Literal["by-route", "http", "specification"] = _setting(
        "by-route",
        "Form of Last-Modified. by-route: YYYY-MM-DDTHH:MM:SS.SSSZ on registration, an HTTP-date "
        "elsewhere.",
    )
    allow_gender_unknown: bool = _setting(False, "Accept Patient.gender = unknown.")
    organization_namespaces: list[str] = _setting(
        [],
        "Identifier systems under which an organization's value must be the tenant's own id; "
        "http and https are one.",
    )
    page_size: int = _setting(20, "Entries of a search page when _count is not given.")
    page_size_max: int = _setting(100, "Most entries of a search page.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """How much is too much."""

    attachment_bytes: int = _setting(
        5_242_880, "Largest document, after base64 decoding; larger: 413."
    )
    request_bytes: int = _setting(33_554_432, "Largest request body; larger: 413.")
    drain_bytes: int = _setting(
        134_217_728,
        "How much of a body that is too large is read and thrown away, so that the client sees "
        "its 413; a still larger one gets it at once, and the connection is closed.",
    )
    large_bodies_bytes: int = _setting(
        67_108_864,
        "Bodies above 64 KiB that one process takes at the same time, in bytes together. The "
        "next waits for its turn before it is read, for body_seconds at most; then 503. A body "
        "that is larger than this goes alone. Memory for some four times as much is needed.",
    )
    large_answers_bytes: int = _setting(
        33_554_432,
        "Resources above 64 KiB, or pages of them, without their documents, that one process "
        "reads, updates or sends at the same time, in bytes together. The next waits for its "
        "turn, for body_seconds at most; then 503. Memory for some four times as much is needed.",
    )
    resource_bytes: int = _setting(
        8_388_608, "Largest resource with its parts, without its documents; larger: 413."
    )
    body_seconds: float = _setting(
        30.0,
        "A body must arrive within this time, else 408. A large one may first wait as long for "
        "its turn, else 503. A client must read some of a large answer at least this often.",
    )
    idle_seconds: float = _setting(
        75.0, "How long an idle connection is kept: longer than a proxy in front keeps it."
    )
    requests_per_client: int = _setting(
        0, "Requests a minute that one client may make of one process before 429; 0: no limit."
    )
    token_failures: int = _setting(
        10,
        "Failed token requests a minute at one process, for one client_id from one address, "
        "before 429.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminologyConfig:
    """Code systems and value sets beyond those that come with the service."""

    value_set_directories: list[str] = _setting(
        [],
        "Folders of FHIR ValueSet and CodeSystem files (*.json); they only ever cause warnings.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsConfig:
    """What is told to the operator. Never a patient's data, never a secret."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Lowest level that is written. debug also tells every request."
    )
    format: Literal["json", "text"] = _setting("text", "One JSON object a line, or plain text.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """What is counted and timed, at GET /metrics in the text format of Prometheus."""

    host: str = _setting(
        "127.0.0.1", "Address to listen on. Nobody is asked for a token: keep it internal."
    )
    port: int = _setting(
        0,
        "Port to listen on, another than that of [server]; 0: they are not served. Of several "
        "workers the first listens here, the second on the next port, and so on.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, in groups. Immutable; made by :func:`load`."""

    server: ServerConfig = field(default_factory=ServerConfig)
    auth: AuthConfig = field(default_factory=AuthConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    fhir: FhirConfig = field(default_factory=FhirConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    terminology: TerminologyConfig = field(default_factory=TerminologyConfig)
    webhooks: WebhooksConfig = field(default_factory=WebhooksConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    by_type: Mapping[str, TypeConfig] = field(default_factory=dict)
    """By the name of an enabled plugin, which is that of its type in lower case."""

    def of_type(self, name: str) -> TypeConfig:
        """Return the choices for a resource type."""
        return self.by_type.get(name.lower(), TypeConfig())

    @property
    def base_url(self) -> str:
        """The address by which clients reach the service, without a slash at its end."""
        if self.server.base_url:
            return self.server.base_url.rstrip("/")
        host = f"[{self.server.host}]" if ":" in self.server.host else self.server.host
        return f"http://{host}:{self.server.port}"

    @property
    def issuer(self) -> str:
        """The claim `iss` of every token."""
        return self.auth.issuer or self.base_url


def load(file: Path | None = None, *, environment: Mapping[str, str] | None = None) -> Config:
    """Return the settings of a file under those of the environment.

    Without ``file``, ``fhirpub.toml`` in the working directory is read if there is one.
    Raises ConfigurationError with every problem in it, one a line.
    """
    path = file or Path(DEFAULT_FILE)
    tables: dict[str, Any] = {}
    # A link that leads nowhere is a file that is missing, not none that was ever meant.
    if file is not None or os.path.lexists(path):
        tables = read_toml(path)
    variables = os.environ if environment is None else environment
    problems: list[str] = []
    plugins: dict[str, dict[str, Any]] = {"plugins": tables.get("plugins", {})}
    plugins = check(plugins, {"plugins": PluginsConfig}, [], source="")
    override(plugins, {"plugins": PluginsConfig}, variables, [])
    groups = _groups(PluginsConfig(**plugins["plugins"]).enabled)
    values = check(tables, groups, problems, source=str(path))
    override(values, groups, variables, problems)
    if not problems:
        problems += _contradictions(values)
    if problems:
        raise ConfigurationError("\n".join(problems))
    made = {name: groups[name](**members) for name, members in values.items()}
    ours = {name: each for name, each in made.items() if groups[name] is not TypeConfig}
    chosen = {name: made[name] for name in made.keys() - ours.keys() if values[name]}
    return Config(**ours, by_type=chosen)


def _groups(enabled: Sequence[str]) -> dict[str, Any]:
    """Return the groups that there are: ours, and one for each enabled plugin."""
    hints = typing.get_type_hints(Config)
    ours = {name: each for name, each in hints.items() if is_dataclass(each)}
    return ours | {name: TypeConfig for name in enabled if name not in ours}


def misspelt_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return what to say of variables that look like settings and are none: one ``_`` lacks."""
    variables = os.environ if environment is None else environment
    settings = [
        (name.upper(), key.upper())
        for name, group in _groups(PluginsConfig().enabled).items()
        for key in typing.get_type_hints(group)
    ]
    return [
        f"FHIRPUB_{group}_{key} is ignored: the setting is FHIRPUB_{group}__{key}, "
        "with two underscores"
        for group, key in settings
        if f"FHIRPUB_{group}_{key}" in variables
    ]


def reference() -> str:
    """Return the reference configuration: every key, commented, with its default."""
    return "\n".join([*_HEAD, *describe(_groups(PluginsConfig().enabled))]) + "\n"


def variable(name: str) -> str:
    """Return a variable that is not a setting, such as a client's secret; empty if unset."""
    return os.environ.get(name, "")


def _contradictions(values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    limits = LimitsConfig(**values["limits"])
    server = ServerConfig(**values["server"])
    fhir = FhirConfig(**values["fhir"])
    found = []
    if limits.drain_bytes < limits.request_bytes:
        found.append("[limits] drain_bytes must not be below request_bytes")
    if server.workers < 1:
        found.append("[server] workers must be at least 1")
    if server.port > LAST_PORT:
        found.append(f"[server] port must be at most {LAST_PORT}")
    found += wrong_networks("[server] trusted_proxies", server.trusted_proxies)
    if not server.host.strip():
        found.append(f"[server] host {EMPTY_HOST}")
    found += _auth_contradictions(AuthConfig(**values["auth"]))
    if server.base_url and not _is_base_url(server.base_url):
        found.append(
            "[server] base_url must start with http:// or https://, name a host, and have no "
            "blank, ? or #, and no letters beyond ASCII: a host is written as xn--…"
        )
    found += [
        f"[{group}] {key} must be above 0"
        for group, keys in _ABOVE_NOTHING.items()
        for key in keys
        if values[group].get(key) == 0
    ]
    found += [
        f"[fhir] organization_namespaces: {each!r} is no absolute URI"
        for each in fhir.organization_namespaces
        if not ABSOLUTE_URI.fullmatch(each)
    ]
    if not 1 <= fhir.page_size <= fhir.page_size_max:
        found.append("[fhir] page_size must be between 1 and page_size_max")
    found += metrics_contradictions(MetricsConfig(**values["metrics"]), server)
    return found + webhook_contradictions(WebhooksConfig(**values["webhooks"]))


def _auth_contradictions(auth: AuthConfig) -> list[str]:
    found = []
    if not auth.audience:
        found.append("[auth] audience must not be empty: nobody could ask for a token")
    if auth.token_seconds > _MAX_TOKEN_SECONDS:
        found.append(f"[auth] token_seconds must be at most {_MAX_TOKEN_SECONDS}")
    return found


def _is_base_url(text: str) -> bool:
    """Return whether links can begin with a text: it goes into headers as it is."""
    try:
        parts = urlsplit(text)
        return bool(_BASE_URL.fullmatch(text) and parts.hostname and parts.port != 0)
    except ValueError:  # a port or an IPv6 address that is none
        return False


def metrics_contradictions(metrics: MetricsConfig, server: ServerConfig) -> list[str]:
    """Return what is wrong with the ports on which metrics are served."""
    if not metrics.port:
        return []
    last = metrics.port + max(0, server.workers - 1)
    if last > LAST_PORT:
        return [f"[metrics] port: the last worker's would be {last}, above {LAST_PORT}"]
    if metrics.host == server.host and metrics.port <= server.port <= last:
        return ["[metrics] port: must not be that of [server]; each worker takes the next one"]
    return []
