"""What a registration stores, also above the tombstone of what was erased."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fhirpub.config.settings import LimitsConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import IdentifierErased, number_after
from fhirpub.interactions.register import (
    Candidate,
    Received,
    Rejected,
    receive_registration,
    register,
    validate_registration,
)
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import successor
from tests.bodies import document, register_body, report
from tests.unit.interactions.patients.people import (
    NATIONAL,
    TENANT,
    Ward,
    context_of,
    id_of,
    person,
)
from tests.unit.interactions.registering import (
    KEY,
    Given,
    candidate,
    found,
    prepared,
)


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


# Registered again after an erasure


def numbered(context: Context, number: int, body: Given) -> Candidate:
    received: Received = run_to_completion(
        receive_registration(
            context,
            dumps(body),
            is_xml=False,
            read_body=from_parameters,
            type_name="DiagnosticReport",
        )
    )
    made = run_to_completion(
        validate_registration(context, received.numbered(number), tenant=TENANT)
    )
    assert isinstance(made, Candidate)
    return made


async def test_what_was_erased_is_registered_above_its_tombstone(
    store: SqliteStore, context: Context
) -> None:
    one = candidate(context)
    await register(one, None, tenant=TENANT, context=context)
    await erase(store, one.version, *one.version.members, allows_reuse=True)
    tombstone = await found(context)
    number = number_after(tombstone)

    again = numbered(context, number, register_body("R-1"))
    made = await register(again, tombstone, tenant=TENANT, context=context)

    assert (number, again.version.version) == (3, 3)
    assert (made.created, made.first.id) == (True, one.id)
    assert json.loads(again.version.body)["meta"]["versionId"] == "3"
    event, *_more = json.loads(again.version.events)
    assert event["id"] == f"{one.id}.3.1"
    assert await found(context) is not None


async def test_a_number_is_kept_when_a_body_is_read_again(context: Context) -> None:
    received = run_to_completion(
        receive_registration(
            context,
            dumps(register_body("R-1")),
            is_xml=False,
            read_body=from_parameters,
            type_name="DiagnosticReport",
        )
    )

    assert received.numbered(1) is received
    for number in (2, 3):
        again = received.numbered(number)
        content = json.loads(dumps(register_body("R-1")))
        assert again.read_body(content, context.types["DiagnosticReport"]).number == number
    assert received.key == KEY


async def test_what_was_erased_in_the_meantime_is_to_be_repeated(
    store: SqliteStore, context: Context
) -> None:
    one = candidate(context)
    await register(one, None, tenant=TENANT, context=context)
    await erase(store, one.version, *one.version.members, allows_reuse=True)

    with pytest.raises(StoreUnavailable) as refused:
        await register(one, None, tenant=TENANT, context=context)

    assert refused.value.reason == "the next version is 3"


def test_an_identifier_without_a_resource_begins_with_version_1(context: Context) -> None:
    assert number_after(None) == 1
    assert number_after(candidate(context).version) == 1


def test_the_words_of_an_identifier_that_is_not_free() -> None:
    assert str(IdentifierErased("Flag", "7")) == (
        "Flag/7, which had this identifier, was erased: it cannot be registered again"
    )


# What is stored


def test_parts_have_ids_that_follow_from_the_resource(context: Context) -> None:
    version = candidate(context).version

    parts = json.loads(version.parts)
    for name in ("patient", "organization"):
        assert parts[name]["id"] == TENANT.part_id(version.id, name)
        assert parts[name]["meta"]["versionId"] == "1"
    body = json.loads(version.body)
    assert body["subject"]["reference"] == f"Patient/{parts['patient']['id']}"
    assert body["performer"][0]["reference"] == f"Organization/{parts['organization']['id']}"


def test_a_document_that_stands_twice_is_stored_once(context: Context) -> None:
    form = report("R-1")["presentedForm"][0]

    one = candidate(context, presentedForm=[form, form])

    assert len(one.version.documents) == 1
    assert len(one.version.attached) + len(one.blobs) == 1


def test_the_identifier_is_stored_beside_the_content(context: Context) -> None:
    version = candidate(context).version

    assert (version.type, version.system, version.value) == KEY
    assert (version.version, version.status) == (1, "final")
    assert version.digest != b""


def test_the_patient_of_a_person_has_the_id_of_the_person_and_the_number_of_the_version(
    store: SqliteStore,
) -> None:
    context = context_of(store, NATIONAL)
    body = register_body("R-1")
    body["parameter"][0]["resource"] = person((NATIONAL, "1"))

    version = numbered(context, 3, body).version

    stated = json.loads(version.parts)["patient"]
    assert stated["id"] == TENANT.person_id(NATIONAL, "1")
    assert stated["meta"]["versionId"] == f"{version.id}.3"
    assert json.loads(version.body)["subject"]["reference"] == f"Patient/{stated['id']}"


def test_a_resource_may_have_as_many_bytes_beside_its_documents_as_the_limit(
    context: Context,
) -> None:
    form = document(b"%PDF-" + b"x" * 5_000)
    one = candidate(context, presentedForm=[form]).version
    apart = len(one.response) + len(one.events) + sum(len(blob.data) for blob in one.attached)
    assert one.attached

    def limited(most: int) -> Context:
        limits = LimitsConfig(resource_bytes=most)
        return replace(context, config=replace(context.config, limits=limits))

    body = register_body("R-1", presentedForm=[form])
    assert isinstance(prepared(limited(one.size - apart), body), Candidate)
    assert isinstance(prepared(limited(one.size - apart - 1), body), Rejected)


async def test_a_report_that_came_with_a_reference_alone_refers_to_the_patient_that_is_held(
    store: SqliteStore,
) -> None:
    ward = Ward(store, NATIONAL)
    for one in (person(), person((NATIONAL, "1"))):
        first = await ward.report(f"R-{len(one)}", one)
        referring = await ward.referring(f"S-{len(one)}", id_of(first))

        assert id_of(referring) == id_of(first)
        (kept,) = [
            part
            for part in json.loads(referring.parts).values()
            if part["resourceType"] == "Patient"
        ]
        assert kept["id"] == id_of(first)


async def test_remarks_on_entries_are_stored_with_those_of_rules(context: Context) -> None:
    body = register_body("R-1", encounter={"reference": "Encounter/nowhere"})
    body["parameter"].append({"name": "note", "valueString": "x"})

    one = prepared(context, body)

    assert isinstance(one, Candidate)
    issues = json.loads(one.version.response)["parameter"][-1]["resource"]["issue"]
    places = [place for issue in issues for place in issue.get("expression", ())]
    assert "Parameters.parameter[3]" in places
    assert "Parameters.parameter[2].resource.encounter.reference" in places


async def test_who_comes_second_gets_the_first_version_though_it_was_updated(
    context: Context, store: SqliteStore
) -> None:
    first = await register(candidate(context), None, tenant=TENANT, context=context)
    await store.add(TENANT.id, successor(first.first, members=()))

    late = candidate(context, conclusion="another one")
    second = await register(late, None, tenant=TENANT, context=context)

    assert (second.created, second.first.version) == (False, 1)
    assert second.first.response == first.first.response != b""
