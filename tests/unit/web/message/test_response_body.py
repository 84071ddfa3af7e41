"""Response bodies with documents of any size."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.document import marker
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.storage.contract import SMALL_BYTES, BlobInfo
from fhirpub.web.message.response_body import BlobSlice, ResponseBody

LARGE = bytes(range(256)) * 1_000


class Kept(dict[str, bytes]):
    """Stored documents, by their names."""

    def keep(self, data: bytes) -> BlobInfo:
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        at_hand = data if len(data) <= SMALL_BYTES else None
        return BlobInfo(name, "application/pdf", len(data), at_hand)

    async def read(self, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part in pieces of 30 kB."""
        data = self[blob.sha256][part]
        for start in range(0, len(data), 30_000):
            yield data[start : start + 30_000]


def all_of(body: ResponseBody) -> bytes:
    async def collected() -> list[bytes]:
        return [piece async for piece in body.pieces()]

    return b"".join(asyncio.run(collected()))


def attachments(blobs: Mapping[str, BlobInfo]) -> dict[str, object]:
    forms = [{"data": marker(blob.sha256, blob.size)} for blob in blobs.values()]
    return {"resourceType": "DiagnosticReport", "presentedForm": forms, "conclusion": "x"}


def test_what_is_short_is_sent_together_also_behind_what_is_long() -> None:
    body = ResponseBody([bytes(70_000), *[b"short"] * 9, bytes(66_000), b"end"], Kept().read)

    async def sizes() -> list[int]:
        return [len(piece) async for piece in body.pieces()]

    assert asyncio.run(sizes()) == [65_536, 70_000 - 65_536 + 45 + 65_536, 66_000 - 65_536 + 3]


@given(st.lists(st.integers(0, 200_000), max_size=4))
def test_documents_stand_where_they_were(sizes: list[int]) -> None:
    kept = Kept()
    documents = [bytes([number]) * size for number, size in enumerate(sizes)]
    blobs = {blob.sha256: blob for blob in map(kept.keep, documents)}
    text = dumps(attachments(blobs))

    body = ResponseBody.with_documents(text, blobs, kept.read)
    written = all_of(body)

    forms = loads_stored(written)["presentedForm"]
    assert [base64.b64decode(form["data"]) for form in forms] == list(kept.values())
    assert body.length == len(written)


def test_documents_stand_in_xml_too() -> None:
    kept = Kept()
    blob = kept.keep(LARGE)
    text = write_xml({"resourceType": "Binary", "id": "a", "data": marker(blob.sha256, blob.size)})

    written = all_of(ResponseBody.with_documents(text, {blob.sha256: blob}, kept.read))

    assert b'<data value="%b"/>' % base64.b64encode(LARGE) in written


@pytest.mark.parametrize("data", [LARGE, LARGE[:1_000]])
def test_a_part_of_a_document_is_as_it_was(data: bytes) -> None:
    kept = Kept()

    body = ResponseBody([BlobSlice(kept.keep(data), slice(7, 900))], kept.read)

    assert all_of(body) == data[7:900]
    assert body.length == 893


def test_what_is_short_is_sent_together() -> None:
    kept = Kept()
    blobs = {blob.sha256: blob for blob in (kept.keep(b"%d" % number) for number in range(1_000))}
    body = ResponseBody.with_documents(dumps(attachments(blobs)), blobs, kept.read)

    async def count() -> int:
        return len([piece async for piece in body.pieces()])

    assert asyncio.run(count()) < 4


@given(st.lists(st.tuples(st.sampled_from(["\\", '"', "u0000", "x"]), st.integers(0, 5_000))))
def test_documents_are_found_between_texts_of_any_length(texts: list[tuple[str, int]]) -> None:
    kept = Kept()
    blob = kept.keep(b"data")
    written = [mark * length for mark, length in texts]
    form = {"data": marker(blob.sha256, blob.size)}
    stored = dumps({"text": [[text, form] for text in written]})

    body = ResponseBody.with_documents(stored, {blob.sha256: blob}, kept.read)

    expected = {"text": [[text, {"data": "ZGF0YQ=="}] for text in written]}
    assert all_of(body) == dumps(expected)


def test_what_is_long_is_sent_in_pieces_of_bounded_size() -> None:
    kept = Kept()
    body = ResponseBody([BlobSlice(kept.keep(LARGE), slice(0, len(LARGE)))], kept.read)

    async def lengths() -> list[int]:
        return [len(piece) async for piece in body.pieces()]

    assert max(asyncio.run(lengths())) < 128 * 1024


def test_what_is_at_hand_is_returned_at_once() -> None:
    kept = Kept()
    small = kept.keep(b"data")
    whole = BlobSlice(small, slice(0, 4), encoded=True)
    body = ResponseBody([b"<", whole, b"|", BlobSlice(small, slice(1, 3)), b">"], kept.read)

    assert body.at_once() == b'<"ZGF0YQ=="|at>'
    assert body.length == len(body.at_once() or b"")


def test_what_has_to_be_read_first_is_not_returned_at_once() -> None:
    kept = Kept()
    body = ResponseBody([b"<", BlobSlice(kept.keep(LARGE), slice(0, 9))], kept.read)

    assert body.at_once() is None
