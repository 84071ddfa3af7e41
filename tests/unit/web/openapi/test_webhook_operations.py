"""What the handlers of webhooks do, and the scopes that they demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.openapi.webhook_operations import WEBHOOK_OPERATIONS
from fhirpub.web.routes import webhook_routes
from tests.unit.web.openapi import described


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Integrator]]:
    """Clients of a service in which scopes count, by the one that they have."""
    config = Config(auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path_factory.mktemp("strict"), config=config) as service:
        scopes = ("webhooks.read", "webhooks.write")
        yield {scope: service.integrator(scopes=(scope,)) for scope in scopes}


def test_operations_of_webhooks_are_described_as_they_are_wanted(document: Any) -> None:
    found = described.of_tags(described.operations(document), "Webhooks")

    assert found == described.of_tags(described.wanted("operations"), "Webhooks")
    assert found


@pytest.mark.parametrize(
    "route", webhook_routes(), ids=lambda route: f"{route.method} {route.path}"
)
def test_the_scope_that_is_described_is_enough_and_the_other_is_not(
    callers: Mapping[str, Integrator], route: Any
) -> None:
    scope = WEBHOOK_OPERATIONS[route.handler, route.method].scope
    path = route.path.replace("{}", "none")

    found = {held: lab.request(route.method, path).status for held, lab in callers.items()}

    assert [held for held, status in found.items() if status != 403] == [scope]


def test_an_event_has_an_id_of_its_own_in_the_path_of_a_delivery(document: Any) -> None:
    path = "/webhooks/v1/endpoints/{id}/deliveries/{event_id}"

    assert [one["name"] for one in document["paths"][path]["get"]["parameters"]] == [
        "id",
        "event_id",
    ]
