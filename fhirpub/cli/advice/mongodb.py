"""How the URL of a MongoDB store protects the connections. It is not shown: it has a password."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

from fhirpub.cli.advice.finding import Finding, warning

_WITHOUT_PASSWORD = {"mongodb-x509", "mongodb-aws", "mongodb-oidc", "gssapi"}
"""Mechanisms by which MongoDB identifies a client without a password in the URL."""
_UNVERIFIED = ("tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames")


def advise_on_url(url: str) -> Iterator[Finding]:
    """Yield what is wrong with a URL for production."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    user, _, hosts = place.partition("/")[0].rpartition("@")
    options = {name.lower(): value.lower() for name, value in parse_qsl(query)}
    tls = options.get("tls", options.get("ssl", str(scheme.endswith("+srv")).lower()))
    if tls == "true":
        for name in _UNVERIFIED:
            if options.get(name) == "true":
                text = f"[storage] url: {name} accepts any server in the middle: name a tlsCAFile"
                yield warning("store", text)
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
        yield warning("store", text)
    mechanism = options.get("authmechanism", "")
    if not user.partition(":")[2] and mechanism not in _WITHOUT_PASSWORD:
        text = (
            "[storage] url: no password: every program that reaches the server can read all"
            " reports and sign tokens: turn on access control and create a user for the service"
        )
        yield warning("store", text)


def password_in(url: str) -> bool:
    """Return whether a URL of MongoDB contains a password."""
    account, at, _hosts = url.partition("://")[2].partition("/")[0].rpartition("@")
    return bool(at and account.partition(":")[2])


def certificate_in(url: str) -> str:
    """Return the file with the client's private key that a URL names; empty for none."""
    options = {name.lower(): value for name, value in parse_qsl(url.partition("?")[2])}
    return options.get("tlscertificatekeyfile", "")


def _is_loopback(host: str) -> bool:
    name = unquote(host)
    if name.startswith("/"):  # a socket of Unix
        return True
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"
