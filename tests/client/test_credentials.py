"""When a client gets another token, by the requests that it would send."""

from __future__ import annotations

import httpx
import pytest

from fhirpub_client import Secret
from fhirpub_client.credentials import TokenAuth

BASE = "https://fhir.example.org"


def sent_by(auth: TokenAuth, *, seconds: int) -> list[str]:
    """Return the paths of what is sent for one request, by a service whose tokens last so long."""
    flow = auth.auth_flow(httpx.Request("GET", f"{BASE}/fhir/r4/metadata"))
    request, paths = next(flow), []
    while True:
        paths.append(request.url.path)
        granted = {"access_token": "t", "expires_in": seconds}
        try:
            request = flow.send(httpx.Response(200, json=granted, request=request))
        except StopIteration:
            return paths


@pytest.mark.parametrize(("seconds", "renewals"), [(30, 1), (3_600, 0)])
def test_a_token_is_renewed_half_a_minute_before_its_end(seconds: int, renewals: int) -> None:
    auth = TokenAuth(Secret("id", "secret"), BASE, scope="")
    assert sent_by(auth, seconds=seconds) == ["/oauth/token", "/fhir/r4/metadata"]

    again = sent_by(auth, seconds=seconds)

    assert again.count("/oauth/token") == renewals
