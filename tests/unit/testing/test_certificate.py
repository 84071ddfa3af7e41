"""The published certificate is for one name, for two days, and in a file of its own."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from fhirpub.runtime.clock import now_ms
from fhirpub.testing.certificate import Certificate


def read(certificate: Certificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.file.read_bytes())


def names(certificate: Certificate) -> list[object]:
    found = read(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [name.value for name in found.value]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("127.0.0.1", ipaddress.ip_address("127.0.0.1")),
        ("::1", ipaddress.ip_address("::1")),
        ("receiver.example", "receiver.example"),
    ],
)
def test_it_is_for_the_name_that_is_given(tmp_path: Path, name: str, value: object) -> None:
    assert names(Certificate.create(tmp_path, name=name)) == [value]


def test_it_is_valid_from_yesterday_until_tomorrow(tmp_path: Path) -> None:
    now = datetime.fromtimestamp(now_ms() / 1000, UTC)

    made = read(Certificate.create(tmp_path, name="localhost"))

    assert made.not_valid_before_utc < now - timedelta(hours=23)
    assert made.not_valid_after_utc > now + timedelta(hours=23)
    assert made.not_valid_after_utc < now + timedelta(hours=25)


def test_certificates_of_two_names_do_not_disturb_each_other(tmp_path: Path) -> None:
    first = Certificate.create(tmp_path, name="127.0.0.1")
    second = Certificate.create(tmp_path, name="localhost")

    assert names(first) == [ipaddress.ip_address("127.0.0.1")]
    assert names(second) == ["localhost"]


def test_a_client_trusts_it_alone_and_checks_its_name(tmp_path: Path) -> None:
    context = Certificate.create(tmp_path, name="localhost").client()

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.cert_store_stats()["x509"] == 1
