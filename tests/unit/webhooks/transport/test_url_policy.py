"""Webhooks reach only outside addresses, however an address is written."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.errors import InvalidContent
from fhirpub.webhooks.transport.url_policy import MAX_URL_LENGTH, Target, TargetRules

LAB = "11111111-1111-4111-8111-111111111111"
CLINIC = "22222222-2222-4222-8222-222222222222"
RULES = TargetRules(ports=[443, 8443])
HTTPS = Target("https://hooks.example/", "hooks.example", 443, tls=True)
HTTP = Target("http://hooks.example:9000/", "hooks.example", 9000, tls=False)

INSIDE_V4 = (
    "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.8.9.1 "
    "168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.8 "
    "192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1 "
    "198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 "
    "255.255.255.255"
).split()
INSIDE_V6 = (
    ":: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 "
    "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 100:0:0:1::1 "
    "2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 "
    "2002:7f00:1:: 2002:a9fe:a9fe:: 2002:808:808:: 2620:4f:8000::1 3fff::1 4000::1 5f00::1 "
    "8000::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 "
    "2a00:1450::5efe:127.0.0.1 2a00:1450::200:5efe:169.254.169.254 fe80::1%lo"
).split()
OUTSIDE = (
    "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 "
    "126.255.255.255 128.0.0.0 168.63.129.15 169.253.255.255 172.15.255.255 172.32.0.0 "
    "191.255.255.255 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255 "
    "2000::1 2001:200::1 2003::1 2606:4700:4700::1111 2a00:1450:4001:81b::200e 3ffe::1 "
    "64:ff9b::8.8.8.8 2a00:1450::5efe:8.8.8.8"
).split()


def refused(url: str, rules: TargetRules = RULES) -> str:
    with pytest.raises(InvalidContent) as refusal:
        rules.target(url, tenant=LAB)
    (issue,) = refusal.value.issues
    assert (issue.expression, issue.code) == ("url", "value")
    return issue.diagnostics


# Addresses


@pytest.mark.parametrize("address", INSIDE_V4 + INSIDE_V6)
def test_an_address_inside_is_refused(address: str) -> None:
    assert not RULES.permits(address, HTTPS)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_permitted(address: str) -> None:
    assert RULES.permits(address, HTTPS)


V4_INSIDE = st.sampled_from(INSIDE_V4).map(IPv4Address)
V4_ANY = st.ip_addresses(v=4)


def v6(number: int) -> str:
    return str(IPv6Address(number))


WRAPPINGS: dict[str, Callable[[int, int], int]] = {
    "compatible": lambda inner, _other: inner,
    "mapped": lambda inner, _other: 0xFFFF << 32 | inner,
    "translated": lambda inner, _other: 0xFFFF << 48 | inner,
    "NAT64": lambda inner, _other: 0x64FF9B << 96 | inner,
    "local NAT64": lambda inner, _other: 0x64FF9B0001 << 80 | inner,
    "6to4": lambda inner, other: 0x2002 << 112 | inner << 80 | other,
    "Teredo's server": lambda inner, other: 0x20010000 << 96 | inner << 64 | other,
    "Teredo's client": lambda inner, other: 0x20010000 << 96 | other << 64 | inner ^ 0xFFFFFFFF,
    "ISATAP": lambda inner, other: (0x2A00 << 48 | other) << 64 | 0x5EFE << 32 | inner,
    "global ISATAP": lambda inner, other: (0x2A00 << 48 | other) << 64 | 0x2005EFE << 32 | inner,
}


@pytest.mark.parametrize("port", [65_536, 99_999])
def test_a_port_that_there_is_not_is_refused(port: int) -> None:
    rules = TargetRules(allow_networks=["127.0.0.0/8"])

    with pytest.raises(InvalidContent, match="port"):
        rules.target(f"http://127.0.0.1:{port}/", tenant=LAB)


@given(V4_INSIDE, V4_ANY, st.sampled_from(sorted(WRAPPINGS)))
def test_an_address_inside_is_refused_in_every_wrapping(
    inner: IPv4Address, other: IPv4Address, wrapping: str
) -> None:
    wrapped = WRAPPINGS[wrapping](int(inner), int(other))

    assert not RULES.permits(v6(wrapped), HTTPS)
    assert not TargetRules(allow_networks=["::/0"]).permits(v6(wrapped), HTTPS)


@given(st.ip_addresses())
def test_nothing_is_permitted_that_python_knows_not_to_be_global(
    address: IPv4Address | IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast:
        assert not RULES.permits(str(address), HTTPS)


@pytest.mark.parametrize(
    "target", [HTTP, Target("", "", 443, tls=False), Target("", "", 22, tls=True)]
)
def test_a_public_address_needs_tls_and_one_of_the_ports(target: Target) -> None:
    assert not RULES.permits("8.8.8.8", target)


# Exceptions by the operator


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("10.1.0.0/16", "10.1.2.3"),
        ("0.0.0.0/0", "10.1.2.3"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.0/8", "127.9.9.9"),
        ("::1", "::1"),
        ("169.254.0.0/16", "169.254.1.1"),
        ("169.254.169.254/32", "169.254.169.254"),
        ("fd00::/8", "fd12::1"),
        ("fe80::/10", "fe80::1%lo"),
        ("93.184.215.0/24", "93.184.215.14"),
    ],
)
def test_an_entry_opens_its_addresses_on_any_port_and_without_tls(
    entry: str, address: str
) -> None:
    rules = TargetRules(allow_networks=[entry])

    assert rules.permits(address, HTTPS)
    assert rules.permits(address, HTTP)


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("10.1.0.0/16", "10.2.0.1"),
        ("0.0.0.0/0", "127.0.0.1"),
        ("0.0.0.0/0", "169.254.1.1"),
        ("0.0.0.0/0", "168.63.129.16"),
        ("100.64.0.0/10", "100.100.100.200"),
        ("169.254.0.0/16", "169.254.169.254"),
        ("192.0.0.0/24", "192.0.0.192"),
        ("::/0", "::1"),
        ("::/0", "fe80::1"),
        ("fd00::/8", "fd00:ec2::254"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("0.0.0.0/0", "0.0.0.0"),
        ("::/0", "::"),
        ("::/0", "::ffff:10.0.0.1"),
    ],
)
def test_a_wide_entry_does_not_mean_loopback_link_local_or_metadata(
    entry: str, address: str
) -> None:
    assert not TargetRules(allow_networks=[entry]).permits(address, HTTPS)


def test_addresses_that_no_entry_names_are_checked_as_before() -> None:
    rules = TargetRules(allow_networks=["10.0.0.0/8"], ports=[443])

    assert rules.permits("8.8.8.8", HTTPS)
    assert not rules.permits("8.8.8.8", HTTP)
    assert not rules.permits("192.168.0.1", HTTPS)


# What the operator opens to some


def target_of(tenant: str, *, port: int = 443, tls: bool = True) -> Target:
    return Target("https://hooks.example/", "hooks.example", port, tls=tls, tenant=tenant)


ENTRIES = [
    "10.1.0.0/24 tenant=" + LAB,
    "10.2.0.0/24 port=9000 port=9001",
    "10.3.0.1 port=9000 tenant=" + LAB + " tenant=" + CLINIC,
    "fd12::/16 port=9000 tenant=" + LAB,
]


@pytest.mark.parametrize(
    ("address", "tenant", "port", "permitted"),
    [
        ("10.1.0.1", LAB, 22, True),
        ("10.1.0.1", CLINIC, 22, False),
        ("10.1.0.1", "", 22, False),
        ("10.2.0.1", CLINIC, 9000, True),
        ("10.2.0.1", "", 9001, True),
        ("10.2.0.1", CLINIC, 9002, False),
        ("10.3.0.1", LAB, 9000, True),
        ("10.3.0.1", CLINIC, 9000, True),
        ("10.3.0.1", CLINIC, 9001, False),
        ("10.3.0.1", "", 9000, False),
        ("10.3.0.2", LAB, 9000, False),
        ("fd12::1", LAB, 9000, True),
        ("fd12::1", CLINIC, 9000, False),
        ("::ffff:10.2.0.1", CLINIC, 9000, False),
    ],
)
@pytest.mark.parametrize("tls", [True, False])
def test_an_entry_opens_its_addresses_on_its_ports_to_its_tenants(
    address: str, tenant: str, port: int, *, tls: bool, permitted: bool
) -> None:
    rules = TargetRules(allow_networks=ENTRIES, ports=[443, 22, 9000, 9001, 9002])

    assert rules.permits(address, target_of(tenant, port=port, tls=tls)) == permitted


def test_a_mapped_address_needs_an_entry_for_each_of_its_forms_on_the_port() -> None:
    both = ["::ffff:10.2.0.0/120 port=9000", "10.2.0.0/24 port=9000 tenant=" + LAB]
    rules = TargetRules(allow_networks=both)

    assert rules.permits("::ffff:10.2.0.1", target_of(LAB, port=9000))
    assert not rules.permits("::ffff:10.2.0.1", target_of(CLINIC, port=9000))
    assert not rules.permits("::ffff:10.2.0.1", target_of(LAB, port=443))


def test_an_entry_for_a_tenant_does_not_mean_loopback_unless_it_lies_there() -> None:
    rules = TargetRules(
        allow_networks=["0.0.0.0/0 tenant=" + LAB, "127.0.0.1 port=9000 tenant=" + CLINIC]
    )

    assert not rules.permits("127.0.0.1", target_of(LAB, port=9000))
    assert not rules.permits("169.254.169.254", target_of(LAB))
    assert rules.permits("127.0.0.1", target_of(CLINIC, port=9000))


def test_what_is_open_to_one_tenant_can_be_registered_by_that_one_only() -> None:
    rules = TargetRules(allow_networks=["10.3.0.1 port=9000 tenant=" + LAB])

    for host in ("10.3.0.1", "lis.example"):
        url = f"http://{host}:9000/"
        assert rules.target(url, tenant=LAB).tenant == LAB
        for tenant, refused_url in ((CLINIC, url), (LAB, f"http://{host}:9001/")):
            with pytest.raises(InvalidContent):
                rules.target(refused_url, tenant=tenant)


@given(
    address=st.sampled_from([*INSIDE_V4, *INSIDE_V6, *OUTSIDE]),
    port=st.sampled_from([22, 443, 9000]),
    tls=st.booleans(),
    ports=st.sets(st.sampled_from([22, 443, 9000])),
    tenants=st.sets(st.sampled_from([LAB, CLINIC])),
)
def test_an_entry_with_conditions_opens_what_it_opens_without_them_where_they_hold(
    address: str, port: int, *, tls: bool, ports: set[int], tenants: set[str]
) -> None:
    words = [*(f"port={one}" for one in ports), *(f"tenant={one}" for one in tenants)]
    place = address.partition("%")[0]
    target = target_of(LAB, port=port, tls=tls)
    holds = (not ports or port in ports) and (not tenants or LAB in tenants)
    meant = TargetRules(allow_networks=[place] if holds else [])

    rules = TargetRules(allow_networks=[" ".join([place, *words])])

    assert rules.permits(address, target) == meant.permits(address, target)


@pytest.mark.parametrize(
    ("address", "target", "needed"),
    [
        ("8.8.8.8", target_of(LAB), False),
        ("8.8.8.8", target_of(LAB, tls=False), True),
        ("8.8.8.8", target_of(LAB, port=22), True),
        ("10.0.0.1", target_of(LAB), True),
        ("::ffff:8.8.8.8", target_of(LAB), True),
        ("64:ff9b::8.8.8.8", target_of(LAB), False),
        ("64:ff9b::10.0.0.1", target_of(LAB), True),
    ],
)
def test_an_address_that_only_an_entry_permits_is_known_as_such(
    address: str, target: Target, *, needed: bool
) -> None:
    everything = TargetRules(allow_networks=["0.0.0.0/0", "::/0"], ports=[443, 8443])

    assert everything.needs_entry(address, target) == needed
    assert RULES.permits(address, target) == (not needed)


# URLs


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://Hooks.Example.ORG", "https://hooks.example.org/"),
        ("HTTPS://hooks.example.org:443/a", "https://hooks.example.org/a"),
        ("https://hooks.example.org:8443/a/%2F?b=c&d=/?", None),
        ("https://hooks.example.org?x=1", "https://hooks.example.org/?x=1"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://93.184.215.14/", None),
        ("https://[2606:4700:4700:0:0::1111]/", "https://[2606:4700:4700::1111]/"),
        ("https://a-b.c1.example/../x;y=(1)", None),
    ],
)
def test_a_url_has_one_canonical_form(url: str, canonical: str | None) -> None:
    target = RULES.target(url, tenant=LAB)

    assert target.url == (canonical or url)
    assert RULES.target(target.url, tenant=LAB) == target


@pytest.mark.parametrize("beginning", ["https://hooks.example.org?", "https://bücher.example/"])
def test_a_url_that_would_be_too_long_in_its_canonical_form_is_refused(beginning: str) -> None:
    assert refused(beginning.ljust(MAX_URL_LENGTH, "a")) == "has more than 2048 characters"


@pytest.mark.parametrize(
    "url",
    [
        *("", "hooks.example.org", "//hooks.example.org/", "/webhook", "https:/a.example/"),
        *("ftp://a.example/", "file:///etc/passwd", "gopher://a.example/", "javascript:alert(1)"),
        *("https://user@a.example/", "https://user:pw@a.example/", "https://@a.example/"),
        *("https://a.example/#f", "https://a.example#", "https://a.example\\@b.example/"),
        *("https://a.example /", " https://a.example/", "https://a.example/\n", "https://a\t.b/"),
        *("http\u017f://a.example/", "https://a.example/\u017f", "https://a.example/\u212a"),
        *("https://a.example/a b", "https://a.example/ñ", "https://a.example/%zz"),
        *("https://a.example/\r\nHost: b", "https://a.example:/", "https://a.example:0443/"),
        *("https://a.example:99999999/", "https://[::1%25lo]/", "https://[v1.a]/", "https://[]/"),
        *("https://a%2eexample/", "https://127.0.0.1%00.a.example/", "https://:443/", "https://"),
    ],
)
def test_what_is_no_plain_absolute_url_is_refused(url: str) -> None:
    assert refused(url) == (
        "must be an absolute https URL in ASCII, without user, password and fragment"
    )


@pytest.mark.parametrize(
    "host",
    [
        *("a.example.", ".a.example", "a..example", "-a.example", "a-.example", "a_b.example"),
        *(f"{'a' * 64}.example", ".".join(["a" * 60] * 5), "a,b.example", "*.example", "a'b"),
        *("\u2024.example", "a\u3002", "xn--\u00fc.example", "\u200b", "a\u2028b.example"),
    ],
)
def test_a_host_that_is_no_canonical_name_is_refused(host: str) -> None:
    assert refused(f"https://{host}/").startswith("has a host that is no")


@pytest.mark.parametrize(
    "host",
    [
        *(
            "2130706433",
            "127.1",
            "127.0.1",
            "0177.0.0.1",
            "0x7f.1",
            "0x7f000001",
            "0",
            "1.2.3.4.5",
        ),
        *("127.0.0.01", "256.1.1.1", "0x", "a.0x1", "a.example.1", "017700000001"),
    ],
)
def test_a_number_that_some_would_read_as_an_address_is_refused(host: str) -> None:
    assert refused(f"https://{host}/") == (
        "has a host that is neither a name nor a canonical IPv4 address"
    )


def spellings(address: IPv4Address) -> list[str]:
    """Return the ways in which C libraries, browsers and people write an IPv4 address."""
    number, parts = int(address), address.packed
    low = number & 0xFFFF
    decimal = [str(part) for part in parts]
    wide = str(address).translate(
        {ord(character): ord(character) + 0xFEE0 for character in "0123456789"}
    )
    return [
        str(address),
        f"{number}",
        f"{number:#x}",
        f"{number:#o}".replace("0o", "0"),
        ".".join(f"{part:#x}" for part in parts),
        ".".join(f"{part:#o}".replace("0o", "0") for part in parts),
        ".".join(f"{part:03d}" for part in parts),
        ".".join([*decimal[:2], str(low)]),
        ".".join([decimal[0], str(number & 0xFFFFFF)]),
        f"{address}.",
        wide,
        wide.replace(".", "\u3002"),
        str(address).replace(".", "\uff0e"),
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[::ffff:{number >> 16:x}:{low:x}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{low:x}::]",
        f"{address}%00",
        f"user@{address}",
        f"a.example@{address}",
        f"{address}#@a.example",
        f"a.example\\@{address}",
    ]


@given(st.sampled_from(INSIDE_V4).map(IPv4Address), st.data())
def test_no_spelling_of_an_address_inside_is_registered(
    address: IPv4Address, data: st.DataObject
) -> None:
    spelling = data.draw(st.sampled_from(spellings(address)))

    refused(f"https://{spelling}/")
    refused(f"https://{spelling}:8443/x")


@pytest.mark.parametrize("address", INSIDE_V6)
def test_no_ipv6_address_inside_is_registered(address: str) -> None:
    refused(f"https://[{address}]/")
    if "%" not in address:
        refused(f"https://[{ipaddress.ip_address(address).exploded}]/")


@given(st.text(max_size=40))
def test_any_text_is_either_refused_or_has_a_harmless_host(text: str) -> None:
    try:
        target = RULES.target(f"https://{text}", tenant=LAB)
    except InvalidContent:
        return

    assert set(target.host) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-:")
    assert target.url.isascii()
    assert target.url.isprintable()
    assert RULES.target(target.url, tenant=LAB) == target


@pytest.mark.parametrize("host", ["a.example", "8.8.8.8"])
def test_without_tls_or_with_another_port_nothing_public_is_registered(host: str) -> None:
    refused(f"http://{host}/")
    refused(f"https://{host}:22/")


def test_a_refused_port_names_those_that_are_good() -> None:
    assert refused("https://a.example:22/") == "must have one of the ports 443, 8443"


def test_where_a_network_is_open_a_name_may_lead_there_without_tls() -> None:
    rules = TargetRules(allow_networks=["10.0.0.0/8"])

    target = rules.target("http://lis.hospital.internal:9000/webhook", tenant=LAB)

    assert rules.permits("10.1.1.1", target)
    assert not rules.permits("8.8.8.8", target)
    refused("http://8.8.8.8/", rules)


def test_a_url_has_a_longest_length() -> None:
    longest = "https://a.example/" + "a" * (MAX_URL_LENGTH - 18)

    assert RULES.target(longest, tenant=LAB).url == longest
    assert refused(longest + "a") == "has more than 2048 characters"
