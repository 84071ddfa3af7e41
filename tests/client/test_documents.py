"""The body of a registration is sent in small pieces, of exactly the length that is announced."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub_client.documents import Body, Document, check_hash, data_of
from tests.bodies import register_body


def body_with(files: list[Path]) -> Body:
    return Body.of(
        register_body("R-1", presentedForm=None),
        [Document(file) for file in files],
        entry="diagnosticReport",
        element="presentedForm",
    )


@given(sizes=st.lists(st.integers(0, 500_000), max_size=3))
def test_the_pieces_are_the_body_that_was_announced(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    files = [folder / f"{place}.pdf" for place in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        file.write_bytes(b"x" * size)

    body = body_with(files)
    pieces = [*body.pieces()]

    assert sum(map(len, pieces)) == body.size
    sent = json.loads(b"".join(pieces))
    (report,) = [
        each["resource"] for each in sent["parameter"] if each["name"] == "diagnosticReport"
    ]
    assert [len(each["data"]) for each in report.get("presentedForm", [])] == [
        -(-size // 3) * 4 for size in sizes
    ]


def test_no_piece_of_a_file_is_larger_than_256_kib(tmp_path: Path) -> None:
    file = tmp_path / "large.pdf"
    file.write_bytes(bytes(3_000_000))

    assert max(map(len, body_with([file]).pieces())) <= 256 * 1024


def test_the_callers_parameters_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF")
    parameters = register_body("R-1")
    before = json.dumps(parameters)

    Body.of(parameters, [Document(file)], entry="diagnosticReport", element="presentedForm")

    assert json.dumps(parameters) == before


def test_documents_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF")

    body = Body.of(
        register_body("R-1"), [Document(file)], entry="diagnosticReport", element="presentedForm"
    )

    sent = json.loads(b"".join(body.pieces()))
    assert len(sent["parameter"][2]["resource"]["presentedForm"]) == 2


def test_each_file_stands_in_its_own_attachment(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.pdf", "b.pdf")]
    for file in files:
        file.write_bytes(file.name.encode())

    sent = json.loads(b"".join(body_with(files).pieces()))

    forms = sent["parameter"][2]["resource"]["presentedForm"]
    read = [base64.b64decode(each["data"]) for each in forms]
    assert read == [b"a.pdf", b"b.pdf"]
    assert [each["hash"] for each in forms] == [hashlib.sha256(data).hexdigest() for data in read]


def test_only_the_first_entry_of_a_name_gets_the_documents(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF")
    entries = [{"name": "report", "valueString": "x"}] + [
        {"name": "report", "resource": {}} for _ in range(2)
    ]

    body = Body.of({"parameter": entries}, [Document(file)], entry="report", element="form")

    named, first, second = json.loads(b"".join(body.pieces()))["parameter"]
    assert named == {"name": "report", "valueString": "x"}
    assert len(first["resource"]["form"]) == 1
    assert second["resource"] == {}


def test_a_body_can_be_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF")
    body = body_with([file])

    assert b"".join(body.pieces()) == b"".join(body.pieces())


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        ("a.pdf", {}, ("application/pdf", "a.pdf")),
        ("a.unheard", {}, ("application/octet-stream", "a.unheard")),
        ("a.pdf", {"content_type": "text/plain", "title": "Scan"}, ("text/plain", "Scan")),
    ],
)
def test_type_and_title_are_those_that_are_given_or_of_the_name(
    tmp_path: Path, name: str, given: dict[str, str], found: tuple[str, str]
) -> None:
    (tmp_path / name).write_bytes(b"x")

    attachment = Document(str(tmp_path / name), **given).to_attachment()

    assert (attachment["contentType"], attachment["title"]) == found


def test_an_attachment_with_neither_data_nor_address_has_no_document() -> None:
    with pytest.raises(ValueError, match="neither data nor url"):
        data_of({"contentType": "text/plain"})


def test_an_attachment_of_no_bytes_is_a_document() -> None:
    assert data_of({"data": ""}) == b""


@pytest.mark.parametrize("attachment", [{}, {"hash": ""}])
def test_a_document_without_a_stated_hash_is_taken(attachment: dict[str, str]) -> None:
    assert check_hash(attachment, b"abc") == b"abc"


def test_a_document_in_its_attachment_is_compared_with_its_hash() -> None:
    right = {"hash": hashlib.sha256(b"abc").hexdigest()}

    assert check_hash(right, b"abc") == b"abc"
    with pytest.raises(ValueError, match="another hash"):
        check_hash(right, b"abd")


@pytest.mark.parametrize(
    "entries", [[], [{"name": "other", "resource": {}}], [{"name": "report", "valueString": "x"}]]
)
def test_documents_need_an_entry_to_be_added_to(tmp_path: Path, entries: list[object]) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    documents = [Document(tmp_path / "a.pdf")]

    with pytest.raises(ValueError, match=r"^there is no entry report to add documents to$"):
        Body.of({"parameter": entries}, documents, entry="report", element="form")


def test_what_else_is_sent_stays_beside_the_documents(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    parameters = {"resourceType": "Parameters", "parameter": [{"name": "r", "resource": {"a": 1}}]}

    body = Body.of(parameters, [Document(tmp_path / "a.pdf")], entry="r", element="form")

    sent = json.loads(b"".join(body.pieces()))
    assert sent["resourceType"] == "Parameters"
    assert sent["parameter"][0]["resource"]["a"] == 1


def test_a_file_that_is_missing_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        body_with([tmp_path / "missing.pdf"])
