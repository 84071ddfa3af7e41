"""An entry of allowed networks is read as it is meant, or refused."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.config.allowed_networks import (
    AllowedNetwork,
    parse_allowed_network,
    wrong_allowed_networks,
)
from fhirpub.config.loader import load
from fhirpub.errors import ConfigurationError

LAB = "11111111-1111-4111-8111-111111111111"
CLINIC = "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    ("entry", "network", "ports", "tenants"),
    [
        ("10.1.2.0/24", "10.1.2.0/24", set(), set()),
        ("10.1.2.3/24", "10.1.2.0/24", set(), set()),
        ("10.1.2.3 port=8443", "10.1.2.3/32", {8443}, set()),
        (f"10.1.2.3 tenant={LAB}", "10.1.2.3/32", set(), {LAB}),
        (f"fd00::1 tenant={LAB} port=1 port=65535", "fd00::1/128", {1, 65_535}, {LAB}),
        (f"::ffff:0:0/96  port=9 tenant={LAB}  tenant={CLINIC} port=9", None, {9}, {LAB, CLINIC}),
    ],
)
def test_an_entry_is_a_network_with_its_ports_and_tenants(
    entry: str, network: str | None, ports: set[int], tenants: set[str]
) -> None:
    parsed = parse_allowed_network(entry)

    assert parsed.network == ipaddress.ip_network(network or "::ffff:0:0/96")
    assert (set(parsed.ports), set(parsed.tenants)) == (ports, tenants)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("", "is neither an address nor a network"),
        ("   ", "is neither an address nor a network"),
        ("lis.example", "lis.example is neither an address nor a network"),
        ("10.1.2.3:8443", "nor a network; write a port as port=8443 and a tenant as tenant=ID"),
        ("[fd00::1]:8443", "write a port as port=8443"),
        ("port=8443 10.1.2.3", "10.1.2.3 is neither port=NUMBER nor tenant=ID of a tenant"),
        ("10.1.2.3 8443", "8443 is neither port=NUMBER"),
        ("10.1.2.3 port=", "port= is neither"),
        ("10.1.2.3 port=0", "port=0 is neither"),
        ("10.1.2.3 port=08443", "port=08443 is neither"),
        ("10.1.2.3 port=65536", "port=65536 is neither"),
        ("10.1.2.3 port=\u0663", "port=\u0663 is neither"),
        ("10.1.2.3 port=80-90", "port=80-90 is neither"),
        ("10.1.2.3 ports=80", "ports=80 is neither"),
        ("10.1.2.3 tenant=ID", "tenant=ID is neither"),
        ("10.1.2.3 tenant=", "tenant= is neither"),
        (f"10.1.2.3 tenant={LAB.upper().replace('1', 'A')}", "is neither"),
        (f"10.1.2.3 tenant={LAB};{CLINIC}", "is neither"),
        (f"10.1.2.3 tenant = {LAB}", "tenant is neither"),
    ],
)
def test_an_entry_that_cannot_be_read_opens_nothing_and_says_why(entry: str, words: str) -> None:
    with pytest.raises(ValueError, match="is neither") as refusal:
        parse_allowed_network(entry)

    assert words in str(refusal.value)
    assert wrong_allowed_networks("key", [entry, "10.0.0.1"]) == [f"key: {refusal.value}"]


PORTS = st.integers(1, 65_535)
TENANTS = st.uuids().map(str)
PLACES = st.ip_addresses().flatmap(
    lambda address: st.integers(0, address.max_prefixlen).map(
        lambda length: ipaddress.ip_network((address, length), strict=False)
    )
)


@given(PLACES, st.lists(PORTS), st.lists(TENANTS), st.data())
def test_an_entry_that_is_written_is_read_as_it_was(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
    ports: list[int],
    tenants: list[str],
    data: st.DataObject,
) -> None:
    words = [*(f"port={port}" for port in ports), *(f"tenant={one}" for one in tenants)]
    words = data.draw(st.permutations(words))
    blank = data.draw(st.sampled_from([" ", "  ", "\t"]))

    parsed = parse_allowed_network(blank.join([str(network), *words]))

    assert parsed == AllowedNetwork(network, frozenset(ports), frozenset(tenants))


WORDS = st.one_of(
    st.text(max_size=8),
    st.ip_addresses().map(str),
    st.sampled_from(["port=", "tenant=", "port=80", f"tenant={LAB}", "0.0.0.0/0", "=", "::/0"]),
    PORTS.map(lambda port: f"port={port}"),
    st.text(max_size=8).map(lambda text: f"port={text}"),
    st.text(max_size=40).map(lambda text: f"tenant={text}"),
)


@given(st.lists(WORDS, max_size=4).map(" ".join))
def test_any_text_is_refused_or_each_of_its_words_limits_the_entry(text: str) -> None:
    try:
        parsed = parse_allowed_network(text)
    except ValueError:
        return

    place, *conditions = text.split()
    assert parsed.network == ipaddress.ip_network(place, strict=False)
    assert {f"port={port}" for port in parsed.ports} == {
        word for word in conditions if word.startswith("port=")
    }
    assert {f"tenant={tenant}" for tenant in parsed.tenants} == {
        word for word in conditions if word.startswith("tenant=")
    }
    assert len(parsed.ports) + len(parsed.tenants) == len(set(conditions))


@given(st.sets(PORTS), st.sets(TENANTS), PORTS, TENANTS, st.ip_addresses())
def test_an_entry_applies_where_all_of_its_conditions_hold(
    ports: set[int],
    tenants: set[str],
    port: int,
    tenant: str,
    address: IPv4Address | IPv6Address,
) -> None:
    network = ipaddress.ip_network(address)
    entry = AllowedNetwork(network, frozenset(ports), frozenset(tenants))

    for one in (port, *ports):
        for caller in (tenant, "", *tenants):
            meant = (not ports or one in ports) and (not tenants or caller in tenants)
            assert entry.applies(tenant=caller, port=one) == meant


def test_entries_in_the_environment_are_separated_by_commas() -> None:
    variable = f"10.1.2.0/24, 10.1.2.3 port=8443 tenant={LAB} tenant={CLINIC}"

    config = load(environment={"FHIRPUB_WEBHOOKS__ALLOW_NETWORKS": variable})

    first, second = map(parse_allowed_network, config.webhooks.allow_networks)
    assert [len(field) for field in (first.ports, first.tenants)] == [0, 0]
    assert [set(field) for field in (second.ports, second.tenants)] == [{8443}, {LAB, CLINIC}]


def test_all_entries_that_cannot_be_read_are_named_at_the_start() -> None:
    variable = "10.1.2.3:8443, 10.0.0.1, 10.1.2.3 tenant=ID"

    with pytest.raises(ConfigurationError) as refusal:
        load(environment={"FHIRPUB_WEBHOOKS__ALLOW_NETWORKS": variable})

    problems = str(refusal.value).splitlines()
    assert [problem.partition(": ")[0] for problem in problems] == [
        "[webhooks] allow_networks",
        "[webhooks] allow_networks",
    ]
