"""Entries of ``[webhooks] allow_networks``: a network, and the ports and tenants it is open to.

An entry is one string, such as ``10.1.2.3 port=8443 tenant=ID``, so that a list of entries is
written alike in TOML and in an environment variable, where commas separate them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from fhirpub.config.reader import LAST_PORT

Network = IPv4Network | IPv6Network

_FORM = "write a port as port=8443 and a tenant as tenant=ID, each after a blank"
_PORT = re.compile("[1-9][0-9]{0,4}")
_TENANT = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """An entry. Without ``ports`` it is open on every port, without ``tenants`` to all of them."""

    network: Network
    ports: frozenset[int] = frozenset()
    tenants: frozenset[str] = frozenset()

    def applies(self, *, tenant: str, port: int) -> bool:
        """Return whether the entry is for an endpoint of this tenant on this port."""
        is_of_tenant = not self.tenants or tenant in self.tenants
        return is_of_tenant and (not self.ports or port in self.ports)


def parse_allowed_network(text: str) -> AllowedNetwork:
    """Parse an entry: an address or a network, then ``port=`` and ``tenant=``, each repeatable.

    Raises ValueError, which names the part that is wrong.
    """
    place, *conditions = text.split() or [text]
    ports, tenants = set[int](), set[str]()
    for condition in conditions:
        name, _, value = condition.partition("=")
        if name == "port" and _PORT.fullmatch(value) and int(value) <= LAST_PORT:
            ports.add(int(value))
        elif name == "tenant" and _TENANT.fullmatch(value):
            tenants.add(value)
        else:
            raise ValueError(f"{condition} is neither port=NUMBER nor tenant=ID of a tenant")
    return AllowedNetwork(_parse_network(place), frozenset(ports), frozenset(tenants))


def wrong_allowed_networks(key: str, entries: Sequence[str]) -> list[str]:
    """Return a message for each entry of a key that cannot be parsed."""
    found = []
    for entry in entries:
        try:
            parse_allowed_network(entry)
        except ValueError as problem:
            found.append(f"{key}: {problem}")
    return found


def _parse_network(place: str) -> Network:
    try:
        return ipaddress.ip_network(place, strict=False)
    except ValueError:
        raise ValueError(f"{place} is neither an address nor a network; {_FORM}") from None
