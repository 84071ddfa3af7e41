"""The pages of operators, on both stores: all are there, and none shows content of reports."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from fhirpub.administration.table import OPERATIONS as TABLE
from fhirpub.app.stores import key_source
from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.console.operators.catalogue import LEFT_OUT, OFFERED
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, RunningService
from tests.console.operating import (
    ANSWER,
    CONTENT,
    FAMILY,
    OPERATIONS,
    SCRIPT,
    Estate,
    form_path,
    furnish,
)
from tests.console.tabs import open_tab, text_of

KEY = "c0ffee" * 6
CONFIG = Config(
    console=ConsoleConfig(enabled=True),
    admin=AdminConfig(bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest()),
    plugins=PluginsConfig(enabled=["diagnosticreport"]),
    webhooks=WebhooksConfig(allow_networks=["127.0.0.0/8"]),
)


@pytest.fixture(scope="module", params=["sqlite", "mongodb"])
def estate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Estate]:
    folder, config, url = tmp_path_factory.mktemp("estate"), CONFIG, ""
    if request.param == "mongodb":
        url = request.getfixturevalue("replica_set").url(f"estate_{uuid4().hex}")
        secrets = folder / "keys"
        secrets.write_text(key_source(config).new_line())
        config = replace(config, storage=replace(config.storage, keys_file=str(secrets)))
    with (
        RunningService(folder, config=config, store_url=url) as service,
        Receiver() as receiver,
    ):
        receiver.answer(Reply(status=200, body=ANSWER.encode()))
        yield furnish(service, receiver, KEY)


@pytest.fixture(scope="module")
def answers(estate: Estate) -> dict[str, Answer]:
    """Every page that reads, by its path."""
    return {path: estate.tab.get(path) for path in estate.pages()}


def test_every_page_that_reads_is_there(answers: dict[str, Answer]) -> None:
    assert [path for path, answer in answers.items() if answer.status != 200] == []


def test_no_page_shows_content_of_a_report_or_an_event(
    estate: Estate, answers: dict[str, Answer]
) -> None:
    shown = {path: answer.body.decode() for path, answer in answers.items()}

    assert [(path, text) for path in shown for text in CONTENT if text in shown[path]] == []
    # It is there: the operations that no page has would show it.
    store = estate.service.services.store
    blocks = estate.service.call(store.audit_chain(estate.tenant, after=0, limit=100))
    assert any(FAMILY.encode() in block.records for block in blocks)


def test_names_with_markup_are_shown_as_text(estate: Estate, answers: dict[str, Answer]) -> None:
    shown = {path: answer.body.decode() for path, answer in answers.items()}

    assert [path for path, page in shown.items() if "<script>alert" in page] == []
    named = [path for path, page in shown.items() if "&lt;script&gt;alert(&quot;x&quot;)" in page]
    for kind, id_ in {
        "tenants": estate.tenant,
        "clients": estate.client,
        "endpoints": estate.endpoint,
    }.items():
        assert f"{OPERATIONS}/{kind}" in named
        assert f"{OPERATIONS}/{kind}/{id_}" in named
    assert f"{OPERATIONS}/audit" in named


def test_an_integrator_has_none_of_the_pages(estate: Estate) -> None:
    tab = open_tab(estate.lab)
    pages = [path for path in estate.pages() if path != "/console/"]

    assert {tab.get(path).status for path in pages} == {403}
    assert {tab.post(form_path(name)).status for name in OFFERED} == {403}


def test_the_overview_shows_what_there_is_and_how_the_service_does(estate: Estate) -> None:
    text = text_of(estate.tab.get("/console/"))

    assert "Tenants 1 1 enabled" in text
    assert "Clients 1 1 enabled" in text
    assert "Endpoints 1 1 active" in text
    assert "ready A write and a read took" in text
    version = estate.service.call(estate.service.services.store.schema_version())
    assert version.number > 0
    assert f"Schema version, by its last upgrade {version.number}" in text
    assert "Event loop held, longest of the last minute" in text
    assert "diagnosticreport" in text
    assert "fhirpub_resource_types" in text


def test_the_page_of_a_tenant_has_what_belongs_to_it(estate: Estate) -> None:
    page = estate.tab.get(f"{OPERATIONS}/tenants/{estate.tenant}").body.decode()

    assert f"{OPERATIONS}/clients/{estate.client}" in page
    assert f"{OPERATIONS}/endpoints/{estate.endpoint}" in page
    assert f"{OPERATIONS}/audit/{estate.tenant}" in page
    assert f"{OPERATIONS}/erasures?tenant={estate.tenant}" in page
    assert "stored bytes" in page


def test_the_page_of_an_endpoint_has_its_deliveries_without_their_bodies(estate: Estate) -> None:
    text = text_of(estate.tab.get(f"{OPERATIONS}/endpoints/{estate.endpoint}"))

    assert f"DiagnosticReport/{estate.report}" in text
    assert "delivered" in text
    assert "1: 200 in" in text


def test_of_a_search_the_audit_trail_shows_only_the_names_of_parameters(estate: Estate) -> None:
    text = text_of(estate.tab.get(f"{OPERATIONS}/audit/{estate.tenant}?action=search"))

    assert "search 200" in text
    assert "identifier" in text
    assert FAMILY not in text


def test_a_chain_is_verified_by_a_button(estate: Estate) -> None:
    answer = estate.tab.post(f"{OPERATIONS}/audit/{estate.tenant}")

    assert answer.status == 200
    assert "The chain is right" in text_of(answer)


@pytest.mark.parametrize("command", LEFT_OUT)
def test_an_operation_that_shows_content_has_no_page(command: str, estate: Estate) -> None:
    (operation,) = [one for one in TABLE if one.command == command]

    assert estate.tab.get(form_path(operation.name)).status == 404
    assert f"fhirpub {command}" in text_of(estate.tab.get(OPERATIONS))


def test_what_does_not_exist_is_not_found(estate: Estate) -> None:
    for path in ("tenants/x", "clients/x", "endpoints/x", "audit/x", "run/x"):
        assert estate.tab.get(f"{OPERATIONS}/{path}").status == 404
    assert estate.tab.get(f"{OPERATIONS}/clients?tenant={SCRIPT[:7]}").status == 404
