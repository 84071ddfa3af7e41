"""Every setting, its default and its meaning; the only reader of the environment.

A configuration file is TOML with one table for each group below. A variable such as
``FHIRPUB_SERVER__PORT=8080`` overrides the file. ``fhirpub config`` prints the reference.
"""

# ruff: noqa: FBT003, RUF009 - a setting is its default and its meaning, side by side

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import math
import os
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fhirpub.errors import ConfigurationError

DEFAULT_FILE = "fhirpub.toml"
_PREFIX = "FHIRPUB_"
_LAST_PORT = 65_535
_WIDTH = 97


def _setting(default: Any, meaning: str) -> Any:
    """Return a dataclass field whose meaning is printed into the reference file."""
    metadata = {"meaning": meaning}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


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
    environment: Literal["sandbox", "production"] = _setting(
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
        "Longest wait for the whole body of a request, and before it for its turn if it is large.",
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
class LogsConfig:
    """What is told to the operator. Never a patient's data, never a secret."""

    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "Lowest level that is written. debug also tells every request."
    )
    format: Literal["json", "text"] = _setting("text", "One JSON object a line, or plain text.")


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
    logs: LogsConfig = field(default_factory=LogsConfig)

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
        tables = _read_toml(path)
    problems: list[str] = []
    values = _checked(tables, problems, source=str(path))
    _override(values, os.environ if environment is None else environment, problems)
    if not problems:
        problems += _contradictions(values)
    if problems:
        raise ConfigurationError("\n".join(problems))
    groups = typing.get_type_hints(Config)
    return Config(**{name: groups[name](**members) for name, members in values.items()})


def reference() -> str:
    """Return the reference configuration: every key, commented, with its default."""
    lines = [
        "# Every setting of fhirpub with its default and its meaning.",
        "# Written by `fhirpub config`. A line that starts with `#key` shows a default: take the",
        "# `#` away to change it. FHIRPUB_SERVER__PORT=8080 in the environment overrides",
        "# `port` of [server], and so on for every key.",
    ]
    for group in dataclasses.fields(Config):
        group_type = typing.get_type_hints(Config)[group.name]
        lines += ["", f"# {group_type.__doc__}", f"[{group.name}]"]
        for member in dataclasses.fields(group_type):
            lines += ["", *_wrapped(member.metadata["meaning"])]
            choices = _choices(typing.get_type_hints(group_type)[member.name])
            if choices:
                lines.append(f"# One of: {', '.join(choices)}.")
            lines.append(f"#{member.name} = {_toml(getattr(group_type(), member.name))}")
    return "\n".join(lines) + "\n"


def without_password(url: str) -> str:
    """Return a store's URL as it may be shown.

    A password that should have been escaped may hold any character: it ends at the last ``@``.
    """
    before, at, after = _SECRET_OPTION.sub(r"\1***", url).rpartition("@")
    user = _USER.match(before)
    if not at or (user and user.end() == len(before)):
        return before + at + after
    return f"{user[0] if user else ''}:***@{after}"


_USER = re.compile("[a-z+]+://[^:]*")
_SECRET_OPTION = re.compile(
    "([?&](?:tlsCertificateKeyFilePassword|authMechanismProperties)=)[^&]*", re.IGNORECASE
)


def variable(name: str) -> str:
    """Return a variable that is not a setting, such as a client's secret; empty if unset."""
    return os.environ.get(name, "")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read: {problem.strerror}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{path}: is not TOML: {problem}") from problem


def _checked(
    tables: Mapping[str, Any], problems: list[str], *, source: str
) -> dict[str, dict[str, Any]]:
    groups = typing.get_type_hints(Config)
    values: dict[str, dict[str, Any]] = {name: {} for name in groups}
    for name, table in tables.items():
        if name not in groups:
            problems.append(f"{source}: unknown group [{name}]{_nearest(name, groups)}")
        elif not isinstance(table, dict):
            problems.append(f"{source}: [{name}] must be a table")
        else:
            hints = typing.get_type_hints(groups[name])
            for key, value in table.items():
                where = f"{source}: {key} in [{name}]"
                _take(values[name], key, value, hints, problems, where=where)
    return values


def _override(
    values: dict[str, dict[str, Any]], environment: Mapping[str, str], problems: list[str]
) -> None:
    groups = typing.get_type_hints(Config)
    for variable, text in sorted(environment.items()):
        name, double, key = variable.removeprefix(_PREFIX).lower().partition("__")
        if not (variable.startswith(_PREFIX) and double):
            continue
        if name not in groups:
            problems.append(f"{variable}: unknown group {name}{_nearest(name, groups)}")
            continue
        hints = typing.get_type_hints(groups[name])
        value = _from_text(text, hints.get(key))
        _take(values[name], key, value, hints, problems, where=variable)


def _take(
    members: dict[str, Any],
    key: str,
    value: Any,
    hints: Mapping[str, Any],
    problems: list[str],
    *,
    where: str,
) -> None:
    if key not in hints:
        problems.append(f"{where}: unknown key{_nearest(key, hints)}")
        return
    problem = _mismatch(value, hints[key])
    if problem:
        problems.append(f"{where}: {problem}")
        return
    members[key] = float(value) if hints[key] is float else value


def _mismatch(value: Any, hint: Any) -> str:
    """Return what is wrong with a value, or nothing."""
    choices = _choices(hint)
    if choices:
        return "" if value in choices else f"must be one of {', '.join(choices)}"
    if isinstance(hint, types.GenericAlias):
        good = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return "" if good else "must be a list of strings"
    if isinstance(value, bool) != (hint is bool):
        return f"must be {_NAMES[hint]}"
    if not isinstance(value, (int, float) if hint is float else hint):
        return f"must be {_NAMES[hint]}"
    if hint is float and not math.isfinite(value):
        return "must be a finite number"
    return "must not be negative" if hint in (int, float) and value < 0 else ""


_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def _from_text(text: str, hint: Any) -> Any:
    """Read a variable's text as the type of its key; what cannot be read stays text."""
    if hint is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            return text
    if isinstance(hint, types.GenericAlias):
        return [each.strip() for each in text.split(",") if each.strip()]
    return text


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
    for each in server.trusted_proxies:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            found.append(f"[server] trusted_proxies: {each} is neither an address nor a network")
    if server.base_url and not server.base_url.startswith(("http://", "https://")):
        found.append("[server] base_url must start with http:// or https://")
    if not 1 <= fhir.page_size <= fhir.page_size_max:
        found.append("[fhir] page_size must be between 1 and page_size_max")
    return found


def _choices(hint: Any) -> tuple[str, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; known are {', '.join(sorted(known))}"


def _wrapped(text: str) -> list[str]:
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return [*lines, line]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(f'"{each}"' for each in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
