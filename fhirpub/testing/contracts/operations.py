"""The promises of an operation of a plugin as tests."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from fhirpub.plugin_api import Operation
from fhirpub.testing.service import Answer, Integrator, RunningService

_SECONDS = 30.0


class OperationContract:
    """A test for every promise of `fhirpub.plugin_api.Operation`; inherit it.

    The fixture ``service`` to provide is a `RunningService` with ``[auth] enforce_scopes``, whose
    plugins have the operation and its type.

    Attributes:
        operation: The operation under test, one without parameters that are required.
    """

    operation: Operation

    def body(self) -> dict[str, Any]:
        """Return a valid body of ``$register`` for the type of the operation."""
        raise NotImplementedError

    @pytest.fixture
    def lab(self, service: RunningService) -> Integrator:
        """Return an integrator of an empty tenant that may do everything."""
        return service.integrator(scopes=("system/*.cruds", "system/AuditEvent.rs"))

    @pytest.fixture
    def path(self, lab: Integrator) -> str:
        """Return the path of the operation, on a resource that was registered for it."""
        if not self.operation.on_instance:
            return f"/fhir/r4/{self.operation.type}/${self.operation.code}"
        answer = lab.register(self.body(), type_name=self.operation.type)
        assert answer.status == 201, answer.body
        address = answer.headers["location"].partition("/_history")[0]
        return f"{address[address.index('/fhir/') :]}/${self.operation.code}"

    def test_it_returns_its_media_type_and_lets_nothing_run(
        self, lab: Integrator, path: str
    ) -> None:
        answer = lab.get(path)

        assert answer.status == 200, answer.body
        assert answer.headers["content-type"] == self.operation.media_type
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "private" in answer.headers["cache-control"]
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy

    def test_it_returns_the_same_again(self, lab: Integrator, path: str) -> None:
        assert lab.get(path).body == lab.get(path).body

    def test_a_client_of_fhir_gets_a_binary(self, lab: Integrator, path: str) -> None:
        answer = lab.get(path, Accept="application/fhir+json")

        assert answer.json["resourceType"] == "Binary"
        assert answer.json["contentType"] == self.operation.media_type
        assert base64.b64decode(answer.json["data"]) == lab.get(path).body

    def test_without_a_token_it_is_refused(self, service: RunningService, path: str) -> None:
        assert service.request("GET", path, None, {}).status == 401

    def test_without_the_scope_it_is_refused(
        self, service: RunningService, lab: Integrator, path: str
    ) -> None:
        other = "system/Endpoint.r"
        client = service.another_client(lab.tenant, scopes=(other,))

        assert client.get(path).status == 403

    def test_what_it_reads_beside_the_resource_needs_a_scope(
        self, service: RunningService, lab: Integrator, path: str
    ) -> None:
        only = (f"system/{self.operation.type}.rs",)
        client = service.another_client(lab.tenant, scopes=only)
        reads_others = self.reads_others(lab, path)

        assert client.get(path).status == (403 if reads_others else 200)

    def reads_others(self, lab: Integrator, path: str) -> bool:
        """Return whether the resource refers to some of another type with versions of its own."""
        if not self.operation.includes:
            return False
        resource = path.rpartition("/$")[0].rpartition("/")[2]
        wanted = "&".join(f"_include={one}" for one in self.operation.includes)
        found = lab.get(f"/fhir/r4/{self.operation.type}?_id={resource}&{wanted}").json["entry"]
        names = {entry["resource"]["resourceType"] for entry in found}
        return bool(names & {"Observation", "Specimen", "ServiceRequest", "Media"})

    def test_another_tenant_finds_nothing(self, service: RunningService, path: str) -> None:
        other = service.integrator("Other", scopes=("system/*.cruds",))

        assert other.get(path).status == (404 if self.operation.on_instance else 200)

    def test_an_unknown_parameter_is_refused(self, lab: Integrator, path: str) -> None:
        answer = lab.get(f"{path}?no-such-parameter=1")

        assert answer.status == 400
        assert answer.issue_expressions == {"no-such-parameter"}

    def test_it_is_described(self, service: RunningService, lab: Integrator) -> None:
        statement = lab.get("/fhir/r4/metadata").json
        (described,) = [
            one for one in statement["rest"][0]["resource"] if one["type"] == self.operation.type
        ]
        (named,) = [one for one in described["operation"] if one["name"] == self.operation.code]

        definition = lab.get(named["definition"])
        paths = service.request("GET", "/openapi.json", None, {}).json["paths"]

        assert definition.json["code"] == self.operation.code
        assert definition.json["instance"] == self.operation.on_instance
        assert definition.json["affectsState"] is False
        blank = "/{id}" if self.operation.on_instance else ""
        address = f"/fhir/r4/{self.operation.type}{blank}/${self.operation.code}"
        content = paths[address]["get"]["responses"]["200"]["content"]
        assert [*content] == [self.operation.media_type]

    def test_the_access_is_recorded(self, lab: Integrator, path: str) -> None:
        lab.get(path)

        until = time.monotonic() + _SECONDS
        while not (found := self._events(lab)) and time.monotonic() < until:
            time.sleep(0.2)  # records are sealed together

        assert len(found) == 1
        assert found[0]["outcome"] == "0"
        if self.operation.on_instance:
            entities = found[0]["entity"]
            about = [one.get("what", {}).get("reference", "") for one in entities]
            resource = path.removeprefix("/fhir/r4/").rpartition("/$")[0]
            assert any(reference.startswith(resource) for reference in about)

    def _events(self, lab: Integrator) -> list[dict[str, Any]]:
        answer: Answer = lab.get("/fhir/r4/AuditEvent?subtype=operation")
        assert answer.status == 200, answer.body
        return [entry["resource"] for entry in answer.json.get("entry", ())]
