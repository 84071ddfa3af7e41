"""The limits of URLs, the words of refusals, and addresses in others that an entry opens."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.problems import OperationProblem
from fhirpub.webhooks.transport.url_policy import Target, TargetRules

RULES = TargetRules()
HTTPS = Target("https://hooks.example/", "hooks.example", 443, tls=True)
INNER, OTHER = int(IPv4Address("10.0.0.1")), int(IPv4Address("10.0.0.2"))


@pytest.mark.parametrize("port", [1, 65_535])
def test_the_first_and_the_last_port_can_be_opened(port: int) -> None:
    rules = TargetRules(allow_networks=["10.0.0.0/8"])

    assert rules.target(f"http://10.0.0.1:{port}/", tenant="t").port == port


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "https://10.0.0.1/",
            "names an address, a port or a scheme to which nothing is sent",
        ),
        ("http://hooks.example/", "must begin with https://"),
        ("https://[1::2::3]/", "has a host that is no IPv6 address"),
        ("https://hooks.example:22/", "must have one of the ports 443"),
    ],
)
def test_a_url_is_refused_in_words_of_its_fault(url: str, words: str) -> None:
    with pytest.raises(InvalidContent) as refusal:
        RULES.target(url, tenant="t")

    (issue,) = refusal.value.issues
    assert (issue.diagnostics, issue.details) == (words, OperationProblem.ENDPOINT_URL_REFUSED)


def test_a_name_has_up_to_253_characters() -> None:
    name = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])

    assert RULES.target(f"https://{name}/", tenant="t").host == name
    with pytest.raises(InvalidContent, match="no canonical name"):
        RULES.target(f"https://{name}d/", tenant="t")


def test_letters_that_mean_the_same_are_the_same_name() -> None:
    wide = "https://\uff42\u00fccher.example/"

    assert RULES.target(wide, tenant="t").host == "xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("number", "entry"),
    [
        (0x2002 << 112 | INNER << 80, "2002::/16"),
        (0x20010000 << 96 | INNER << 64 | OTHER ^ 0xFFFF_FFFF, "2001::/32"),
    ],
    ids=["6to4", "Teredo"],
)
def test_an_address_in_another_is_open_if_both_are(number: int, entry: str) -> None:
    address = str(IPv6Address(number))

    assert TargetRules(allow_networks=[entry, "10.0.0.0/30"]).permits(address, HTTPS)
    assert not TargetRules(allow_networks=[entry]).permits(address, HTTPS)
    assert not TargetRules(allow_networks=["10.0.0.0/30"]).permits(address, HTTPS)
