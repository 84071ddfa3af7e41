"""A self-signed certificate for a receiver that tests start."""

from __future__ import annotations

import ipaddress
import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Misbehaviour = Literal[
    "silent",
    "dripping-headers",
    "dripping-body",
    "endless-body",
    "endless-interim",
    "header-flood",
    "long-header",
    "reset",
    "closed",
    "body-after-204",
    "no-http",
]
"""What a receiver does instead of sending a valid response."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate.

    Attributes:
        file: A PEM file with the certificate and its key.
    """

    file: Path

    @classmethod
    def create(cls, folder: Path, *, name: str) -> Certificate:
        """Create a certificate that is valid from yesterday until tomorrow.

        Args:
            folder: The folder in which its file is written.
            name: The host name or IP address that it is for.

        Returns:
            The certificate.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
        now = datetime.fromtimestamp(time.time_ns() // 10**9, UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([_alternative(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        file = folder / f"{name.replace(':', '-')}.pem"
        file.write_bytes(
            certificate.public_bytes(pem)
            + key.private_bytes(
                pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return cls(file)

    def server(self) -> ssl.SSLContext:
        """Return a TLS context for a server that presents the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file)
        return context

    def client(self) -> ssl.SSLContext:
        """Return a TLS context for a client that trusts only this certificate."""
        return ssl.create_default_context(cafile=self.file)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
