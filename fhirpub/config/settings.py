"""Every setting with its default and meaning (read by `loader.py`).

A configuration file is TOML with one table for each group below. A variable such as
``FHIRPUB_SERVER__PORT=8080`` overrides the file. ``fhirpub config`` prints the reference.
"""

# ruff: noqa: FBT003, RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fhirpub.config.administration import AdminConfig
from fhirpub.config.audit import AuditConfig
from fhirpub.config.batch import BatchConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.monitoring import LogsConfig, MetricsConfig, TracingConfig
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.plugins import PluginsConfig as PluginsConfig  # noqa: PLC0414 - for others
from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.reader import setting as _setting
from fhirpub.config.retention import RetentionConfig
from fhirpub.config.storage import StorageConfig as StorageConfig  # noqa: PLC0414 - for others
from fhirpub.config.webhooks import WebhooksConfig

DEFAULT_FILE = "fhirpub.toml"
Environment = Literal["sandbox", "production"]
ENVIRONMENTS: tuple[Environment, ...] = typing.get_args(Environment)
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
"""An absolute URI, the form of a namespace here and of an identifier's system."""
EMPTY_HOST = "must not be empty; use 0.0.0.0 for every address of the machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The address on which the service listens, and the address that clients use."""

    host: str = _setting("127.0.0.1", "Address on which the service listens.")
    port: int = _setting(8080, "Port on which the service listens. 0: a free port.")
    base_url: str = _setting(
        "",
        "URL by which clients reach the service, such as https://fhir.example.org. Location "
        "headers and links begin with it; it is never taken from a request. Empty: "
        "http://host:port.",
    )
    workers: int = _setting(1, "Number of processes that serve. Each has its own event loop.")
    drain_seconds: float = _setting(
        30.0, "Maximum time in seconds to finish requests in progress after SIGTERM."
    )
    trusted_proxies: list[str] = _setting(
        [],
        "Addresses or networks of reverse proxies whose X-Forwarded-For header is trusted. From "
        "other addresses the header is ignored.",
    )
    certificate_header: str = _setting(
        "",
        "Header in which a trusted proxy passes on the client's TLS certificate, such as "
        "X-Client-Cert: percent-encoded PEM ($ssl_client_escaped_cert of nginx) or the form of "
        "RFC 9440. A token that is requested with a certificate is accepted only together with it "
        "(RFC 8705). Empty: certificates are not looked at.",
    )
    gzip_requests: bool = _setting(
        True,
        "Accept request bodies with Content-Encoding: gzip, but for token requests. All limits "
        "apply to the decoded bytes, while they are decoded, so that a small body cannot grow "
        "beyond them. If false, such a body gets 415.",
    )
    compress_from_bytes: int = _setting(
        16_384,
        "Least size in bytes of a response that is sent in gzip to clients that accept it. A "
        "smaller one needs one round trip in either form, and compressing costs as much time as "
        "reading. Documents, tokens and secrets are never compressed. 0: nothing is.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """Access tokens: issuer, audience, lifetime, signatures and scopes."""

    issuer: str = _setting("", "Claim `iss` of the tokens. Empty: base_url of [server].")
    audience: str = _setting(
        "https://fhirpub.local/fhir",
        "Claim `aud` of the tokens. Clients must name it when they request a token.",
    )
    environment: Environment = _setting(
        "sandbox",
        "Environment of this service. Credentials and signing keys of the other environment are "
        "refused.",
    )
    token_seconds: int = _setting(
        86_400, "Lifetime in seconds of a token that a client gets for its secret."
    )
    assertion_token_seconds: int = _setting(
        300,
        "Lifetime in seconds of a token that a client gets for an assertion, which it signs with "
        "its private key. SMART App Launch recommends at most 300.",
    )
    leeway_seconds: int = _setting(
        0, "Tolerance in seconds when `exp` and `nbf` are compared with the clock."
    )
    tenant_claim: str = _setting("org_id", "Claim that contains the id of the tenant.")
    algorithm: Literal["ES256", "RS256"] = _setting(
        "ES256", "Signature algorithm of new signing keys."
    )
    secret_grace_seconds: int = _setting(
        86_400,
        "Time in seconds for which a client's previous secret still works after `fhirpub client "
        "rotate`. 0: it is revoked at once.",
    )
    secret_days: int = _setting(
        0,
        "Number of days for which a new secret of a client is valid, unless the command names "
        "another. 0: until it is rotated.",
    )
    enforce_scopes: bool = _setting(
        False,
        "Require scopes such as system/DiagnosticReport.cruds: a request whose token lacks the "
        "scope gets 403. If false, every client may do everything for its tenant.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeConfig:
    """Options of one resource type; the group has the name of the type in lower case."""

    state_flow: Literal["open", "clinical"] = _setting(
        "open",
        "Status changes that an update may make. open: every status that updates accept may "
        "follow every other. clinical: only changes that make clinical sense, such as corrected "
        "after final; others get 422.",
    )
    updatable: list[str] = _setting(
        [],
        "Further elements that an update may name, such as issued, conclusionCode or media of a "
        "DiagnosticReport. The specification allows status, conclusion and presentedForm; any "
        "other element gets 422.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FhirConfig:
    """Options that FHIR and the specification of the service leave open."""

    metadata_public: bool = _setting(False, "Serve /metadata without a token.")
    default_timezone: str = _setting(
        "UTC", "Time zone (IANA name) of times that are sent without an offset."
    )
    hash_check: Literal["warn", "strict", "off"] = _setting(
        "warn",
        "What a document whose hash does not match causes. warn: a warning in the response. "
        "strict: a refusal with 422. off: nothing.",
    )
    empty_values: Literal["refuse", "drop"] = _setting(
        "refuse",
        "What null, an empty text, an empty list or an empty object in a registration causes. "
        "refuse: 400, because the sender may have lost what belongs there. drop: it is left out, "
        "and a warning names each place. An update is always refused: there it could mean that "
        "a value is to be removed.",
    )
    time_forms: Literal["fhir", "lenient"] = _setting(
        "fhir",
        "Forms of times that a registration may have. fhir: those of FHIR; others get 400, "
        "because other receivers of the same data refuse them as well. lenient: a time without "
        "seconds and an offset such as -0300 or -03, too; they are stored in FHIR's form, with a "
        "warning.",
    )
    other_content: Literal["replay", "conflict"] = _setting(
        "replay",
        "What a registration gets whose identifier is registered with other content. replay: the "
        "first response, with the header Idempotent-Content: different. conflict: a refusal with "
        "409. Both are logged and counted.",
    )
    last_modified_style: Literal["by-route", "http", "specification"] = _setting(
        "by-route",
        "Form of the Last-Modified header. http: an HTTP date. specification: "
        "YYYY-MM-DDTHH:MM:SS.SSSZ. by-route: as specification for registrations, as http for the "
        "rest.",
    )
    allow_gender_unknown: bool = _setting(False, "Accept the value unknown in Patient.gender.")
    organization_namespaces: list[str] = _setting(
        [],
        "Identifier systems in which the value of an organization must be the id of the tenant. "
        "http and https count as equal.",
    )
    page_size: int = _setting(20, "Number of entries on a search page without _count.")
    page_size_max: int = _setting(100, "Maximum number of entries on a search page.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """Limits of sizes, times and rates."""

    attachment_bytes: int = _setting(
        5_242_880,
        "Maximum size of a document in bytes, after base64 decoding. A larger one gets 413.",
    )
    request_bytes: int = _setting(
        33_554_432, "Maximum size of a request body in bytes. A larger one gets 413."
    )
    drain_bytes: int = _setting(
        134_217_728,
        "Maximum size in bytes of a too large body that is read and discarded, so that the client "
        "sees its 413. A still larger body gets 413 at once, and the connection is closed.",
    )
    compute_processes: int = _setting(
        2,
        "Processes that each worker may start to validate and serialize what is dense (more than "
        "about 2,000 values) or very large (above 2 MiB, not counting documents of registrations "
        "in JSON), so that the event loop stays free. They start when needed and end after 30 "
        "idle seconds; each takes about 100 MiB. A tenant uses at most all but one. With 0, "
        "threads do this work, and a tenant can slow down others.",
    )
    large_bodies_bytes: int = _setting(
        67_108_864,
        "Memory budget of one process, in bytes, for request bodies above 64 KiB. When it is "
        "exhausted, the next body waits before it is read, for at most body_seconds, and then "
        "gets 503. A body larger than the budget is processed alone. About four times this much "
        "memory is needed.",
    )
    large_answers_bytes: int = _setting(
        33_554_432,
        "Memory budget of one process, in bytes, for resources above 64 KiB, and pages of them, "
        "that are read, updated or sent; documents do not count. When it is exhausted, the next "
        "request waits for at most body_seconds, and then gets 503. About four times this much "
        "memory is needed.",
    )
    resource_bytes: int = _setting(
        8_388_608,
        "Maximum size in bytes of a resource with its parts, without its documents. A larger one "
        "gets 413.",
    )
    body_seconds: float = _setting(
        30.0,
        "Time in seconds within which a body must arrive; otherwise it gets 408. A large body may "
        "first wait for its turn for as long, and then gets 503. A client that reads nothing of a "
        "large response for this time is disconnected.",
    )
    idle_seconds: float = _setting(
        75.0,
        "Time in seconds after which an idle connection is closed. It should be longer than the "
        "idle time of a proxy in front.",
    )
    head_seconds: float = _setting(
        15.0,
        "Time in seconds within which the line and the headers of a request must arrive after "
        "their first byte; otherwise the request gets 408.",
    )
    connections: int = _setting(
        4096,
        "Maximum number of open connections of one process. The connections that have waited "
        "longest for a request are closed for new ones; if none waits, a new one gets 503. "
        "256 file descriptors are kept for other purposes, so that a low limit of open files "
        "(ulimit -n) lowers this number.",
    )
    connections_per_address: int = _setting(
        512,
        "Maximum number of open connections of one process from one address, treated in the "
        "same way. Addresses in [server] trusted_proxies are exempt. 0: no limit.",
    )
    requests_per_client: int = _setting(
        0,
        "Requests per minute that one client may send to one process before it gets 429. 0: no "
        "limit. client_requests_per_minute in [quotas] counts over all processes.",
    )
    search_values: int = _setting(
        1_000,
        "Maximum number of values in a search, over all of its parameters. More get 422 "
        "too-costly.",
    )
    search_seconds: float = _setting(
        4.0,
        "Maximum time in seconds for which the store works on a search, at most 0.4 times "
        "deadline_seconds of [storage]. After it the client gets 422 too-costly. With SQLite a "
        "search also ends after the number of steps that an idle machine makes in half of it.",
    )
    token_failures: int = _setting(
        10,
        "Failed token requests per minute, with one client_id from one address to one process, "
        "before they get 429. 0: no limit.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminologyConfig:
    """Code systems and value sets in addition to those that come with the service."""

    value_set_directories: list[str] = _setting(
        [],
        "Folders of FHIR ValueSet and CodeSystem files (*.json). Codes that they do not contain "
        "cause warnings, never a refusal.",
    )
    assume: list[str] = _setting(
        [],
        "Code systems whose codes are taken for correct, such as http://loinc.org: no remark says "
        "that a code of theirs is unchecked or unknown. By default every unchecked code is "
        "reported, because a sender would otherwise take it for checked.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, in groups. Immutable; created by :func:`load`."""

    server: ServerConfig = field(default_factory=ServerConfig)
    auth: AuthConfig = field(default_factory=AuthConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    fhir: FhirConfig = field(default_factory=FhirConfig)
    patients: PatientsConfig = field(default_factory=PatientsConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    quotas: QuotasConfig = field(default_factory=QuotasConfig)
    terminology: TerminologyConfig = field(default_factory=TerminologyConfig)
    webhooks: WebhooksConfig = field(default_factory=WebhooksConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    admin: AdminConfig = field(default_factory=AdminConfig)
    console: ConsoleConfig = field(default_factory=ConsoleConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)
    by_type: Mapping[str, TypeConfig] = field(default_factory=dict)
    """The options of each type, by the name of its plugin: the type in lower case."""

    by_plugin: Mapping[str, Any] = field(default_factory=dict)
    """The settings of plugins that have some of their own set, by the name of the plugin."""

    def of_type(self, name: str) -> TypeConfig:
        """Return the options of a resource type."""
        return self.by_type.get(name.lower(), TypeConfig())

    @property
    def base_url(self) -> str:
        """The URL by which clients reach the service, without a slash at its end."""
        if self.server.base_url:
            return self.server.base_url.rstrip("/")
        host = f"[{self.server.host}]" if ":" in self.server.host else self.server.host
        return f"http://{host}:{self.server.port}"

    @property
    def issuer(self) -> str:
        """The claim `iss` of every token."""
        return self.auth.issuer or self.base_url
