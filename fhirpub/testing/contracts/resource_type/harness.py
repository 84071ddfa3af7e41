"""The fixtures and helpers of the contract of a resource type."""

from __future__ import annotations

import itertools
import re
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.interactions.identity.identification import identification_of
from fhirpub.plugin_api import ResourceType, SearchParameter, items_of
from fhirpub.testing.service import Answer, Integrator, RunningService

SYSTEM = "https://contract.example/identifiers"
"""The identifier system of the resources that the tests register."""


_numbers = itertools.count()


def escape(text: str) -> str:
    """Return a text as the value of a search parameter in a URL."""
    return quote(re.sub(r"([\\,|$])", r"\\\1", text))


class ResourceTypeHarness:
    """The base of all groups of the contract: a client of an empty tenant, and bodies to register.

    Attributes:
        resource_type: The declaration under test.
        system: The system of the keys in the bodies, for types that do not take any.
    """

    resource_type: ResourceType
    system: str = SYSTEM

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        """Return a valid body of ``$register``; subclasses implement it.

        Args:
            value: The value of the business identifier.
            system: The system of the business identifier.

        Returns:
            A body with all parts, and without anything that causes a refusal.
        """
        raise NotImplementedError

    @pytest.fixture
    def lab(self, service: RunningService) -> Integrator:
        """Return an integrator of an empty tenant."""
        return service.integrator()

    @pytest.fixture
    def registered(self, lab: Integrator) -> Answer:
        """Return the response to a registration."""
        return self.register(lab, self.body(self.fresh_value()))

    @staticmethod
    def fresh_value() -> str:
        """Return an identifier value that no other test uses."""
        return f"contract-{next(_numbers)}"

    def register(self, lab: Integrator, body: Any) -> Answer:
        """Register a body, and return the response."""
        return lab.register(body, type_name=self.resource_type.name)

    @staticmethod
    def beginnings_in(resource: dict[str, Any], parameter: SearchParameter) -> list[str]:
        """Return how the texts begin by which a parameter of the type string finds a resource.

        Args:
            resource: The resource, as it was read.
            parameter: A search parameter of its type.

        Returns:
            The first three characters of each text, in upper case; none for another type.
        """
        if parameter.type != "string":
            return []
        texts: list[str] = []
        for path in parameter.paths:
            for _at, item in items_of(resource, path):
                if isinstance(item, str):
                    texts.append(item)
                else:
                    texts += filter(None, (item.get("family"), *item.get("given", ())))
                    texts += item.get("text", "").split()
        return [text[:3].upper() for text in texts]

    @staticmethod
    def ids_found(lab: Integrator, query: str) -> set[str]:
        """Return the ids of the resources that a search finds, at most a hundred.

        Args:
            lab: A client.
            query: The type and the parameters of the search.
        """
        answer = lab.get(f"/fhir/r4/{query}&_count=100", Prefer="handling=strict")
        assert answer.status == 200, answer.body
        return {entry["resource"]["id"] for entry in answer.json.get("entry", ())}

    def resource_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the resource itself from a body of ``$register``."""
        entry = next(
            parameter
            for parameter in body["parameter"]
            if parameter["name"] == self.resource_type.entry_name
        )
        resource: dict[str, Any] = entry["resource"]
        return resource

    def resource_of(self, answer: Answer) -> dict[str, Any]:
        """Return the resource from the response to a registration.

        Raises:
            AssertionError: The status of the response is not 201.
        """
        assert answer.status == 201, answer.body
        return self.resource_in(answer.json)

    def key_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the identifier that is the key of the resource in a body of ``$register``."""
        chosen = identification_of(self.resource_type).chosen_in(self.resource_in(body))
        assert chosen is not None
        return chosen.item

    def path_of(self, answer: Answer) -> str:
        """Return the path of the resource that a response registered."""
        return f"/fhir/r4/{self.resource_type.name}/{self.resource_of(answer)['id']}"

    def update_status(
        self, lab: Integrator, path: str, *, status: str = "", **headers: str
    ) -> Answer:
        """Update only the status of a resource.

        Args:
            lab: The integrator that sends the update.
            path: The path of the resource.
            status: The new status; empty for the first that an update can set.
            **headers: Headers such as ``If_Match``.

        Returns:
            The response.
        """
        chosen = status or min(self.resource_type.update_statuses)
        body = {"resourceType": self.resource_type.name, "status": chosen}
        return lab.patch(path, body, **headers)
