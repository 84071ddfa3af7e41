"""What the records of a store compute of their fields."""

from __future__ import annotations

import pytest

from fhirpub.storage.records import Blob, BlobInfo, SigningKey
from fhirpub.testing.samples import a_version, successor

BLOB = Blob("0" * 64, "text/plain", b"12345")


def test_the_entity_tag_of_a_version_is_its_number() -> None:
    assert a_version(version=12).tag == "12"


@pytest.mark.parametrize(("updated", "is_first"), [(5, True), (6, False)])
def test_what_was_created_when_it_was_updated_is_the_first(
    updated: int, *, is_first: bool
) -> None:
    assert a_version(version=3, created=5, updated=updated).is_first is is_first


def test_the_size_is_that_of_all_that_can_be_large() -> None:
    version = a_version(
        body=b"1", parts=b"12", response=b"123", events=b"1234", attached=(BLOB, BLOB)
    )

    assert version.own_size == 1 + 2 + 3 + 4 + 5 + 5


def test_the_size_has_all_members() -> None:
    member = a_version(body=b"123", events=b"", attached=(BLOB,))

    whole = a_version(body=b"1", events=b"", members=(member, member))

    assert (whole.own_size, whole.size) == (1, 1 + 8 + 8)


def test_readers_see_nothing_internal() -> None:
    version = a_version(
        documents=("d",),
        attached=(BLOB,),
        response=b"r",
        parts=b"p",
        events=b"e",
        search=b"s",
        digest=b"d",
        members=(a_version(),),
        audit=b"a",
    )

    shown = version.without_internal_fields()

    assert shown == a_version(
        id=version.id, value=version.value, documents=("d",), attached=(BLOB,)
    )
    assert (shown.events, shown.search) == (b"[]", b"[]")


def test_a_small_document_is_described_with_its_bytes() -> None:
    assert BLOB.info == BlobInfo("0" * 64, "text/plain", 5, b"12345")


def test_the_private_key_is_not_in_the_text_of_its_record() -> None:
    key = SigningKey(
        kid="k", algorithm="ES256", environment="sandbox", created=1, private_pem=b"hidden"
    )

    assert "hidden" not in repr(key)


def test_the_next_version_carries_nothing_of_the_registration() -> None:
    following = successor(a_version(response=b"r", parts=b"p", digest=b"d"))

    assert (following.version, following.response, following.parts) == (2, b"", b"")
    assert not following.is_first
