"""The web layer alone, with pytest-tornado's fixtures and on their event loop.

The tests are generators, like those of the plugin: pytest-asyncio in its automatic mode runs every
``async def`` test on another event loop, where this server does not run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.ioloop import IOLoop

from fhirpub.app.services import build_services
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.auth.token_request import Message
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.web.adapter import RequestRouterAdapter
from fhirpub.web.services import Services

Steps = Generator[Any, Any, None]


@pytest.fixture
def io_loop() -> Iterator[IOLoop]:
    """Create the event loop as the plugin does, without Tornado's deprecated calls."""
    loop = IOLoop(make_current=False)
    asyncio.set_event_loop(loop.asyncio_loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close(all_fds=True)


@pytest.fixture
def services(io_loop: IOLoop, tmp_path: Path) -> Iterator[Services]:
    """All that a handler needs, with a store of its own."""
    base = Config()
    config = replace(base, storage=replace(base.storage, url=f"sqlite:///{tmp_path}/fhirpub.db"))
    stack = AsyncExitStack()

    async def enter() -> Services:
        return await stack.enter_async_context(build_services(config))

    yield io_loop.run_sync(enter)
    io_loop.run_sync(stack.aclose)


@pytest.fixture
def app(services: Services) -> RequestRouterAdapter:
    """Return the application that pytest-tornado serves."""
    return RequestRouterAdapter(services)


async def get(client: AsyncHTTPClient, url: str, **headers: str) -> HTTPResponse:
    return await client.fetch(url, headers=headers, raise_error=False)


@pytest.mark.gen_test
def test_the_process_answers_that_it_is_alive(
    http_client: AsyncHTTPClient, base_url: str
) -> Steps:
    response = yield get(http_client, f"{base_url}/health/live")

    assert (response.code, response.body) == (200, b'{"status":"alive"}')


@pytest.mark.gen_test
def test_the_service_is_ready_once_its_store_is(
    http_client: AsyncHTTPClient, base_url: str
) -> Steps:
    response = yield get(http_client, f"{base_url}/health/ready")

    assert (response.code, response.body) == (200, b'{"status":"ready"}')


@pytest.mark.gen_test
def test_an_unknown_path_is_a_404_with_an_outcome(
    http_client: AsyncHTTPClient, base_url: str
) -> Steps:
    response = yield get(http_client, f"{base_url}/nowhere")

    assert response.code == 404
    assert response.headers["Content-Type"] == "application/fhir+json"
    assert json.loads(response.body)["resourceType"] == "OperationOutcome"


@pytest.mark.gen_test
def test_metadata_needs_a_token(http_client: AsyncHTTPClient, base_url: str) -> Steps:
    response = yield get(http_client, f"{base_url}/metadata")

    assert response.code == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="fhirpub"'
    assert json.loads(response.body)["issue"][0]["code"] == "security"


@pytest.mark.gen_test
def test_metadata_is_a_capability_statement_for_those_with_a_token(
    http_client: AsyncHTTPClient, base_url: str, services: Services
) -> Steps:
    token = yield token_of(services)

    response = yield get(http_client, f"{base_url}/metadata", Authorization=f"Bearer {token}")

    assert response.code == 200
    assert json.loads(response.body)["resourceType"] == "CapabilityStatement"


async def token_of(services: Services) -> str:
    """Return an access token of a new client of a new tenant."""
    tenant = await add_tenant(services.store, "Lab", clock=now_ms)
    client, secret = await add_client(
        services.store,
        NewClient(
            tenant=tenant.id, name="test", environment=services.config.auth.environment, scopes=()
        ),
        clock=now_ms,
    )
    request = {
        "grant_type": "client_credentials",
        "client_id": client.id,
        "client_secret": secret,
        "audience": services.config.auth.audience,
    }
    message = Message(content_type="application/json", body=json.dumps(request).encode())
    grant = await services.tokens.grant(message, address="127.0.0.1")
    return grant.access_token


@pytest.fixture
async def asyncio_fixture() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def test_tests_of_pytest_asyncio_run_alongside(
    asyncio_fixture: asyncio.AbstractEventLoop,
) -> None:
    assert asyncio.get_running_loop() is asyncio_fixture
