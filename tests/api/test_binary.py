"""Documents returned whole, in parts, or as a FHIR Binary."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator
from http.client import IncompleteRead
from pathlib import Path
from urllib.parse import quote

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, BlobInfo
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import PDF, document, register_body
from tests.faults.broken_stores import StoreWrapper, opening
from tests.log_lines import caught_lines

SHA256 = hashlib.sha256(PDF).hexdigest()
PATH = f"/fhir/r4/Binary/{SHA256}"
SIZE = len(PDF)


@pytest.fixture(autouse=True)
def _registered(lab: Integrator) -> None:
    lab.register(register_body("B-1"))


@pytest.fixture(params=["by its place", "by its hash"])
def path(lab: Integrator, request: pytest.FixtureRequest) -> str:
    """Return the address of the document, that of its report and the older one."""
    return PATH if request.param == "by its hash" else addresses(lab, "B-1")[0]


def addresses(lab: Integrator, value: str) -> list[str]:
    """Return the addresses of the documents in the latest version of a report."""
    found = lab.get(f"/fhir/r4/DiagnosticReport?identifier={value}").json["entry"]
    return [form["url"] for form in found[0]["resource"]["presentedForm"]]


def test_a_document_is_returned_with_its_media_type(lab: Integrator, path: str) -> None:
    answer = lab.get(path)

    assert (answer.status, answer.body) == (200, PDF)
    assert answer.headers["content-type"] == "application/pdf"


def test_by_its_hash_a_document_has_the_type_that_it_first_came_with_and_no_title(
    lab: Integrator,
) -> None:
    text = b"Within the reference ranges"
    forms = [document(text, contentType=name) for name in ("text/plain", "text/markdown")]
    lab.register(register_body("B-2", presentedForm=forms))

    answer = lab.get(f"/fhir/r4/Binary/{hashlib.sha256(text).hexdigest()}")

    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["content-disposition"] == 'inline; filename="document.txt"'


def test_a_document_comes_as_fhir_when_fhir_is_asked_for(lab: Integrator, path: str) -> None:
    answer = lab.get(path, Accept="application/fhir+json")

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
    lab: Integrator, path: str, accept: str, kind: str
) -> None:
    assert lab.get(path, Accept=accept).headers["content-type"] == kind


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
def test_format_says_what_accept_can_say_and_wins(
    lab: Integrator, path: str, form: str, kind: str
) -> None:
    other = "application/pdf" if "fhir" in kind else "application/fhir+json"

    answer = lab.get(f"{path}?_format={form}", Accept=other)

    assert (answer.status, answer.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize("form", ["pdf", "application/fhir+json;fhirVersion=3.0"])
def test_a_format_that_is_neither_fhir_nor_a_document_is_a_406(
    lab: Integrator, path: str, form: str
) -> None:
    assert lab.get(f"{path}?_format={form}").status == 406


def described(answer: Answer) -> tuple[str, str]:
    name = answer.headers["content-disposition"].partition("filename=")[2]
    return answer.headers["content-type"], name


def test_equal_documents_of_two_reports_have_the_type_and_the_title_of_each(
    lab: Integrator,
) -> None:
    forms = {"Ana": "application/pdf", "Juan": "application/pdf; version=1.7", "Eva": "text/plain"}
    for title, kind in forms.items():
        form = document(title=title, contentType=kind)
        lab.register(register_body(title, presentedForm=[form]))

    read = {title: lab.get(addresses(lab, title)[0]) for title in forms}

    assert {answer.body for answer in read.values()} == {PDF}
    assert {title: described(answer) for title, answer in read.items()} == {
        "Ana": ("application/pdf", '"Ana.pdf"'),
        "Juan": ("application/pdf; version=1.7", '"Juan.pdf"'),
        "Eva": ("text/plain", '"Eva.txt"'),
    }


def test_equal_documents_of_one_report_have_each_its_own_title(lab: Integrator) -> None:
    linked = {"url": "https://lab.example/1.pdf"}
    forms = [document(title="One"), linked, document(title="Two"), document(title=None)]
    lab.register(register_body("B-3", presentedForm=forms))

    one, _elsewhere, two, untitled = addresses(lab, "B-3")

    names = [described(lab.get(address))[1] for address in (one, two, untitled)]
    assert names == ['"One.pdf"', '"Two.pdf"', '"document.pdf"']


def test_a_new_title_is_that_of_the_new_version_alone(lab: Integrator) -> None:
    old = addresses(lab, "B-1")[0]
    report = old.rpartition("/")[2].partition(".")[0]
    change = [
        {"op": "replace", "path": "/presentedForm/0/title", "value": "Hemograma Ana"},
        {"op": "replace", "path": "/presentedForm/0/contentType", "value": "application/x-pdf"},
    ]
    answer = lab.request(
        "PATCH",
        f"/fhir/r4/DiagnosticReport/{report}",
        change,
        {"Content-Type": "application/json-patch+json"},
    )
    assert answer.status == 204, answer.body

    new = addresses(lab, "B-1")[0]

    assert described(lab.get(new)) == ("application/x-pdf", '"Hemograma Ana"')
    assert described(lab.get(old)) == ("application/pdf", '"Blood count.pdf"')
    assert lab.get(new).headers["etag"] == lab.get(old).headers["etag"]
    history = lab.get(f"/fhir/r4/DiagnosticReport/{report}/_history").json["entry"]
    assert [entry["resource"]["presentedForm"][0]["url"] for entry in history] == [new, old]


def test_a_binary_has_the_id_of_its_address_and_the_type_that_its_report_states(
    lab: Integrator,
) -> None:
    lab.register(register_body("B-4", presentedForm=[document(contentType="application/x-pdf")]))
    address = addresses(lab, "B-4")[0]

    binary = lab.get(address, Accept="application/fhir+json").json

    assert binary["id"] == address.rpartition("/")[2]
    assert binary["contentType"] == "application/x-pdf"


def test_an_id_that_was_made_up_leads_nowhere(lab: Integrator) -> None:
    lab.register(register_body("B-5", presentedForm=[document(), {"url": "https://l.example/1"}]))
    address = addresses(lab, "B-5")[0]
    report = address.removesuffix(".1.1")
    assert lab.get(address).status == 200

    for made_up in ("", ".1", ".1.", ".1.0", ".1.2", ".1.3", ".2.1", ".0.1", ".01.1", ".1.01"):
        answer = lab.get(report + made_up)
        assert (answer.status, answer.issues[0]["code"]) == (404, "not-found"), made_up
        assert answer.problems == ["resource-unknown"], made_up
    for made_up in (".1.1.1", ".1.1x", ".1.-1", ".1.9999999999", ".99999999999.1", ".1.\u0661"):
        answer = lab.get(report + quote(made_up))
        assert (answer.status, answer.problems) == (404, ["resource-unknown"]), made_up
    report_found = lab.get("/fhir/r4/DiagnosticReport?identifier=B-5").json["entry"][0]["resource"]
    part_id = report_found["subject"]["reference"].partition("/")[2]
    assert lab.get(f"/fhir/r4/Binary/{part_id}.1.1").status == 404


def test_a_title_that_could_break_a_header_cannot(lab: Integrator) -> None:
    title = 'x"; filename="y.exe\n../Ñandú'
    lab.register(register_body("B-6", presentedForm=[document(title=title)]))

    name = described(lab.get(addresses(lab, "B-6")[0]))[1]

    assert name.startswith('"x _ filename_ y.exe .. _and_.pdf"; filename*=UTF-8')


def test_a_browser_must_not_guess_what_it_is_or_run_it(lab: Integrator, path: str) -> None:
    headers = lab.get(path).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox")


def test_a_document_that_is_known_is_not_sent_again(lab: Integrator, path: str) -> None:
    answer = lab.get(path, If_None_Match=f'"{SHA256}"')

    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize(
    ("asked", "part", "named"),
    [
        ("bytes=0-3", PDF[:4], f"bytes 0-3/{SIZE}"),
        ("bytes=5-", PDF[5:], f"bytes 5-{SIZE - 1}/{SIZE}"),
        ("bytes=7-", PDF[7:], f"bytes 7-{SIZE - 1}/{SIZE}"),
        ("bytes=-6", PDF[-6:], f"bytes {SIZE - 6}-{SIZE - 1}/{SIZE}"),
        ("bytes=-999999", PDF, f"bytes 0-{SIZE - 1}/{SIZE}"),
        ("bytes=7-999999", PDF[7:], f"bytes 7-{SIZE - 1}/{SIZE}"),
        ("Bytes=0-0", PDF[:1], f"bytes 0-0/{SIZE}"),
    ],
)
def test_a_part_is_sent_alone(
    lab: Integrator, path: str, asked: str, part: bytes, named: str
) -> None:
    answer = lab.get(path, Range=asked)

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
def test_what_is_no_single_part_is_ignored(lab: Integrator, path: str, asked: str) -> None:
    answer = lab.get(path, Range=asked)

    assert (answer.status, answer.body) == (200, PDF)
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=999999-", "bytes=-0"])
def test_a_part_that_is_not_there_is_a_416(lab: Integrator, path: str, asked: str) -> None:
    answer = lab.get(path, Range=asked)

    assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{SIZE}")
    assert answer.json["resourceType"] == "OperationOutcome"


@pytest.mark.parametrize(
    ("tag", "status"), [(f'"{SHA256}"', 206), ('"another"', 200), ('"x"', 200)]
)
def test_a_part_of_other_bytes_is_not_sent(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, Range="bytes=0-3", If_Range=tag).status == status


@pytest.mark.parametrize(
    ("tag", "status"),
    [(f'"{SHA256}"', 206), (f'"x", "{SHA256}"', 206), ("*", 206), (f'W/"{SHA256}"', 412)],
)
def test_a_part_is_sent_if_the_document_is_the_one_meant(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, Range="bytes=0-3", If_Match=tag).status == status


def test_head_returns_the_size_of_the_whole(lab: Integrator, path: str) -> None:
    answer = lab.request("HEAD", path, headers={"Range": "bytes=0-3"})

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
        with caught_lines() as log:
            with pytest.raises(IncompleteRead):
                lab.request("GET", path, None, {"Accept": accept, "X-Request-Id": "cut"})
            line = log.of("cut")
        assert lab.get("/fhir/r4/DiagnosticReport").status == 200

    assert (line["event"], line["level"], line["reason"]) == ("cut off", "error", "gone")
