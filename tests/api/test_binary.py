"""Documents returned whole, in parts, or as a FHIR Binary."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator
from http.client import IncompleteRead
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, BlobInfo
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import PDF, document, register_body
from tests.faults.seeded import StoreWrapper, opening

SHA256 = hashlib.sha256(PDF).hexdigest()
PATH = f"/fhir/r4/Binary/{SHA256}"
SIZE = len(PDF)


@pytest.fixture(autouse=True)
def _registered(lab: Integrator) -> None:
    lab.register(register_body("B-1"))


def ask(lab: Integrator, **headers: str) -> Answer:
    return lab.get(PATH, **headers)


def test_a_document_is_returned_with_its_media_type(lab: Integrator) -> None:
    answer = ask(lab)

    assert (answer.status, answer.body) == (200, PDF)
    assert answer.headers["content-type"] == "application/pdf"


def test_a_document_that_came_twice_has_the_type_that_it_first_came_with(lab: Integrator) -> None:
    text = b"Within the reference ranges"
    forms = [document(text, contentType=name) for name in ("text/plain", "text/markdown")]
    lab.register(register_body("B-2", presentedForm=forms))

    answer = lab.get(f"/fhir/r4/Binary/{hashlib.sha256(text).hexdigest()}")

    assert answer.headers["content-type"] == "text/plain"


def test_a_document_comes_as_fhir_when_fhir_is_asked_for(lab: Integrator) -> None:
    answer = ask(lab, Accept="application/fhir+json")

    assert answer.json["resourceType"] == "Binary"
    assert base64.b64decode(answer.json["data"]) == PDF


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/pdf, application/fhir+json;q=0.1", "application/pdf"),
        ("application/fhir+json;q=0, */*", "application/pdf"),
        ("application/fhir+json;q=0.1, application/pdf;q=0", "application/fhir+json"),
        ("application/fhir+json;q=0.8, application/json", "application/fhir+json"),
        ("*/*;q=0.9, application/fhir+xml", "application/fhir+xml"),
    ],
)
def test_a_document_comes_as_what_is_asked_for_most(
    lab: Integrator, accept: str, kind: str
) -> None:
    assert ask(lab, Accept=accept).headers["content-type"] == kind


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("application/pdf", "application/pdf"),
        ("*/*", "application/pdf"),
        ("json", "application/fhir+json"),
        ("application/fhir%2Bjson", "application/fhir+json"),
        ("application/fhir+json", "application/fhir+json"),
        ("text/xml", "application/fhir+xml"),
    ],
)
def test_format_says_what_accept_can_say_and_wins(lab: Integrator, form: str, kind: str) -> None:
    other = "application/pdf" if "fhir" in kind else "application/fhir+json"

    answer = lab.get(f"{PATH}?_format={form}", Accept=other)

    assert (answer.status, answer.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize("form", ["pdf", "application/fhir+json;fhirVersion=3.0"])
def test_a_format_that_is_neither_fhir_nor_a_document_is_a_406(lab: Integrator, form: str) -> None:
    assert lab.get(f"{PATH}?_format={form}").status == 406


def test_a_document_is_saved_under_its_title(lab: Integrator) -> None:
    assert ask(lab).headers["content-disposition"] == 'inline; filename="Blood count.pdf"'


def test_a_browser_must_not_guess_what_it_is_or_run_it(lab: Integrator) -> None:
    headers = ask(lab).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox")


def test_a_document_that_is_known_is_not_sent_again(lab: Integrator) -> None:
    answer = ask(lab, If_None_Match=f'"{SHA256}"')

    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "part", "named"),
    [
        ("bytes=0-3", PDF[:4], f"bytes 0-3/{SIZE}"),
        ("bytes=5-", PDF[5:], f"bytes 5-{SIZE - 1}/{SIZE}"),
        ("bytes=-6", PDF[-6:], f"bytes {SIZE - 6}-{SIZE - 1}/{SIZE}"),
        ("bytes=-999999", PDF, f"bytes 0-{SIZE - 1}/{SIZE}"),
        ("bytes=7-999999", PDF[7:], f"bytes 7-{SIZE - 1}/{SIZE}"),
        ("Bytes=0-0", PDF[:1], f"bytes 0-0/{SIZE}"),
    ],
)
def test_a_part_is_sent_alone(lab: Integrator, asked: str, part: bytes, named: str) -> None:
    answer = ask(lab, Range=asked)

    assert (answer.status, answer.body) == (206, part)
    assert answer.headers["content-range"] == named


@pytest.mark.parametrize("size", [SMALL_BYTES, SMALL_BYTES + 1, 1_000_000])
@pytest.mark.parametrize("part", [slice(0, 1), slice(7, 900), slice(-500, None)])
def test_a_small_part_of_a_document_of_any_size_is_sent(
    lab: Integrator, size: int, part: slice
) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    lab.register(register_body("B-2", presentedForm=[document(data)]))
    first, last, _step = part.indices(size)

    answer = lab.get(
        f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}", Range=f"bytes={first}-{last - 1}"
    )

    assert (answer.status, answer.body) == (206, data[part])


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "bytes=5-2", "bytes=-", "lines=1-2", "x"])
def test_what_is_no_single_part_is_ignored(lab: Integrator, asked: str) -> None:
    answer = ask(lab, Range=asked)

    assert (answer.status, answer.body) == (200, PDF)
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=999999-", "bytes=-0"])
def test_a_part_that_is_not_there_is_a_416(lab: Integrator, asked: str) -> None:
    answer = ask(lab, Range=asked)

    assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{SIZE}")
    assert answer.json["resourceType"] == "OperationOutcome"


def test_a_part_of_other_bytes_is_not_sent(lab: Integrator) -> None:
    same = ask(lab, Range="bytes=0-3", If_Range=f'"{SHA256}"')
    other = ask(lab, Range="bytes=0-3", If_Range='"another"')

    assert (same.status, other.status) == (206, 200)


@pytest.mark.parametrize(
    ("tag", "status"),
    [(f'"{SHA256}"', 206), (f'"x", "{SHA256}"', 206), ("*", 206), (f'W/"{SHA256}"', 412)],
)
def test_a_part_is_sent_if_the_document_is_the_one_meant(
    lab: Integrator, tag: str, status: int
) -> None:
    assert ask(lab, Range="bytes=0-3", If_Match=tag).status == status


def test_head_returns_the_size_of_the_whole(lab: Integrator) -> None:
    answer = lab.request("HEAD", PATH, headers={"Range": "bytes=0-3"})

    assert (answer.status, answer.headers["content-length"]) == (200, str(SIZE))


class _LosesTheRest(StoreWrapper):
    """A store that fails in the middle of a document."""

    async def blob_pieces(
        self, tenant: str, blob: BlobInfo, part: slice
    ) -> AsyncGenerator[bytes, None]:
        yield await anext(self.inner.blob_pieces(tenant, blob, part))
        raise StoreUnavailable("gone")


@pytest.mark.parametrize("accept", ["*/*", "application/fhir+json"])
def test_a_document_that_cannot_be_read_to_its_end_is_cut_off_and_logged(
    tmp_path: Path, accept: str
) -> None:
    data = b"%PDF-" + bytes(2_000_000)
    with RunningService(tmp_path, open_store=opening(_LosesTheRest)) as service:
        lab = service.integrator()
        lab.register(register_body("cut", presentedForm=[document(data)]))
        path = f"/fhir/r4/Binary/{hashlib.sha256(data).hexdigest()}"
        with capture_logs() as logged, pytest.raises(IncompleteRead):
            lab.get(path, accept=accept)
        assert lab.get("/fhir/r4/DiagnosticReport").status == 200

    assert [(record["event"], record["reason"]) for record in logged if "reason" in record] == [
        ("store unavailable", "gone")
    ]
