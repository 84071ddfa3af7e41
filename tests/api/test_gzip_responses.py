"""Responses with Content-Encoding: gzip (D-304)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.config.settings import Config, ServerConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.fhir.strict_json import loads
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import PDF, document, register_body

BASE = "/fhir/r4/DiagnosticReport"
FROM_BYTES = 1_000
BOTH = "Accept, Accept-Encoding"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    config = replace(Config(), server=ServerConfig(compress_from_bytes=FROM_BYTES))
    with RunningService(tmp_path_factory.mktemp("gzip"), config=config) as running:
        yield running


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def path(lab: Integrator) -> str:
    """The path of a report of 2 KB without a document of its own."""
    form = {"url": "https://lab.example/reports/1.pdf", "contentType": "application/pdf"}
    body = register_body("gzip", conclusion="normal " * 200, presentedForm=[form])
    location = lab.register(body).headers["location"]
    return location.removeprefix(lab.service.base_url).partition("/_history")[0]


def read(lab: Integrator, path: str, accepted: str = "gzip", **headers: str) -> Answer:
    """Read with an Accept-Encoding, and remove the coding of the body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    method = sent.pop("method", "GET")
    answer = raw(lab, method, path, sent | {"Accept-Encoding": accepted})
    if "content-encoding" in answer.headers and answer.body:
        assert answer.headers["content-length"] == str(len(answer.body))
        return replace(answer, body=gzip.decompress(answer.body))
    return answer


def raw(lab: Integrator, method: str, path: str, headers: dict[str, str]) -> Answer:
    """Send a request whose answer is not read as JSON on the way."""
    sent = {"Authorization": f"Bearer {lab.token}"} | headers
    return lab.service.request(method, path, None, sent)


def is_coded(answer: Answer) -> bool:
    return answer.headers.get("content-encoding") == "gzip"


@pytest.mark.parametrize("query", ["", "?_format=xml", "?_pretty=true", "?_elements=conclusion"])
def test_a_client_that_accepts_gzip_gets_the_same_bytes_in_it(
    lab: Integrator, path: str, query: str
) -> None:
    coded, plain = read(lab, path + query), read(lab, path + query, "identity")

    assert (is_coded(coded), is_coded(plain)) == (True, False)
    assert coded.body == plain.body
    assert coded.headers["etag"] == plain.headers["etag"] == 'W/"1"'


@pytest.mark.parametrize(
    "accepted", ["identity", "", "br, deflate", "gzip;q=0, *", "gzip;q=0.2, identity"]
)
def test_a_client_that_prefers_another_coding_gets_none(
    lab: Integrator, path: str, accepted: str
) -> None:
    answer = read(lab, path, accepted)

    assert not is_coded(answer)
    assert answer.headers["vary"] == BOTH


def test_a_small_response_is_not_compressed(lab: Integrator, path: str) -> None:
    answer = read(lab, f"{path}?_elements=status")

    assert len(answer.body) < FROM_BYTES
    assert not is_coded(answer)
    assert answer.headers["vary"] == BOTH


def test_head_has_the_fields_of_get(lab: Integrator, path: str) -> None:
    of_get, of_head = read(lab, path), read(lab, path, method="HEAD")

    assert of_head.body == b""
    for name in ("content-encoding", "content-length", "etag", "vary"):
        assert of_head.headers[name] == of_get.headers[name]


def test_a_tag_of_either_form_is_known_in_the_other(lab: Integrator, path: str) -> None:
    tag = read(lab, path).headers["etag"]

    known = [read(lab, path, each, If_None_Match=tag) for each in ("gzip", "identity")]

    assert [answer.status for answer in known] == [304, 304]
    assert [answer.headers["vary"] for answer in known] == [BOTH, BOTH]
    assert not any(is_coded(answer) for answer in known)


def test_the_tag_of_a_compressed_response_is_good_for_an_update(lab: Integrator) -> None:
    body = register_body("tagged", conclusion="normal " * 200)
    location = lab.register(body).headers["location"]
    tag = read(lab, f"{location.removeprefix(lab.service.base_url)}?_summary=data").headers["etag"]

    updated = lab.patch(
        location.partition("/_history")[0],
        {"resourceType": "DiagnosticReport", "status": "amended"},
        If_Match=tag,
    )

    assert updated.status == 204


def test_a_large_bundle_is_compressed_as_well(lab: Integrator) -> None:
    for number in range(60):
        lab.register(register_body(f"bundle-{number}", conclusion="normal " * 100))

    coded, plain = (read(lab, f"{BASE}?_count=60", each) for each in ("gzip", "identity"))

    assert len(plain.body) > 64 * 1024
    assert is_coded(coded)
    assert loads(coded.body)["entry"] == loads(plain.body)["entry"]


@pytest.mark.parametrize("accept", ["application/pdf", "application/fhir+json"])
def test_a_document_is_never_compressed(lab: Integrator, accept: str) -> None:
    body = register_body("document", presentedForm=[document(PDF + b" " * 100_000)])
    location = lab.register(body).headers["location"].removeprefix(lab.service.base_url)
    found = read(lab, BASE + "?identifier=document").body
    entry: Any = loads(found)["entry"][0]["resource"]
    url = entry["presentedForm"][0]["url"].removeprefix(lab.service.base_url)

    answers = [read(lab, location), read(lab, url, Accept=accept)]

    assert [answer.status for answer in answers] == [200, 200]
    assert not any(is_coded(answer) for answer in answers)


def test_a_range_is_never_compressed(lab: Integrator) -> None:
    lab.register(register_body("range", presentedForm=[document(PDF + b"r" * 100_000)]))
    entry: Any = loads(read(lab, BASE + "?identifier=range").body)["entry"][0]["resource"]
    url = entry["presentedForm"][0]["url"].removeprefix(lab.service.base_url)

    answer = read(lab, url, Accept="application/pdf", Range="bytes=0-50000")

    assert (answer.status, len(answer.body), is_coded(answer)) == (206, 50_001, False)
    assert answer.headers["etag"].startswith('"')


@pytest.mark.parametrize("address", ["/openapi.json", "/metadata"])
def test_what_describes_the_service_is_compressed(lab: Integrator, address: str) -> None:
    coded, plain = read(lab, address), read(lab, address, "identity")

    assert is_coded(coded)
    assert coded.body == plain.body
    assert coded.headers["etag"] == plain.headers["etag"]
    assert coded.headers["etag"].startswith("W/")
    assert "Accept-Encoding" in coded.headers["vary"]
    assert read(lab, address, If_None_Match=coded.headers["etag"]).status == 304


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that compresses all that it may, and sends no events."""
    config = replace(
        Config(),
        server=ServerConfig(compress_from_bytes=1),
        webhooks=WebhooksConfig(enabled=False, allow_networks=["127.0.0.1"], ports=[9443]),
    )
    with RunningService(tmp_path_factory.mktemp("eager"), config=config) as running:
        yield running


def test_a_token_is_never_compressed(eager: RunningService) -> None:
    lab = eager.integrator()
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": eager.config.auth.audience,
    }
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Accept-Encoding": "gzip"}

    answer = eager.request("POST", "/oauth/token", urlencode(form).encode(), sent)

    assert answer.json["access_token"]
    assert not is_coded(answer)


def test_a_secret_of_an_endpoint_is_never_compressed(eager: RunningService) -> None:
    lab = eager.integrator()
    sent = {"Accept-Encoding": "gzip", "Content-Type": "application/json"}

    answer = lab.request(
        "POST", "/webhooks/v1/endpoints", {"url": "https://127.0.0.1:9443/hook"}, sent
    )

    assert answer.json["signing_secret"]
    assert not is_coded(answer)
    assert is_coded(read(lab, f"/webhooks/v1/endpoints/{answer.json['id']}"))


def test_a_refusal_is_not_compressed(lab: Integrator) -> None:
    codings = [{"coding": [{"system": "urn:x", "code": " "}]}] * 50
    answer = lab.request(
        "POST",
        f"{BASE}/$register",
        register_body("r", category=codings),
        {"Accept-Encoding": "gzip"},
    )

    assert answer.status == HTTPStatus.BAD_REQUEST
    assert len(answer.body) > FROM_BYTES
    assert not is_coded(answer)


def test_nothing_is_compressed_if_the_operator_says_so(tmp_path: Path) -> None:
    config = replace(Config(), server=ServerConfig(compress_from_bytes=0))
    with RunningService(tmp_path, config=config) as service:
        answer = read(service.integrator(), "/metadata")

    assert not is_coded(answer)
    assert answer.headers["vary"] == "Accept"
