"""What is stored of a resource and its documents, and what lists show of them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.document import extract_attachments
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.versions import (
    Listing,
    Shown,
    attach,
    document_in,
    documents_of,
    events_of,
    key_of,
    meta_of_subset,
    parse_document_id,
    still_attached,
    to_blobs,
    with_server_meta,
    with_trace,
    without_documents,
)
from fhirpub.plugin_api import Change, ResourceType
from fhirpub.storage.contract import SMALL_BYTES, Blob
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, new_member_id
from fhirpub.testing.store_contract import a_blob
from tests.bodies import document
from tests.unit.interactions.histories import BASE, REPORT

TIME = 1_767_225_600_000
STAMP = "2026-01-01T00:00:00.000Z"
ID = "34926f96-0f76-4bf8-8d32-a6b9ec2f8936"
SUBSETTED = {
    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
    "code": "SUBSETTED",
}
R4 = "http://hl7.org/fhir/StructureDefinition/"


def context_of(store: Any = None) -> Context:
    found = SimpleNamespace(resources=store, fhir_url=BASE, types={"DiagnosticReport": REPORT})
    return cast("Context", found)


def given(resource: dict[str, Any]) -> dict[str, Any]:
    sent = {"resourceType": "DiagnosticReport", **resource}
    return with_server_meta(sent, ID, version=3, updated=TIME)


def test_a_resource_gets_its_id_version_and_time() -> None:
    assert given({"status": "final"}) == {
        "resourceType": "DiagnosticReport",
        "id": ID,
        "meta": {"versionId": "3", "lastUpdated": STAMP},
        "status": "final",
    }


def test_they_stand_before_what_was_sent() -> None:
    assert [*given({"status": "final", "id": "x"})] == ["resourceType", "id", "meta", "status"]


def test_the_id_of_the_sender_is_left_out_with_its_extensions() -> None:
    found = given({"id": "x", "_id": {"extension": []}})

    assert found["id"] == ID
    assert "_id" not in found


def test_the_meta_of_the_sender_stays_but_for_version_and_time() -> None:
    sent = {
        "versionId": "9",
        "_versionId": {"id": "a"},
        "lastUpdated": "2001-01-01T00:00:00Z",
        "_lastUpdated": {"id": "b"},
        "source": "urn:lab",
        "_source": {"id": "c"},
    }

    assert given({"meta": sent})["meta"] == {
        "versionId": "3",
        "lastUpdated": STAMP,
        "source": "urn:lab",
        "_source": {"id": "c"},
    }


def test_what_was_sent_is_not_changed() -> None:
    sent = {"resourceType": "DiagnosticReport", "id": "x", "_id": {}, "meta": {"versionId": "9"}}
    before = json.dumps(sent)

    with_server_meta(sent, ID, version=1, updated=TIME)

    assert json.dumps(sent) == before


def subset(**meta: Any) -> dict[str, Any]:
    return meta_of_subset({"resourceType": "Observation", "meta": meta})


def test_a_subset_is_tagged() -> None:
    assert subset(versionId="1") == {"versionId": "1", "tag": [SUBSETTED]}


def test_a_subset_keeps_its_other_tags_and_is_tagged_once() -> None:
    other = {"system": "urn:t", "code": "x"}

    assert subset(tag=[SUBSETTED, other])["tag"] == [other, SUBSETTED]


def test_a_subset_claims_only_the_profile_of_its_type() -> None:
    own, vital = f"{R4}Observation", f"{R4}vitalsigns"

    assert subset(profile=[vital, own, f"{own}|4.0.1", None])["profile"] == [own, f"{own}|4.0.1"]
    assert "profile" not in subset(profile=[vital])


def test_a_subset_has_no_extensions_of_profiles() -> None:
    found = subset(profile=[f"{R4}Observation"], _profile=[{"id": "x"}])

    assert "_profile" not in found
    assert found["profile"] == [f"{R4}Observation"]
    assert "_profile" not in subset(_profile=[{"id": "x"}])


def test_the_meta_of_the_resource_itself_is_not_changed() -> None:
    meta = {"profile": ["x"], "tag": [{"code": "y"}]}

    meta_of_subset({"resourceType": "Observation", "meta": meta})

    assert meta == {"profile": ["x"], "tag": [{"code": "y"}]}


def documents(*attachments: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    resource = {
        "resourceType": "DiagnosticReport",
        "meta": {"versionId": "1"},
        "presentedForm": [*attachments],
    }
    found, _undecodable = extract_attachments(resource, REPORT.attachments)
    return resource, found


def test_a_document_that_comes_twice_is_kept_once_as_it_first_came() -> None:
    _resource, found = documents(
        document(b"a"), document(b"b"), document(b"a", contentType="text/plain")
    )

    blobs = to_blobs(found)

    assert [(blob.content_type, blob.data) for blob in blobs] == [
        ("application/pdf", b"a"),
        ("application/pdf", b"b"),
    ]
    assert blobs[0].sha256 == document(b"a")["hash"]


def test_documents_of_the_limit_together_are_held() -> None:
    first, second = a_blob(b"x" * (SMALL_BYTES - 5)), a_blob(b"y" * 5)
    third = a_blob(b"z")

    assert attach([first, second, third]) == ((first, second), (third,))


def test_a_document_held_by_no_version_stays_so() -> None:
    held = a_blob(b"held")
    latest = replace(a_version(), attached=(held,))

    assert still_attached(latest, []) == ()
    assert still_attached(latest, {a_blob(b"other").sha256}) == ()


def test_the_key_of_a_version_is_that_of_its_events() -> None:
    version = a_version(system="urn:s", value="7")

    assert key_of(version) == {"system": "urn:s", "value": "7"}


def test_the_events_of_a_change_have_ids_that_follow_from_it() -> None:
    events = [SimpleNamespace(type=f"report.{name}", data={"n": name}) for name in ("a", "b")]
    declared = cast("ResourceType", SimpleNamespace(events=lambda _change: events))
    change = cast("Change", SimpleNamespace(id=ID, version=4))

    assert json.loads(events_of(change, declared)) == [
        {"id": f"{ID}.4.1", "type": "report.a", "data": {"n": "a"}},
        {"id": f"{ID}.4.2", "type": "report.b", "data": {"n": "b"}},
    ]


def test_each_event_has_the_trace_of_its_request() -> None:
    events = dumps([{"id": "1", "data": {}}, {"id": "2"}])

    assert json.loads(with_trace(events, "00-a-b-01")) == [
        {"id": "1", "data": {}, "traceparent": "00-a-b-01"},
        {"id": "2", "traceparent": "00-a-b-01"},
    ]


def test_what_is_shown_of_a_version_is_its_body_and_where_it_is() -> None:
    version = a_version(version=2, body=b"{}")

    assert Shown.of(version) == Shown("DiagnosticReport", version.id, 2, b"{}")


def test_a_list_is_as_large_as_what_is_in_it() -> None:
    assert Listing([b"abc", b"de"], lambda _context: {}).size == 5
    assert Listing([], lambda _context: {}).size == 0


async def test_documents_are_those_that_a_version_holds_and_others(store: SqliteStore) -> None:
    held, other = a_blob(b"held"), a_blob(b"other")
    version = a_version(attached=(held,), documents=(held.sha256, other.sha256))
    await store.add(LAB, version, [other])

    found = await documents_of(version, tenant_id=LAB, context=context_of(store))

    assert {name: info.size for name, info in found.items()} == {held.sha256: 4, other.sha256: 5}


async def test_documents_that_a_version_holds_are_not_read(store: SqliteStore) -> None:
    held = a_blob(b"held")
    version = a_version(attached=(held,), documents=(held.sha256,))

    found = await documents_of(version, tenant_id=LAB, context=context_of(store=None))

    assert [*found] == [held.sha256]


async def test_a_document_that_is_missing_is_no_answer(store: SqliteStore) -> None:
    version = a_version(documents=(a_blob(b"x").sha256,))

    with pytest.raises(StoreUnavailable) as refused:
        await documents_of(version, tenant_id=LAB, context=context_of(store))

    assert refused.value.reason == "a document is missing"


async def test_one_of_two_documents_is_no_answer(store: SqliteStore) -> None:
    held = a_blob(b"held")
    version = a_version(attached=(held,), documents=(held.sha256, a_blob(b"x").sha256))

    with pytest.raises(StoreUnavailable):
        await documents_of(version, tenant_id=LAB, context=context_of(store))


async def test_documents_of_another_tenant_are_missing(store: SqliteStore) -> None:
    blob = a_blob(b"x")
    version = a_version(documents=(blob.sha256,))
    await store.add(OTHER, version, [blob])

    with pytest.raises(StoreUnavailable):
        await documents_of(version, tenant_id=LAB, context=context_of(store))


def shown(*attachments: dict[str, Any], type_name: str = "DiagnosticReport") -> dict[str, Any]:
    resource, _found = documents(*attachments)
    version = Shown(type_name, ID, 5, dumps(resource))
    return without_documents(version, context=context_of())


def test_lists_show_documents_by_their_addresses() -> None:
    forms = shown(document(b"a"), document(b"b"))["presentedForm"]

    assert [form["url"] for form in forms] == [
        f"{BASE}/Binary/{ID}.5.1",
        f"{BASE}/Binary/{ID}.5.2",
    ]
    assert all("data" not in form for form in forms)


def test_what_is_shown_without_a_document_is_tagged_so() -> None:
    assert shown(document(b"a"))["meta"] == {"versionId": "1", "tag": [SUBSETTED]}


def test_what_has_no_document_is_shown_whole() -> None:
    assert shown()["meta"] == {"versionId": "1"}


def test_a_type_that_is_not_served_any_more_has_no_documents() -> None:
    assert "tag" not in shown(document(b"a"), type_name="Flag")["meta"]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (f"{ID}.1.1", (ID, 1, 1)),
        (f"{ID}.1234567890.123456789", (ID, 1_234_567_890, 123_456_789)),
        (f"{ID}.12345678901.1", None),
        (f"{ID}.1.1234567890", None),
        (f"{ID}.0.1", None),
        (f"{ID}.1.0", None),
        (f"{ID}.01.1", None),
        (f"{ID}.1", None),
        (f"{ID}.1.1.1", None),
        (f"{ID.upper()}.1.1", None),
        (f"{'0' * 36}.1.1", None),
        (f"x{ID}.1.1", None),
        (f"{ID}.1.1\n", None),
        ("", None),
    ],
)
def test_the_id_of_a_document_is_one_of_those_that_lists_show(
    text: str, parsed: tuple[str, int, int] | None
) -> None:
    assert parse_document_id(text) == parsed


def test_the_document_of_a_member_has_an_id_too() -> None:
    member = new_member_id()

    assert parse_document_id(f"{member}.1.1") == (member, 1, 1)


def test_a_document_is_found_by_its_number() -> None:
    resource, found = documents(document(b"a"), document(b"b", contentType="text/plain"))
    body = dumps(resource)

    info = document_in(context_of(), body, type_name="DiagnosticReport", number=2)

    assert info is not None
    assert (info.sha256, info.content_type) == (found[1].sha256, "text/plain")


@pytest.mark.parametrize(("type_name", "number"), [("DiagnosticReport", 2), ("Flag", 1)])
def test_a_document_that_is_not_there_is_none(type_name: str, number: int) -> None:
    body = dumps(documents(document(b"a"))[0])

    assert document_in(context_of(), body, type_name=type_name, number=number) is None


def test_a_blob_has_what_its_document_states() -> None:
    _resource, found = documents(document(b"abc", contentType="text/plain"))

    assert to_blobs(found) == (Blob(document(b"abc")["hash"], "text/plain", b"abc"),)


def test_ids_of_versions_are_those_of_resources() -> None:
    assert parse_document_id(f"{new_id()}.1.1") is not None
