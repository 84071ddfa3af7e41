"""Every setting, its default and its meaning; the only reader of the environment.

A configuration file is TOML with one table for each group below. A variable such as
``FHIRPUB_SERVER__PORT=8080`` overrides the file. ``fhirpub config`` prints the reference.
"""

# ruff: noqa: FBT003, RUF009 - a setting is its default and its meaning, side by side

from __future__ import annotations

import ipaddress
import os
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Literal

from fhirpub.config_reader import checked, described, override, read_toml
from fhirpub.config_reader import setting as _setting
from fhirpub.errors import ConfigurationError

DEFAULT_FILE = "fhirpub.toml"
Environment = Literal["sandbox", "production"]
ENVIRONMENTS: tuple[Environment, ...] = typing.get_args(Environment)
_LAST_PORT = 65_535
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
        "its 413; beyond it the connection is closed.",
    )
    large_bodies_bytes: int = _setting(
        67_108_864,
        "Bodies above 64 KiB that one process takes at the same time, in bytes together. The "
        "next waits for its turn before it is read, for body_seconds at most; then 503. A body "
        "that is larger than this goes alone. Memory for some four times as much is needed.",
    )
    resource_bytes: int = _setting(
        8_388_608, "Largest resource with its parts, without its documents; larger: 413."
    )
    body_seconds: float = _setting(
        30.0,
        "Longest wait for the whole body of a request, and before it for its turn if it is large. "
        "Of a large answer the client must take some within this time, again and again.",
    )
    idle_seconds: float = _setting(60.0, "How long an idle connection is kept.")
    requests_per_client: int = _setting(
        0, "Requests a minute that one client may make before it gets 429; 0: no limit."
    )
    token_failures: int = _setting(
        10, "Failed token requests a minute, for one client_id from one address, before 429."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminologyConfig:
    """Code systems and value sets beyond those that come with the service."""

    value_set_directories: list[str] = _setting(
        [],
        "Folders of FHIR ValueSet and CodeSystem files (*.json); they only ever cause warnings.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksConfig:
    """How integrators are told of what was committed."""

    enabled: bool = _setting(
        True,
        "Tell anybody of anything. If not, events are kept, and told once this is true again.",
    )
    dispatch_in_server: bool = _setting(
        True,
        "Send in the processes of `fhirpub serve`; if not, `fhirpub dispatch` has to run beside.",
    )
    service_name: str = _setting(
        "fhirpub", "First part of the User-Agent, before -Webhooks/1.0: letters, digits, . _ -"
    )
    keys_file: str = _setting(
        "",
        "File of the keys that encrypt the secrets of endpoints, 32 bytes in base64 a line: the "
        "first encrypts, all decrypt. FHIRPUB_WEBHOOK_KEYS in the environment comes first. With "
        "neither, a file is made beside an embedded store, and endpoints on MongoDB are refused.",
    )
    endpoints_per_tenant: int = _setting(100, "Most endpoints that a tenant may have.")
    connect_seconds: float = _setting(
        5.0, "Longest wait for a connection, with the look-up of the name and TLS."
    )
    timeout_seconds: float = _setting(
        15.0, "Longest time of one attempt, from the look-up to the end of the answer."
    )
    retry_seconds: list[float] = _setting(
        [5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0],
        "Waits before the second attempt, the third and so on. Each is made up to a fifth "
        "longer, by chance.",
    )
    retry_forever: bool = _setting(
        False, "Repeat the last wait instead of giving up after the last attempt."
    )
    in_flight: int = _setting(
        200,
        "Attempts that one process makes at the same time. An endpoint takes at most a quarter of "
        "what is still free, and a tenant three quarters of all, so that slow ones leave room.",
    )
    in_flight_per_endpoint: int = _setting(8, "Attempts for one endpoint at the same time.")
    rate_per_endpoint: float = _setting(
        50.0, "Attempts a second for one endpoint; a second's worth may go at once."
    )
    breaker_failures: int = _setting(
        10, "After so many failures in a row an endpoint is left in peace for a while."
    )
    breaker_share: float = _setting(
        0.7, "So is one of which this share failed, of at least ten attempts in five minutes."
    )
    breaker_seconds: float = _setting(
        30.0, "For how long; twice as long each time that the next attempt fails too."
    )
    breaker_seconds_max: float = _setting(900.0, "For how long at most.")
    failing_hours: float = _setting(
        24.0, "After so many hours without one success an endpoint is failing, and it is told."
    )
    give_up_hours: float = _setting(
        120.0, "After so many it is disabled, if there were enough failures."
    )
    give_up_failures: int = _setting(20, "How many are enough.")
    delivered_days: float = _setting(30.0, "How long what was delivered is kept, for the log.")
    dead_days: float = _setting(90.0, "How long what was given up is kept, to be sent again.")
    held_days: float = _setting(
        30.0, "How long deliveries wait for an endpoint that is paused or disabled."
    )
    lease_seconds: float = _setting(
        10.0,
        "When a process has died or hangs, others take over its part of the work after this time.",
    )
    ports: list[int] = _setting([443, 8443], "Ports that may be called.")
    allow_networks: list[str] = _setting(
        [],
        "Special-purpose addresses or networks, such as 10.1.0.0/16, that may be called all the "
        "same; only to these without TLS, and on any port. Loopback, link-local and metadata "
        "addresses are opened only by an entry that lies within their own network.",
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
    if file is not None or path.exists():
        tables = read_toml(path)
    variables = os.environ if environment is None else environment
    problems: list[str] = []
    plugins: dict[str, dict[str, Any]] = {"plugins": tables.get("plugins", {})}
    plugins = checked(plugins, {"plugins": PluginsConfig}, [], source="")
    override(plugins, {"plugins": PluginsConfig}, variables, [])
    groups = _groups(PluginsConfig(**plugins["plugins"]).enabled)
    values = checked(tables, groups, problems, source=str(path))
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


def reference() -> str:
    """Return the reference configuration: every key, commented, with its default."""
    return "\n".join([*_HEAD, *described(_groups(PluginsConfig().enabled))]) + "\n"


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
    if server.port > _LAST_PORT:
        found.append(f"[server] port must be at most {_LAST_PORT}")
    found += _wrong_networks("[server] trusted_proxies", server.trusted_proxies)
    if server.base_url and not server.base_url.startswith(("http://", "https://")):
        found.append("[server] base_url must start with http:// or https://")
    if not 1 <= fhir.page_size <= fhir.page_size_max:
        found.append("[fhir] page_size must be between 1 and page_size_max")
    found += metrics_contradictions(MetricsConfig(**values["metrics"]), server)
    return found + _webhook_contradictions(WebhooksConfig(**values["webhooks"]))


def metrics_contradictions(metrics: MetricsConfig, server: ServerConfig) -> list[str]:
    """Return what is wrong with the ports on which metrics are served."""
    if not metrics.port:
        return []
    last = metrics.port + max(0, server.workers - 1)
    if last > _LAST_PORT:
        return [f"[metrics] port: the last worker's would be {last}, above {_LAST_PORT}"]
    if metrics.host == server.host and metrics.port <= server.port <= last:
        return ["[metrics] port: must not be that of [server]; each worker takes the next one"]
    return []


_ABOVE_NOTHING = (
    *("in_flight", "in_flight_per_endpoint", "rate_per_endpoint", "lease_seconds"),
    *("breaker_failures", "breaker_share", "breaker_seconds", "breaker_seconds_max"),
    *("failing_hours", "give_up_hours", "give_up_failures"),
    *("delivered_days", "dead_days", "held_days"),
)


def _webhook_contradictions(webhooks: WebhooksConfig) -> list[str]:
    found = []
    if not re.fullmatch(r"[A-Za-z0-9._-]+", webhooks.service_name):
        found.append("[webhooks] service_name must be of letters, digits, . _ and -")
    if not 0 < webhooks.connect_seconds <= webhooks.timeout_seconds:
        found.append("[webhooks] connect_seconds must be above 0 and at most timeout_seconds")
    if not webhooks.retry_seconds:
        found.append("[webhooks] retry_seconds must not be empty")
    if not all(1 <= each <= _LAST_PORT for each in webhooks.ports):
        found.append(f"[webhooks] ports must be between 1 and {_LAST_PORT}")
    found += _wrong_networks("[webhooks] allow_networks", webhooks.allow_networks)
    return found + _wrong_limits(webhooks)


def _wrong_networks(key: str, networks: Sequence[str]) -> list[str]:
    found = []
    for each in networks:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            found.append(f"{key}: {each} is neither an address nor a network")
    return found


def _wrong_limits(webhooks: WebhooksConfig) -> list[str]:
    found = [
        f"[webhooks] {name} must be above 0"
        for name in _ABOVE_NOTHING
        if not getattr(webhooks, name) > 0
    ]
    if webhooks.breaker_share > 1:
        found.append("[webhooks] breaker_share must be at most 1")
    return found
