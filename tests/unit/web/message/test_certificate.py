"""The digest of a certificate is the same in each form that a proxy passes it on in."""

from __future__ import annotations

import base64
import hashlib
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest

from fhirpub.testing.certificate import Certificate
from fhirpub.web.message.certificate import thumbprint_of

DER = b"\x30\x03\x02\x01\x07"
PEM = ssl.DER_cert_to_PEM_cert(DER)
DIGEST = base64.urlsafe_b64encode(hashlib.sha256(DER).digest()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "value",
    [quote(PEM), quote(PEM, safe=""), quote(PEM.strip()), f":{base64.b64encode(DER).decode()}:"],
)
def test_each_form_has_the_digest_of_the_certificate(value: str) -> None:
    assert thumbprint_of([value]) == DIGEST


def test_the_digest_is_that_of_openssl(tmp_path: Path) -> None:
    text = Certificate.create(tmp_path, name="127.0.0.1").file.read_text()
    pem = text[text.index("-----BEGIN CERTIFICATE") :]
    pem = pem[: pem.index("-----END CERTIFICATE-----") + 25]
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest()

    expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert thumbprint_of([quote(pem)]) == expected


@pytest.mark.parametrize("values", [[], [""], ["", ""]])
def test_without_a_certificate_the_digest_is_empty(values: list[str]) -> None:
    assert thumbprint_of(values) == ""


@pytest.mark.parametrize(
    "values",
    [
        ["x"],
        ["::"],
        [":A:"],
        [quote(PEM)] * 2,
        [quote(PEM + PEM)],
        ["CN=ward"],
        ["-----BEGIN CERTIFICATE-----A-----END CERTIFICATE-----"],
        ["-----BEGIN CERTIFICATE-----MAM=MAM=-----END CERTIFICATE-----"],
        ["-----BEGIN CERTIFICATE-----" + " " * 16_000],
    ],
)
def test_what_is_no_single_certificate_cannot_be_read(values: list[str]) -> None:
    assert thumbprint_of(values) is None


@pytest.mark.parametrize("length", [1, 2, 3, 64])
def test_a_digest_has_no_padding(length: int) -> None:
    der = b"\x30" * length
    expected = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode()

    assert thumbprint_of([f":{base64.b64encode(der).decode()}:"]) == expected.rstrip("=")
