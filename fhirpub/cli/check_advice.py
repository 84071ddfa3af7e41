"""What works, but is likely a mistake or unsafe in production: the warnings of `fhirpub check`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, unquote

from fhirpub.app.stores import sqlite_file, uses_mongodb
from fhirpub.config.loader import misspelt_variables
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.runtime.descriptors import (
    RESERVED_DESCRIPTORS,
    raise_descriptor_limit,
    usable_connections,
)

_EXAMPLE = re.compile(r"//([^/:]*\.)?example(\.(com|net|org))?([:/]|$)")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - nothing is bound here
_BESIDE = ("", "-wal", "-shm")
_ACCESS_OF_OTHERS = 0o066
"""Permission of the group and of others to read or to write."""
_WITHOUT_PASSWORD = {"mongodb-x509", "mongodb-aws", "mongodb-oidc", "gssapi"}
"""Mechanisms by which MongoDB identifies a client without a password in the URL."""
_UNVERIFIED = ("tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    level: Literal["ok", "warning", "error"]
    text: str


def advise(config: Config) -> Iterator[Finding]:
    """Yield warnings about settings and about the limits of this process."""
    for variable in misspelt_variables():
        yield _warning("configuration", variable)
    if config.server.host in _EVERYWHERE and not config.server.base_url:
        text = f"[server] base_url is not set: links in responses begin with {config.base_url}"
        yield _warning("configuration", text)
    inside = config.server.host not in _EVERYWHERE
    if config.metrics.port and config.metrics.host in _EVERYWHERE and inside:
        text = f"[metrics] host {config.metrics.host}: readable from all networks without a token"
        yield _warning("configuration", text)
    yield from _descriptors(config)
    if config.auth.environment == "production":
        yield from _production(config)


def _descriptors(config: Config) -> Iterator[Finding]:
    """Compare the connections with the limit of open files, raised as the service raises it."""
    limit, wanted = raise_descriptor_limit(), config.limits.connections
    usable = usable_connections(wanted)
    if usable < wanted:
        needed = wanted + RESERVED_DESCRIPTORS
        text = (
            f"[limits] connections = {wanted}, but the limit of open files ({limit}) allows"
            f" {usable}: set LimitNOFILE={needed} in the unit of systemd, or `ulimit -Hn {needed}`"
            " (a service may have another limit than this shell), or lower the setting"
        )
        yield _warning("configuration", text)


def _production(config: Config) -> Iterator[Finding]:
    base_url, audience = config.server.base_url, config.auth.audience
    if not base_url.startswith("https://"):
        text = "[server] base_url should be the https:// URL that clients use"
        yield _warning("configuration", text)
    elif _EXAMPLE.search(base_url):
        text = f"[server] base_url is still an example: {base_url}"
        yield _warning("configuration", text)
    if audience == AuthConfig().audience or _EXAMPLE.search(audience):
        text = (
            f"[auth] audience is still the default or an example: {audience}: set one of your own"
            " before clients use it, since every client has to name it"
        )
        yield _warning("configuration", text)
    if not config.auth.enforce_scopes:
        text = "[auth] enforce_scopes is not set: every client may do everything for its tenant"
        yield _warning("configuration", text)
    if config.fhir.hash_check != "strict":
        text = "[fhir] hash_check is not strict: a damaged document is accepted"
        yield _warning("configuration", text)
    if uses_mongodb(config):
        yield from _mongodb(config.storage.url)


def _mongodb(url: str) -> Iterator[Finding]:
    """Check how a URL protects the connections; its text, which has the password, is not shown."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    user, _, hosts = place.partition("/")[0].rpartition("@")
    options = {name.lower(): value.lower() for name, value in parse_qsl(query)}
    tls = options.get("tls", options.get("ssl", str(scheme.endswith("+srv")).lower()))
    if tls == "true":
        for name in _UNVERIFIED:
            if options.get(name) == "true":
                text = f"[storage] url: {name} accepts any server in the middle: name a tlsCAFile"
                yield _warning("store", text)
    elif all(map(_is_loopback, hosts.split(","))):
        text = (
            "[storage] url: no TLS, which only loopback addresses may do without: the members"
            " of the set, as rs.conf() names them, must be on this machine, too"
        )
        yield Finding("store", "ok", text)
    else:
        text = (
            "[storage] url: no TLS: reports, signing keys and the password cross the network in"
            " plain text: set up TLS on the servers and add tls=true"
        )
        yield _warning("store", text)
    mechanism = options.get("authmechanism", "")
    if not user.partition(":")[2] and mechanism not in _WITHOUT_PASSWORD:
        text = (
            "[storage] url: no password: every program that reaches the server can read all"
            " reports and sign tokens: turn on access control and create a user for the service"
        )
        yield _warning("store", text)


def _is_loopback(host: str) -> bool:
    name = unquote(host)
    if name.startswith("/"):  # a socket of Unix
        return True
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def advise_on_files(config: Config) -> Iterator[Finding]:
    """Yield warnings about an SQLite store that other users of the machine can read or change."""
    file = sqlite_file(config)
    if file is None:
        return
    for path in (file.parent, *(file.with_name(file.name + end) for end in _BESIDE)):
        mode = path.stat().st_mode if path.exists() else 0
        if mode & _ACCESS_OF_OTHERS:
            text = (
                f"{path} can be read or changed by other users (mode {mode & 0o777:03o}):"
                f" chmod go-rwx {path}"
            )
            yield _warning("store", text)


def _warning(subject: str, text: str) -> Finding:
    return Finding(subject, "warning", text)
