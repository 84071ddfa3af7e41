from __future__ import annotations

import pytest

from fhirpub.auth.networks import (
    is_within,
    parse_address,
    parse_network,
    parse_networks,
    wrong_networks,
)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("192.0.2.7", "192.0.2.7/32"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
        ("::/0", "::/0"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.1.2.3", "10.1.2.3/32"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
    ],
)
def test_a_network_has_one_notation(text: str, network: str) -> None:
    assert str(parse_network(text)) == network


@pytest.mark.parametrize(
    "text", ["", " ", "x", "10.0.0.0/33", "10.0.0/8", "2001:db8::/129", "fe80::1%eth0", "*"]
)
def test_what_is_no_network_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no network: write 192\.0\.2\.0/24, 2001:db8::/32"):
        parse_network(text)


def test_an_address_within_a_network_is_refused_since_either_may_be_meant() -> None:
    with pytest.raises(ValueError, match=r"write 10\.0\.0\.0/8, or 10\.1\.2\.3 for this address"):
        parse_network("10.1.2.3/8")


def test_all_that_are_no_networks_are_named() -> None:
    wrong = wrong_networks(["a", "10.0.0.0/8", "b"])

    assert [text.split()[0] for text in wrong] == ["'a'", "'b'"]


@pytest.mark.parametrize(
    ("address", "is_in"),
    [
        ("10.255.255.255", True),
        ("11.0.0.0", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:11.1.2.3", False),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("::a01:203", False),
        ("", False),
        ("unknown", False),
        ("10.1.2.3:80", False),
        ("010.1.2.3", False),
    ],
)
def test_an_address_is_in_the_networks_or_not(address: str, *, is_in: bool) -> None:
    networks = parse_networks(("10.0.0.0/8", "2001:db8::/32"))

    assert is_within(address, networks) is is_in


def test_no_address_is_in_no_networks() -> None:
    assert not is_within("10.1.2.3", ())


def test_a_network_of_the_settings_may_be_named_by_an_address_in_it() -> None:
    assert is_within("10.9.9.9", parse_networks(("10.1.2.3/8",)))


def test_a_network_of_mapped_addresses_in_the_settings_is_that_of_ipv4() -> None:
    assert is_within("127.0.0.1", parse_networks(("::ffff:127.0.0.0/104",)))


@pytest.mark.parametrize("text", ["fe80::1%eth0", "fe80::%1/64", "10.0.0.1%eth0"])
def test_a_zone_is_named_as_it_was_written(text: str) -> None:
    with pytest.raises(ValueError, match="^" + repr(text)):
        parse_network(text)


def test_the_refusal_of_a_network_gives_each_form_as_an_example() -> None:
    with pytest.raises(ValueError, match=r"^'x' is") as refused:
        parse_network("x")

    assert str(refused.value) == (
        "'x' is no network: write 192.0.2.0/24, 2001:db8::/32 or one address"
    )


def test_the_refusal_of_an_address_within_a_network_gives_both_readings() -> None:
    with pytest.raises(ValueError, match="has an address") as refused:
        parse_network("10.1.2.3/8")

    assert str(refused.value) == (
        "'10.1.2.3/8' has an address within the network: write 10.0.0.0/8, or 10.1.2.3 "
        "for this address alone"
    )


def test_the_first_and_the_last_address_of_a_network_are_in_it() -> None:
    networks = parse_networks(("192.0.2.128/25",))

    assert [is_within(f"192.0.2.{last}", networks) for last in (127, 128, 255)] == [
        False,
        True,
        True,
    ]


def test_each_of_several_networks_counts() -> None:
    networks = parse_networks(("192.0.2.0/24", "198.51.100.7"))

    assert is_within("192.0.2.1", networks)
    assert is_within("198.51.100.7", networks)
    assert not is_within("198.51.100.8", networks)


def test_a_network_that_is_wider_than_the_mapped_addresses_stays_one_of_ipv6() -> None:
    assert str(parse_network("::fffe:0:0/95")) == "::fffe:0:0/95"


def test_a_mapped_address_is_the_one_of_ipv4() -> None:
    assert str(parse_address("::ffff:192.0.2.7")) == "192.0.2.7"


@pytest.mark.parametrize("text", ["192.0.2.7", "2001:db8::7"])
def test_another_address_is_the_one_that_it_is(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("text", ["", "ward", "192.0.2.7/32", "192.0.2.7:80", "[::1]"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert parse_address(text) is None
