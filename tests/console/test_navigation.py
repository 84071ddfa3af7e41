"""The navigation: what the person of a session may see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import RunningService
from tests.console.tabs import open_tab

EVERY = ("system/*.cruds", "system/AuditEvent.rs", "webhooks.read")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with a console, which demands scopes."""
    config = Config(console=ConsoleConfig(enabled=True), auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path_factory.mktemp("strict"), config=config) as running:
        yield running


@pytest.mark.parametrize(
    ("scopes", "shown"),
    [
        (EVERY, {"resources/DiagnosticReport", "resources/Patient", "endpoints", "accesses"}),
        (("system/DiagnosticReport.rs",), {"resources/DiagnosticReport", "resources/Patient"}),
        (("system/Patient.rs",), {"resources/Patient"}),
        (("webhooks.read",), {"endpoints"}),
        (("system/*.rs",), {"resources/DiagnosticReport", "resources/Patient"}),
    ],
)
def test_a_person_is_led_to_what_the_client_may_see(
    scopes: tuple[str, ...], shown: set[str], strict: RunningService
) -> None:
    tab = open_tab(strict.integrator(scopes=scopes))

    text = tab.get("/console/").body.decode()

    every = {"resources/DiagnosticReport", "resources/Patient", "endpoints", "accesses"}
    assert {one for one in every if f'href="/console/{one}"' in text} == shown
    for path in every - shown:
        assert tab.get(f"/console/{path}").status == 403
