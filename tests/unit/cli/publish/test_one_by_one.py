"""Files that were named are registered in their order, and what became of each is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.one_by_one import publish_each
from fhirpub.cli.publish.outcome import Outcome
from tests.bodies import document, register_body
from tests.unit.cli.publish.services import PUBLISHED, service_at


def write(folder: Path, *names: str, **changes: Any) -> list[str]:
    for name in names:
        (folder / name).write_text(json.dumps(register_body(name, **changes)))
    return [str(folder / name) for name in names]


async def publish(stub: Any, *files: str, documents: tuple[Path, ...] = ()) -> list[Outcome]:
    return await publish_each(service_at(stub.address), files, documents, as_json=True)


def bodies(stub: Any) -> list[Any]:
    return [json.loads(body) for path, _, body in stub.requests if path != "/oauth/token"]


async def test_files_are_sent_in_their_order_with_one_token(
    stub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.answers = [PUBLISHED]
    files = write(tmp_path, "b.json", "a.json")

    outcomes = await publish(stub, *files)

    assert [(one.file, one.result, one.id) for one in outcomes] == [
        (file, "created", "7") for file in files
    ]
    assert [path for path, _, _ in stub.requests] == [
        "/oauth/token",
        *["/fhir/r4/DiagnosticReport/$register"] * 2,
    ]
    assert [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()] == files


async def test_a_file_that_is_no_report_does_not_stop_the_next(stub: Any, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED]
    (tmp_path / "x.json").write_text("{")
    (file,) = write(tmp_path, "a.json")

    outcomes = await publish(stub, str(tmp_path / "x.json"), file)

    assert [one.result for one in outcomes] == ["not sent", "created"]
    assert outcomes[0].reason


async def test_without_a_token_the_rest_is_not_sent(
    stub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.token_answer = (401, {}, {"error": "invalid_client"})
    files = write(tmp_path, "a.json", "b.json")

    outcomes = await publish(stub, *files)

    assert [(one.file, one.result) for one in outcomes] == [(file, "not sent") for file in files]
    assert len(stub.requests) == 1
    assert "no token: 401 invalid_client" in capsys.readouterr().err


async def test_documents_that_are_named_are_attached(stub: Any, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED]
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.4")
    (file,) = write(tmp_path, "a.json", presentedForm=None)

    await publish(stub, file, documents=(tmp_path / "d.pdf",))

    (body,) = bodies(stub)
    report = body["parameter"][-1]["resource"]
    assert [form["data"] for form in report["presentedForm"]] == ["JVBERi0xLjQ="]


async def test_documents_of_a_report_are_read_from_its_folder(stub: Any, tmp_path: Path) -> None:
    stub.answers = [PUBLISHED]
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.4")
    named = [{"contentType": "application/pdf", "url": "d.pdf"}]
    (file,) = write(tmp_path, "a.json", presentedForm=named)

    await publish(stub, file)

    (form,) = bodies(stub)[0]["parameter"][-1]["resource"]["presentedForm"]
    assert form["data"] == "JVBERi0xLjQ="


async def test_a_file_of_xml_is_read_as_xml(stub: Any, tmp_path: Path) -> None:
    (tmp_path / "a.XML").write_text("<a/>")

    (outcome,) = await publish(stub, str(tmp_path / "a.XML"))

    assert outcome.result == "not sent"
    assert "in the namespace http://hl7.org/fhir" in outcome.reason


async def test_documents_that_are_named_join_those_of_the_report(
    stub: Any, tmp_path: Path
) -> None:
    stub.answers = [PUBLISHED]
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.4")
    (file,) = write(tmp_path, "a.json", presentedForm=[document()])

    await publish(stub, file, documents=(tmp_path / "d.pdf",))

    forms = bodies(stub)[0]["parameter"][-1]["resource"]["presentedForm"]
    assert [form["data"] for form in forms] == [document()["data"], "JVBERi0xLjQ="]
