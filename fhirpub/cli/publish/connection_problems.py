"""Explains why a service cannot be reached, and whether it helps to try again."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from tornado.httpclient import HTTPClientError

_EXPIRED = 10
_NO_TLS = frozenset({"HTTP_REQUEST", "RECORD_LAYER_FAILURE", "WRONG_VERSION_NUMBER"})
_OTHER_NAME = frozenset({62, 64})  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and IP_ADDRESS_MISMATCH


@dataclass(frozen=True, slots=True)
class ConnectionProblem:
    """Why there is no response, in words for a person; ``is_lasting``: another try is no use."""

    text: str
    is_lasting: bool = False


def explain(
    problem: Exception, url: str, *, option: str = "--url", certificates: str = "--cacert"
) -> ConnectionProblem:
    """Return the explanation of an OSError or HTTPClientError of a request to ``url``.

    ``option`` names the URL, and ``certificates`` the file of certificates to trust.
    """
    address = urlsplit(url)
    base, host = f"{address.scheme}://{address.netloc}", str(address.hostname)
    if isinstance(problem, ssl.SSLCertVerificationError):
        reason = problem.verify_message.rstrip(".")
        return ConnectionProblem(
            f"the certificate of {base} is not trusted: {reason}\n"
            f"{_way_out(problem, option, certificates)}",
            is_lasting=True,
        )
    if getattr(problem, "reason", "") in _NO_TLS:
        return ConnectionProblem(f"{base} speaks no TLS. Is it http:// there?", is_lasting=True)
    if isinstance(problem, socket.gaierror):
        text = f"there is no host {host} ({problem.strerror}). Is {option} right?"
        return ConnectionProblem(text, is_lasting=problem.errno == socket.EAI_NONAME)
    return ConnectionProblem(f"{base} cannot be reached: {_reason(problem, address.scheme)}")


def _way_out(problem: ssl.SSLCertVerificationError, option: str, certificates: str) -> str:
    if problem.verify_code in _OTHER_NAME:
        return f"Put the name into {option} that the certificate is for."
    if problem.verify_code == _EXPIRED:
        return "The operator of the service has to renew it."
    return (
        f"If the operator gave you a certificate for this, name its file: {certificates} FILE.pem "
        "(the authority's, or the service's own if it is self-signed)."
    )


def _reason(problem: Exception, scheme: str) -> str:
    if isinstance(problem, ConnectionRefusedError):
        return "connection refused (no service listens there, or a firewall rejects it)"
    if isinstance(problem, ConnectionResetError) and scheme == "http":
        return "the connection was closed (is it https:// there?)"
    if isinstance(problem, HTTPClientError):
        hint = " (is it http:// there?)" if "TLS" in str(problem.message) else ""
        return f"{problem.message}{hint}"
    return str(getattr(problem, "strerror", "") or problem)
