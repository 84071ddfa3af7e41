"""A service that can be administered over HTTP, on each store; its callers and its commands."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from click.testing import CliRunner, Result

from fhirpub.app.stores import key_source
from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.cli.commands import COMMANDS, Reporting
from fhirpub.config.administration import AdminConfig
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Answer, RunningService
from tests.ports import free_port

BOOTSTRAP_KEY = "c0ffee" * 6
CALLER = "terraform"
COMMAND = Reporting(places=COMMANDS)
"""All commands, without what the program configures for a process of its own."""


@dataclass(kw_only=True)
class Administered:
    """A running service with administration."""

    service: RunningService
    folder: Path
    private_key: dict[str, str] = field(repr=False)

    @property
    def port(self) -> int:
        return self.service.config.admin.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        fields: Any = None,
        *,
        key: str | None = BOOTSTRAP_KEY,
        **headers: str,
    ) -> Answer:
        """Send a request below /admin/v1, with the bootstrap key unless another one is given."""
        body = None if fields is None else orjson.dumps(fields)
        sent = {} if body is None else {"Content-Type": "application/json"}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        return self.send(method, f"/admin/v1{path}", body, sent | headers)

    def send(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            read = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, read, response.read())
        finally:
            connection.close()

    def assertion(self, **changes: Any) -> str:
        """Return an assertion of the caller."""
        given: dict[str, Any] = {
            "key": self.private_key,
            "subject": CALLER,
            "audience": f"{self.url}/admin/v1/token",
            "clock": now_ms,
        }
        given |= changes
        return sign_assertion(given.pop("key"), **given)

    def token_for(self, assertion: str) -> Answer:
        """Ask for a token."""
        fields = {
            "grant_type": "client_credentials",
            "client_assertion_type": TYPE,
            "client_assertion": assertion,
        }
        return self.request("POST", "/token", fields, key=None)

    def run(self, *words: str, stdin: str = "") -> Result:
        """Run a command on the store."""
        file = self.folder / "store.toml"
        storage = self.service.config.storage
        file.write_text(f'[storage]\nurl = "{storage.url}"\nkeys_file = "{storage.keys_file}"\n')
        return CliRunner().invoke(COMMAND, [*words, "--config", str(file)], input=stdin)

    def run_there(self, *words: str, stdin: str = "") -> Result:
        """Run a command over HTTP, in a folder without a store."""
        environment = {"FHIRPUB_ADMIN_URL": self.url, "FHIRPUB_ADMIN_KEY": BOOTSTRAP_KEY}
        return CliRunner().invoke(COMMAND, words, input=stdin, env=environment)

    def json(self, *words: str) -> Any:
        """Run a command over HTTP and return what it prints."""
        result = self.run_there(*words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def audit(self, tenant: str = "service") -> list[dict[str, Any]]:
        """Return the newest records of a chain."""
        records: list[dict[str, Any]] = self.request("GET", f"/audit/{tenant}/records").json[
            "records"
        ]
        return records


@pytest.fixture(scope="module", params=["sqlite", "mongodb"])
def administered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Administered]:
    folder = tmp_path_factory.mktemp("administered")
    private, public = new_key_pair()
    keys = folder / "terraform.jwks.json"
    keys.write_bytes(orjson.dumps(public))
    admin = AdminConfig(
        port=free_port(),
        bootstrap_key_hash=hashlib.sha256(BOOTSTRAP_KEY.encode()).hexdigest(),
        callers=[f"{CALLER}={keys}"],
    )
    config, url = replace(Config(), admin=admin), ""
    if request.param == "mongodb":
        url = request.getfixturevalue("replica_set").url(f"administered_{uuid4().hex}")
        secrets = folder / "keys"
        secrets.write_text(key_source(config).new_line())
        config = replace(config, storage=replace(config.storage, keys_file=str(secrets)))
    with RunningService(folder, config=config, store_url=url) as service:
        yield Administered(service=service, folder=folder, private_key=private)
