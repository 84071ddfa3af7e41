"""Where webhooks may be sent: never to a private network, unless the operator allows it.

A URL is checked when it is registered; every address is checked again when it is dialled, because
a name may resolve to another one by then (D-172 to D-174, D-281).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import idna

from fhirpub.config.allowed_networks import Network, parse_allowed_network
from fhirpub.config.reader import LAST_PORT
from fhirpub.errors import InvalidContent
from fhirpub.problems import OperationProblem

Address = IPv4Address | IPv6Address

MAX_URL_LENGTH = 2048

_URL = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f/?#@:%\\\[\]]+)"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<rest>(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?)"
)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_HOST_LENGTH = 253
_USUAL_PORTS = {"https": 443, "http": 80}

# IANA's registries of special-purpose addresses, multicast, and what has no purpose yet. Python's
# own `is_global` lets some of them pass. 64:ff9b::/96 is missing on purpose: networks without IPv4
# reach any host through it, so the embedded address is checked.
_SPECIAL = tuple(
    ipaddress.ip_network(name)
    for name in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared behind carriers' translators
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform
        "169.254.0.0/16",  # link-local, metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "::/3",  # loopback, IPv4-mapped and -compatible, discard-only, local NAT64, unassigned
        "2001::/23",  # protocol assignments, Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
        "4000::/2",  # segment routing, unassigned
        "8000::/1",  # private, link-local, site-local, multicast, unassigned
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")

# These are opened only by an entry that lies in them: a wide entry does not mean them.
_GUARDED = tuple(
    ipaddress.ip_network(name)
    for name in (
        "100.100.100.200/32",  # metadata: Alibaba
        "168.63.129.16/32",  # Azure's platform
        "169.254.169.254/32",  # metadata: most clouds
        "169.254.170.2/32",  # credentials of containers: AWS
        "192.0.0.192/32",  # metadata: Oracle
        "fd00:ec2::254/128",  # metadata: AWS
        "fd20:ce::254/128",  # metadata: Google
        "0.0.0.0/8",  # this machine, where an operating system takes it so
        "127.0.0.0/8",
        "169.254.0.0/16",
        "::/128",
        "::1/128",
        "fe80::/10",
    )
)

_EMBEDDING = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated
    _NAT64,
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a network's own
)
_LOOPBACK = int(IPv6Address("::1"))
_TEREDO = IPv6Network("2001::/32")
_6TO4 = IPv6Network("2002::/16")
_ISATAP = 0x5EFE
_ISATAP_MASK = 0xFDFF_FFFF  # the bit that marks a global IPv4 address


@dataclass(frozen=True, slots=True)
class Target:
    """Where an endpoint is. ``url`` is in its one canonical form, ``host`` without brackets.

    ``tenant`` owns the endpoint. If it is empty, no entry for particular tenants applies.
    """

    url: str
    host: str
    port: int
    tls: bool
    tenant: str = ""


class TargetRules:
    """The operator's rules: special networks that are open, and the ports of all others.

    An entry of ``allow_networks`` opens its addresses, on its ports and to its tenants if it names
    any, with and without TLS. All other addresses must be public and are called by TLS on one of
    ``ports``.
    """

    def __init__(
        self, *, allow_networks: Iterable[str] = (), ports: Iterable[int] = (443,)
    ) -> None:
        self._entries = tuple(parse_allowed_network(entry) for entry in allow_networks)
        self._ports = frozenset(ports)

    def target(self, url: str, *, tenant: str) -> Target:
        """Return a URL that a tenant may register, in canonical form.

        Raises InvalidContent with the place ``url``. A host that is a name still has to resolve to
        an address that is permitted.
        """
        _refuse_long(url)
        match = _URL.fullmatch(url)
        if match is None:
            raise refuse_url(
                "must be an absolute https URL in ASCII, without user, password and fragment"
            )
        scheme = match["scheme"].lower()
        usual = _USUAL_PORTS[scheme]
        target = _target(
            _canonical_host(match["host"].lower()),
            scheme=scheme,
            port=int(match["port"] or usual),
            rest=match["rest"],
            tenant=tenant,
        )
        _refuse_long(
            target.url
        )  # it may have one more slash, and is checked again before each request
        if not 0 < target.port <= LAST_PORT:
            raise refuse_url(f"has a port that is not between 1 and {LAST_PORT}")
        self._refuse_impossible(target)
        return target

    def permits(self, address: str, target: Target) -> bool:
        """Return whether an address that ``target`` resolved to may be dialled."""
        forms, opened = _forms_of(address), self._opened_for(target)
        if all(_is_allowed(form, opened) for form in forms):
            return True
        return self._is_usual(target) and all(
            not _is_special(form) or _is_allowed(form, opened) for form in forms
        )

    def needs_entry(self, address: str, target: Target) -> bool:
        """Return whether an address is permitted, if at all, only by an entry (D-282)."""
        return not self._is_usual(target) or any(map(_is_special, _forms_of(address)))

    def _opened_for(self, target: Target) -> list[Network]:
        return [
            entry.network
            for entry in self._entries
            if entry.applies(tenant=target.tenant, port=target.port)
        ]

    def _is_usual(self, target: Target) -> bool:
        """Return whether a public address may be called in this way."""
        return target.tls and target.port in self._ports

    def _refuse_impossible(self, target: Target) -> None:
        """Refuse what no address could make good."""
        if _is_address(target.host):
            if not self.permits(target.host, target):
                raise refuse_url("names an address, a port or a scheme to which nothing is sent")
        elif self._is_usual(target) or self._opened_for(target):
            return
        elif not target.tls:
            raise refuse_url("must begin with https://")
        else:
            known = ", ".join(str(port) for port in sorted(self._ports))
            raise refuse_url(f"must have one of the ports {known}")


def _refuse_long(url: str) -> None:
    if len(url) > MAX_URL_LENGTH:
        raise refuse_url(f"has more than {MAX_URL_LENGTH} characters")


def _target(host: str, *, scheme: str, port: int, rest: str, tenant: str) -> Target:
    place = f"[{host}]" if ":" in host else host
    if port != _USUAL_PORTS[scheme]:
        place = f"{place}:{port}"
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(f"{scheme}://{place}{path}", host, port, scheme == "https", tenant)


def _canonical_host(host: str) -> str:
    """Return a name in ASCII and lower case, or an address in its usual form."""
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except ValueError:
            raise refuse_url("has a host that is no IPv6 address") from None
    if not host.isascii():
        host = _to_ascii(host)
    labels = host.split(".")
    if len(host) > _MAX_HOST_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise refuse_url("has a host that is no canonical name")
    if _NUMBER.fullmatch(labels[-1]) and not _is_address(host):
        raise refuse_url("has a host that is neither a name nor a canonical IPv4 address")
    return host


def _to_ascii(host: str) -> str:
    try:
        return idna.encode(host, uts46=True).decode()
    except UnicodeError:
        raise refuse_url("has a host that is no internationalized name") from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_allowed(address: Address, opened: Iterable[Network]) -> bool:
    guard = next((item for item in _GUARDED if address in item), None)
    return any(address in item and (guard is None or _lies_in(item, guard)) for item in opened)


def _is_special(address: Address) -> bool:
    return address not in _NAT64 and any(address in item for item in _SPECIAL)


def _lies_in(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


def _forms_of(address: str) -> tuple[Address, ...]:
    return tuple(_forms(ipaddress.ip_address(address.partition("%")[0])))


def _forms(address: Address) -> Iterator[Address]:
    """Return the address and every IPv4 address that it is a wrapping of."""
    yield address
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if number > _LOOPBACK and any(address in i_pv6_network for i_pv6_network in _EMBEDDING):
        yield IPv4Address(number & 0xFFFF_FFFF)
    if address in _6TO4:
        yield IPv4Address(number >> 80 & 0xFFFF_FFFF)
    if address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFF_FFFF)  # the server
        yield IPv4Address(~number & 0xFFFF_FFFF)  # the client
    if number >> 32 & _ISATAP_MASK == _ISATAP:
        yield IPv4Address(number & 0xFFFF_FFFF)


def refuse_url(rule: str) -> InvalidContent:
    """Return the refusal of an address."""
    problem = OperationProblem.ENDPOINT_URL_REFUSED
    return InvalidContent.because(rule, expression="url", code="value", details=problem)
