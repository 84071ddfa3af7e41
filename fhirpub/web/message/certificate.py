"""The certificate of a client's TLS connection, as a proxy passes it on in a header (RFC 8705)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from urllib.parse import unquote

_PEM = re.compile(r"\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*")
_BYTES = re.compile(":([A-Za-z0-9+/]+={0,2}):")


def thumbprint_of(values: Sequence[str]) -> str | None:
    """Return the SHA-256 of a certificate in base64url, the member ``x5t#S256`` of a token.

    Args:
        values: What a header holds, each time that it is there: the certificate in PEM with
            percent signs (``$ssl_client_escaped_cert`` of nginx), or the byte sequence of RFC 9440
            (``:MII…:``).

    Returns:
        The digest, empty if there is no certificate, or None if the header cannot be read.
    """
    if not any(values):
        return ""
    if len(values) > 1:
        return None
    match = _BYTES.fullmatch(values[0]) or _PEM.fullmatch(unquote(values[0]))
    if match is None:
        return None
    try:
        certificate = base64.b64decode("".join(match[1].split()), validate=True)
    except binascii.Error:
        return None
    digest = hashlib.sha256(certificate).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
