"""The networks from which a client may call, and whether an address is in them (D-345)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_NETWORKS = 100
_MAPPED_BITS = 96
"""The bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2)."""


def parse_network(text: str) -> Network:
    """Return the network in the notation of CIDR; an address alone is a network of one.

    One of IPv4-mapped addresses is that of the IPv4 addresses. Raises ValueError.
    """
    rule = f"{text!r} is no network: write 192.0.2.0/24, 2001:db8::/32 or one address"
    if "%" in text:  # a zone, which is a name on one machine alone
        raise ValueError(rule)
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError(rule) from None
    network = interface.network
    if network.network_address != interface.ip:
        raise ValueError(
            f"{text!r} has an address within the network: write {network}, or "
            f"{interface.ip} for this address alone"
        )
    return _unmapped(network)


def wrong_networks(texts: Iterable[str]) -> list[str]:
    """Return a message for each text that is no network."""
    found = []
    for text in texts:
        try:
            parse_network(text)
        except ValueError as problem:
            found.append(str(problem))
    return found


def parse_address(text: str) -> Address | None:
    """Return an address, an IPv4-mapped one as that of IPv4; None if the text is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks; what is no address is in none."""
    parsed = parse_address(address)
    return parsed is not None and any(parsed in network for network in networks)


@lru_cache(maxsize=1024)
def parse_networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """Return networks that were checked before, of a client or of the settings.

    In the settings an address within a network stands for it.
    """
    return tuple(_unmapped(ipaddress.ip_network(text, strict=False)) for text in texts)


def _unmapped(network: Network) -> Network:
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network
