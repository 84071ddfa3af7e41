"""The body of a registration is sent in small pieces, of exactly the length that is announced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub_client.documents import Body, Document
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
