"""A connection problem is explained, with the way out; what lasts is not tried again."""

from __future__ import annotations

import socket
import ssl

import pytest
from tornado.simple_httpclient import HTTPTimeoutError

from fhirpub.cli.publish.connection_problems import explain


def untrusted(code: int, message: str) -> ssl.SSLCertVerificationError:
    problem = ssl.SSLCertVerificationError(1, message)
    problem.verify_code, problem.verify_message = code, message
    return problem


def no_tls(reason: str = "WRONG_VERSION_NUMBER") -> ssl.SSLError:
    problem = ssl.SSLError(1, "wrong version number")
    problem.reason = reason
    return problem


@pytest.mark.parametrize(
    ("problem", "words", "is_lasting"),
    [
        (untrusted(18, "self-signed certificate"), "--cacert FILE.pem", True),
        (untrusted(20, "unable to get local issuer certificate"), "--cacert FILE.pem", True),
        (untrusted(10, "certificate has expired"), "has to renew it", True),
        (untrusted(62, "Hostname mismatch"), "into --url", True),
        (untrusted(64, "IP address mismatch"), "into --url", True),
        (no_tls(), "speaks no TLS. Is it http:// there?", True),
        (no_tls("HTTP_REQUEST"), "speaks no TLS. Is it http:// there?", True),
        (no_tls("RECORD_LAYER_FAILURE"), "speaks no TLS. Is it http:// there?", True),
        (untrusted(18, "self-signed."), "not trusted: self-signed\n", True),
        (ssl.SSLEOFError(8, "EOF occurred"), "cannot be reached: EOF occurred", False),
        (socket.gaierror(socket.EAI_NONAME, "not known"), "no host fhir.example", True),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), "no host fhir.example", False),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused", False),
        (TimeoutError("timed out"), "cannot be reached: timed out", False),
        (OSError(113, "No route to host"), "cannot be reached: No route to host", False),
        (HTTPTimeoutError("Timeout during TLS handshake"), "is it http:// there?", False),
        (HTTPTimeoutError("Timeout while connecting"), "Timeout while connecting", False),
    ],
)
def test_each_problem_has_its_words(
    problem: Exception,
    words: str,
    is_lasting: bool,  # noqa: FBT001 - from the table
) -> None:
    explained = explain(problem, "https://fhir.example:8443/oauth/token")

    assert words in explained.text
    assert explained.is_lasting == is_lasting


def test_a_connection_that_is_reset_without_tls_may_need_it() -> None:
    explained = explain(ConnectionResetError(104, "reset"), "http://fhir.example/oauth/token")

    assert "is it https:// there?" in explained.text


@pytest.mark.parametrize(
    ("problem", "scheme", "end"),
    [
        (ConnectionResetError(104, "reset"), "https", "cannot be reached: reset"),
        (OSError(113, "No route to host"), "http", "cannot be reached: No route to host"),
        (ConnectionRefusedError(111, "x"), "http", "or a firewall rejects it)"),
    ],
)
def test_only_a_connection_that_is_reset_without_tls_gets_the_hint(
    problem: Exception, scheme: str, end: str
) -> None:
    assert explain(problem, f"{scheme}://fhir.example/oauth/token").text.endswith(end)
