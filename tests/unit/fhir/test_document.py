"""Documents leave a resource for markers, and come back in their places."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.document import (
    Document,
    attachment_info,
    cut_at_documents,
    decode,
    decode_exactly,
    documents_in,
    extract_attachments,
    hash_verdict,
    is_marker,
    list_form,
    marker,
)
from fhirpub.fhir.strict_json import dumps
from fhirpub.problems import ContentProblem

DATA = b"synthetic document"
NAME = hashlib.sha256(DATA).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
ELEMENTS = ("photo", "content.attachment")


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def with_photos(*photos: Any) -> dict[str, Any]:
    return {"resourceType": "Patient", "photo": list(photos)}


def test_a_document_leaves_a_marker_with_its_digest_and_size() -> None:
    resource = with_photos({"contentType": "image/png", "data": text_of(DATA)})

    documents, issues = extract_attachments(resource, ELEMENTS)

    assert documents == (Document(NAME, "image/png", DATA, "photo[0]"),)
    assert issues == ()
    assert resource["photo"] == [{"contentType": "image/png", "data": f"\x00{NAME}.{len(DATA)}"}]


def test_documents_are_found_at_each_element_in_order() -> None:
    resource = with_photos({"title": "none"}, {"data": text_of(b"a")}) | {
        "content": [{"attachment": {"data": text_of(b"b")}}, {"attachment": {}}]
    }

    documents, _issues = extract_attachments(resource, ELEMENTS)

    found = [(one.at, one.data) for one in documents]
    assert found == [("photo[1]", b"a"), ("content[0].attachment", b"b")]


def test_a_marker_that_stands_already_is_left() -> None:
    resource = with_photos({"data": marker(NAME, 18)})

    assert extract_attachments(resource, ELEMENTS) == ((), ())
    assert resource == with_photos({"data": marker(NAME, 18)})


@pytest.mark.parametrize("data", ["", 7, None, ["QQ=="], {"a": "b"}])
def test_data_that_are_no_text_are_left_to_the_schema(data: Any) -> None:
    resource = with_photos({"data": data}, "text")

    assert extract_attachments(resource, ELEMENTS) == ((), ())
    assert resource == with_photos({"data": data}, "text")


def test_bad_base64_is_an_issue_at_the_data() -> None:
    documents, issues = extract_attachments(with_photos({}, {"data": "QQ="}), ELEMENTS)

    said = (
        "must be base64 (RFC 4648 section 4): its length is no multiple of 4: it is cut short, "
        "or lacks = at its end"
    )
    assert issues == (Issue.error(ContentProblem.BASE64_INVALID, said, "photo[1].data"),)
    assert [one.data for one in documents] == [b""]


def test_each_bad_base64_is_an_issue_and_the_others_are_taken_out() -> None:
    photos = [{"data": text} for text in ("QQ=", text_of(DATA), "Q-==")]
    resource = with_photos(*photos)

    documents, issues = extract_attachments(resource, ELEMENTS)

    assert [issue.expression for issue in issues] == ["photo[0].data", "photo[2].data"]
    assert [one.data for one in documents] == [b"", DATA, b""]
    assert all(is_marker(photo["data"]) for photo in resource["photo"])


@pytest.mark.parametrize("kind", [7, None, ["a/b"]])
def test_a_content_type_that_is_no_text_counts_as_none(kind: Any) -> None:
    photo = {"contentType": kind, "data": text_of(DATA)}

    documents, _issues = extract_attachments(with_photos(photo), ELEMENTS)

    assert documents[0].content_type == ""


def test_a_token_stands_for_the_document_that_was_cut_out_before() -> None:
    resource = with_photos({"data": "token-1"}, {"data": text_of(b"a")})

    documents, issues = extract_attachments(resource, ELEMENTS, {"token-1": DATA})

    assert [one.data for one in documents] == [DATA, b"a"]
    assert issues == ()


def test_a_token_may_look_like_base64() -> None:
    token = text_of(b"another")

    documents, _ = extract_attachments(with_photos({"data": token}), ELEMENTS, {token: DATA})

    assert [one.data for one in documents] == [DATA]


def test_only_a_text_that_begins_with_a_nul_is_a_marker() -> None:
    assert is_marker(marker(NAME, 1))
    assert not is_marker(f"{NAME}.1")
    assert not is_marker(b"\x00")
    assert not is_marker(None)


def pieces(body: bytes) -> list[tuple[bytes, str | None]]:
    return [(bytes(piece), name) for piece, name in cut_at_documents(body)]


def test_a_body_of_json_is_cut_at_its_documents() -> None:
    body = dumps({"a": marker(NAME, 18), "b": 'x\\u0000"', "c": marker(OTHER, 5)})

    cut = pieces(body)

    assert cut == [
        (b'{"a":', NAME),
        (b',"b":"x\\\\u0000\\"","c":', OTHER),
        (b"}", None),
    ]


def test_a_body_of_xml_is_cut_at_its_documents() -> None:
    body = f'<data value="\x00{NAME}.18"/><data value="\x00{OTHER}.5"/>'.encode()

    assert pieces(body) == [
        (b"<data value=", NAME),
        (b"/><data value=", OTHER),
        (b"/>", None),
    ]


def test_a_body_without_documents_is_one_piece() -> None:
    assert pieces(b'{"a":"b\\n"}') == [(b'{"a":"b\\n"}', None)]


@pytest.mark.parametrize("between", [0, 1, 3_900, 4_020, 4_095, 4_096, 4_097, 4_200, 9_000])
def test_documents_are_found_at_any_distance(between: int) -> None:
    body = dumps([marker(NAME, 18), "a" * between, marker(OTHER, 5), "b\n" * between])

    assert [name for _piece, name in pieces(body)] == [NAME, OTHER, None]


def test_a_document_that_is_referred_to_twice_is_named_once() -> None:
    body = dumps([marker(OTHER, 5), marker(NAME, 18), marker(OTHER, 5)])

    assert documents_in(body) == (OTHER, NAME)
    assert documents_in(dumps([NAME])) == ()


def test_a_list_has_the_address_and_the_size_of_each_document() -> None:
    kept = {"data": marker(NAME, 18), "_data": {"id": "a"}, "title": "b"}
    resource = with_photos({"url": "https://x.example/"}, kept)

    found = list_form(resource, ELEMENTS, url_of=lambda number: f"Binary/{number}")

    assert found
    assert resource == with_photos(
        {"url": "https://x.example/"}, {"title": "b", "url": "Binary/2", "size": 18}
    )


def test_a_list_keeps_the_address_and_the_size_that_were_stated() -> None:
    stated = {"url": "https://x.example/a", "size": 5}
    resource = with_photos({**stated, "data": marker(NAME, 18)})

    assert list_form(resource, ELEMENTS, url_of=str)
    assert resource == with_photos(stated)


def test_a_list_without_documents_is_left_as_it_is() -> None:
    resource = with_photos({"url": "https://x.example/a"})

    assert not list_form(resource, ELEMENTS, url_of=str)
    assert resource == with_photos({"url": "https://x.example/a"})


def test_the_document_of_an_attachment_is_found_by_its_number() -> None:
    one = {"data": marker(NAME, 18), "contentType": "image/png", "title": "A"}
    resource = with_photos({}, one)

    assert attachment_info(resource, ELEMENTS, number=1) is None
    found = attachment_info(resource, ELEMENTS, number=2)
    assert found is not None
    assert (found.sha256, found.content_type, found.title) == (NAME, "image/png", "A")
    assert attachment_info(resource, ELEMENTS, number=3) is None


def test_an_attachment_needs_neither_type_nor_title() -> None:
    found = attachment_info(with_photos({"data": marker(NAME, 1)}), ELEMENTS, number=1)

    assert found is not None
    assert (found.content_type, found.title) == ("", "")


@pytest.mark.parametrize("data", [b"a", b"ab", b"abc", b"abcd", b"\xff\xfe" * 5])
def test_base64_is_decoded_with_and_without_white_space(data: bytes) -> None:
    text = text_of(data)

    assert decode(text) == data
    assert decode(f" {text[:2]}\r\n\t{text[2:]}\n") == data
    assert decode_exactly(memoryview(text.encode())) == data


@pytest.mark.parametrize("text", ["", "QQ", "QQ=", "QR==", "QUJ=", "Q-==", "_w==", "QQ==QQ=="])
def test_what_encoding_would_not_give_back_is_no_base64(text: str) -> None:
    assert decode(text) is None
    assert decode_exactly(memoryview(text.encode())) is None


@pytest.mark.parametrize("text", ["QQ==\n", "Q Q==", " QQ=="])
def test_text_with_white_space_cannot_be_taken_out_of_json(text: str) -> None:
    assert decode_exactly(memoryview(text.encode())) is None


DOCUMENT = Document(NAME, "", DATA, "photo[0]")
SHA1 = hashlib.sha1(DATA, usedforsecurity=False)
SHA256 = hashlib.sha256(DATA)


@pytest.mark.parametrize("made", [SHA1, SHA256], ids=["sha-1", "sha-256"])
def test_a_hash_is_known_in_hex_and_in_base64(made: Any) -> None:
    forms = [made.hexdigest(), made.hexdigest().upper(), text_of(made.digest())]

    assert [hash_verdict(form, DOCUMENT) for form in forms] == [True, True, True]


@pytest.mark.parametrize("made", [hashlib.sha1, hashlib.sha256], ids=["sha-1", "sha-256"])
def test_the_hash_of_another_document_is_wrong(made: Any) -> None:
    other = made(b"other")

    assert hash_verdict(other.hexdigest(), DOCUMENT) is False
    assert hash_verdict(text_of(other.digest()), DOCUMENT) is False


@pytest.mark.parametrize(
    "text", ["", NAME[:63], NAME + "0", hashlib.sha512(DATA).hexdigest(), text_of(b"a" * 16)]
)
def test_a_hash_of_another_length_has_no_verdict(text: str) -> None:
    assert hash_verdict(text, DOCUMENT) is None


@pytest.mark.parametrize("between", range(3_840, 4_110, 9))
def test_a_document_at_the_end_of_what_is_searched_is_found_once(between: int) -> None:
    body = dumps(["\\" + "a" * between, marker(NAME, 18), marker(OTHER, 5)])

    assert [name for _piece, name in pieces(body)] == [NAME, OTHER, None]
