"""Warnings about the URL of a MongoDB store."""

from __future__ import annotations

import pytest

from fhirpub.cli.advice.finding import Finding
from fhirpub.cli.advice.mongodb import certificate_in, password_in
from fhirpub.cli.advice.settings import advise
from fhirpub.config.settings import Config, LimitsConfig, StorageConfig
from tests.unit.cli.advice.configs import production

ACCESS = "mongodb://fhirpub:secret@"


def of_store(config: Config) -> list[Finding]:
    return [finding for finding in advise(config) if finding.subject == "store"]


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://fhirpub:secret@a.lab,b.lab/fhirpub?replicaSet=rs0",
        "mongodb://fhirpub:secret@localhost,b.lab/fhirpub",
        "mongodb://fhirpub:secret@localhost.lab/fhirpub",
        "mongodb://fhirpub:secret@10.1.2.3:27017/fhirpub?tls=false",
        "mongodb+srv://fhirpub:secret@set.lab/fhirpub?TLS=False",
        "mongodb://fhirpub:secret@[fd00::1]:27017/fhirpub?ssl=false",
    ],
)
def test_a_mongodb_url_without_tls_is_a_warning_in_production(url: str) -> None:
    (finding,) = of_store(production(url))

    assert finding.level == "warning"
    assert finding.text.startswith("[storage] url: no TLS: ")
    assert finding.text.endswith("add tls=true")


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://fhirpub:secret@a.lab,b.lab/fhirpub?replicaSet=rs0&tls=true",
        "mongodb://fhirpub:secret@a.lab/fhirpub?SSL=True",
        "mongodb+srv://fhirpub:secret@set.lab/fhirpub",
        "mongodb://CN=fhirpub@a.lab/fhirpub?tls=true&authMechanism=MONGODB-X509",
        "mongodb://a.lab/fhirpub?tls=true&authMechanism=MONGODB-X509",
        "mongodb://a.lab/fhirpub?tls=true&authMechanism=MONGODB-AWS",
        "mongodb://a.lab/fhirpub?tls=true&authMechanism=MONGODB-OIDC",
        "mongodb://fhirpub%40LAB@a.lab/fhirpub?tls=true&authMechanism=GSSAPI",
    ],
)
def test_a_mongodb_url_with_tls_and_credentials_is_no_warning(url: str) -> None:
    assert of_store(production(url)) == []


@pytest.mark.parametrize(
    "hosts", ["localhost", "127.0.0.1:27017,127.0.0.2", "[::1]:27017", "%2Frun%2Fmongodb.sock"]
)
def test_a_mongodb_url_without_tls_to_this_machine_is_no_warning_but_is_mentioned(
    hosts: str,
) -> None:
    (finding,) = of_store(production(f"{ACCESS}{hosts}/fhirpub"))

    assert finding.level == "ok"
    assert "no TLS, which only loopback addresses may do without" in finding.text


def test_a_mechanism_that_needs_a_password_is_no_excuse_for_having_none() -> None:
    url = "mongodb://fhirpub@a.lab/fhirpub?tls=true&authMechanism=SCRAM-SHA-256"
    (finding,) = of_store(production(url))

    assert finding.level == "warning"
    assert finding.text.startswith("[storage] url: no password: ")


@pytest.mark.parametrize("user", ["", "fhirpub@"])
def test_a_mongodb_url_without_a_password_is_a_warning_even_on_this_machine(user: str) -> None:
    findings = of_store(production(f"mongodb://{user}localhost/fhirpub"))

    (warning,) = [finding.text for finding in findings if finding.level == "warning"]
    assert warning.startswith("[storage] url: no password: ")
    assert "create a user for the service" in warning


@pytest.mark.parametrize(
    "option", ["tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"]
)
def test_tls_that_accepts_any_server_is_a_warning(option: str) -> None:
    (finding,) = of_store(production(f"{ACCESS}a.lab/fhirpub?tls=true&{option}=true"))

    assert finding.level == "warning"
    assert option.lower() in finding.text


def test_a_mongodb_url_without_tls_and_password_is_no_warning_in_a_sandbox() -> None:
    config = Config(
        storage=StorageConfig(url="mongodb://a.lab/fhirpub"), limits=LimitsConfig(connections=64)
    )

    assert list(advise(config)) == []


def test_no_warning_shows_anything_of_the_url() -> None:
    found = of_store(production("mongodb://fhirpub:secret@a.lab/fhirpub?tlsInsecure=true"))

    assert found
    assert not {"secret", "a.lab"} & set(" ".join(finding.text for finding in found).split())


@pytest.mark.parametrize(
    ("url", "has_one"),
    [
        ("mongodb://fhirpub:secret@a.lab/fhirpub", True),
        ("mongodb+srv://fhirpub:p%40ss@a.lab/fhirpub", True),
        ("mongodb://fhirpub@a.lab/fhirpub", False),
        ("mongodb://a.lab:27017/fhirpub", False),
        ("sqlite:////srv/a:b@c/f.db", False),
    ],
)
def test_a_password_is_recognized(url: str, *, has_one: bool) -> None:
    assert password_in(url) == has_one


def test_the_file_of_the_private_key_is_that_of_the_url() -> None:
    url = "mongodb://a.lab/fhirpub?tls=true&tlsCertificateKeyFile=/etc/fhirpub/Client.pem"

    assert certificate_in(url) == "/etc/fhirpub/Client.pem"
    assert certificate_in("mongodb://a.lab/fhirpub") == ""


def test_each_option_that_accepts_any_server_is_a_warning() -> None:
    url = f"{ACCESS}a.lab/x?tls=true&tlsInsecure=true&tlsAllowInvalidHostnames=true"

    texts = [finding.text for finding in of_store(production(url))]

    assert [text.removeprefix("[storage] url: ").partition(" ")[0] for text in texts] == [
        "tlsinsecure",
        "tlsallowinvalidhostnames",
    ]
