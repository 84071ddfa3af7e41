"""An OpenID Connect provider over HTTP whose ID tokens are as a test wants them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from jose import jws

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.runtime.clock import now_ms
from tests.quiet_server import QuietServer

CLIENT, SECRET = "console", "a-secret-of-the-console"


class Issuer:
    """A provider at a free port of 127.0.0.1.

    Attributes:
        claims: What its ID tokens have in place of, or beside, what they should; None: not at all.
        forged: The whole token in place of a signed one.
        asked: How often each path was asked for.
    """

    def __init__(self, server: QuietServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.private, self.public = new_key_pair()
        self.key: Mapping[str, str] = self.private
        self.claims: dict[str, Any] = {}
        self.forged = ""
        self.asked: Counter[str] = Counter()

    def answer(self, path: str) -> Mapping[str, Any]:
        """Return what a path has."""
        self.asked[path] += 1
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        if path == "/keys":
            return self.public
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.token()}

    def token(self) -> str:
        """Return an ID token."""
        if self.forged:
            return self.forged
        now = now_ms() // 1000
        stated = {"iss": self.url, "sub": "1", "aud": CLIENT, "iat": now, "exp": now + 60}
        stated |= {"email_verified": True, **self.claims}
        claims = {name: value for name, value in stated.items() if value is not None}
        headers = {"kid": self.private["kid"]}
        algorithm = self.key["alg"]
        return str(jws.sign(claims, dict(self.key), headers=headers, algorithm=algorithm))


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run a provider until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(issuer.answer(self.path.partition("?")[0])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_arguments: Any) -> None:
            """Write nothing."""

    with QuietServer(("127.0.0.1", 0), Handler) as server:
        issuer = Issuer(server)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield issuer
        server.shutdown()
        thread.join()
