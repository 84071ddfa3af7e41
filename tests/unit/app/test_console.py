"""The console is served on the port that its settings name, or on that of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.app import console
from fhirpub.app.console import serving_console, table_of
from fhirpub.config.console import ConsoleConfig
from fhirpub.testing.service import RunningService
from fhirpub.web.routes import routes


def under(service: RunningService, **settings: Any) -> Any:
    """Return the services of a service with other settings of the console."""
    built = service.services
    given = {"base_url": "https://console.example.org", **settings}
    return replace(built, config=replace(built.config, console=ConsoleConfig(**given)))


def paths_of(services: Any) -> set[str]:
    return {one.path for one in table_of(services)}


def test_without_the_console_there_are_no_routes_of_it(service: RunningService) -> None:
    services = under(service, enabled=False)

    assert len(table_of(services)) == len(routes(services))


def test_with_a_port_of_its_own_the_console_is_not_on_that_of_the_service(
    service: RunningService,
) -> None:
    assert "/console" not in {path[:8] for path in paths_of(under(service, enabled=True, port=9))}


def test_without_a_port_the_console_is_beside_the_service(service: RunningService) -> None:
    services = under(service, enabled=True)

    paths = paths_of(services)

    assert "/console/links" in paths
    assert {one.path for one in routes(services)} <= paths


@pytest.mark.parametrize("settings", [{"enabled": False, "port": 9}, {"enabled": True}])
async def test_nothing_listens_for_a_console_that_has_no_port(
    service: RunningService, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "bind_own_port", pytest.fail)

    async with serving_console(under(service, **settings), None):  # type: ignore[arg-type]
        pass


class Listening:
    """Notes what a server is asked to do."""

    notes: list[Any]

    def __init__(self, adapter: Any, bounds: Any) -> None:
        self.notes.append(("made", bounds, adapter))

    def add_sockets(self, sockets: Any) -> None:
        self.notes.append(("listens", sockets))

    def stop(self) -> None:
        self.notes.append(("stopped",))

    async def close_all_connections(self) -> None:
        self.notes.append(("closed",))


@pytest.mark.parametrize(("workers", "shares"), [(1, False), (2, True)])
async def test_a_console_with_a_port_listens_until_the_end(
    service: RunningService, workers: int, monkeypatch: pytest.MonkeyPatch, *, shares: bool
) -> None:
    notes: list[Any] = []
    monkeypatch.setattr(console, "Server", type("Noting", (Listening,), {"notes": notes}))
    monkeypatch.setattr(
        console,
        "bind_own_port",
        lambda group, config, *, reuse_port: (group, config.port, reuse_port),
    )
    services = under(service, enabled=True, port=9)
    server = replace(services.config.server, workers=workers)
    services = replace(services, config=replace(services.config, server=server))

    async def use() -> None:
        async with serving_console(services, "bounds"):  # type: ignore[arg-type]
            assert notes[-1] == ("listens", ("console", 9, shares))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await use()

    assert notes[0][:2] == ("made", "bounds")
    assert notes[2:] == [("stopped",), ("closed",)]
