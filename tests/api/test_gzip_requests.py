"""Request bodies with Content-Encoding: gzip (D-71)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config, LimitsConfig, ServerConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests import raw
from tests.bodies import PDF, SYSTEM, document, register_body

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
GZIP = {"Content-Encoding": "gzip"}
MIB = 1024 * 1024
LARGE = document(PDF + b"x" * 300_000)


def register(lab: Integrator, coded: bytes, coding: str = "gzip") -> Answer:
    return lab.request("POST", REGISTER, coded, {"Content-Encoding": coding})


def diagnostics(answer: Answer) -> str:
    return str(answer.issues[0]["diagnostics"])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    limits = LimitsConfig(request_bytes=300_000)
    folder = tmp_path_factory.mktemp("small")
    with RunningService(folder, config=replace(Config(), limits=limits)) as running:
        yield running


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
def test_a_body_in_gzip_is_registered_as_it_is_without(lab: Integrator, coding: str) -> None:
    body = dumps(register_body(f"coded as {coding}"))

    coded = register(lab, gzip.compress(body), coding)

    assert coded.status == 201
    assert lab.register(body).body == coded.body


@pytest.mark.parametrize("level", [0, 1, 9])
def test_a_large_document_in_gzip_arrives_byte_for_byte(lab: Integrator, level: int) -> None:
    body = dumps(register_body(f"level {level}", presentedForm=[LARGE]))

    answer = register(lab, gzip.compress(body, level))

    assert answer.status == 201
    read = lab.get(answer.headers["location"]).json
    assert read["presentedForm"][0]["data"] == LARGE["data"]


def test_gzip_in_chunks_is_registered(lab: Integrator) -> None:
    body = gzip.compress(dumps(register_body("chunks", presentedForm=[LARGE])), 0)
    lines = [
        f"Authorization: Bearer {lab.token}",
        "Content-Type: application/fhir+json",
        "Content-Encoding: gzip",
        "Transfer-Encoding: chunked",
    ]

    exchange = raw.request(lab.service, f"POST {REGISTER}", *lines, body=raw.chunked(body))

    assert exchange.status == 201


def test_an_update_may_be_gzip(lab: Integrator) -> None:
    location = lab.register(register_body("updated")).headers["location"]
    path = location.removeprefix(lab.service.base_url).partition("/_history")[0]
    patch: dict[str, Any] = {"resourceType": "DiagnosticReport", "status": "amended"}

    answer = lab.request("PATCH", path, gzip.compress(dumps(patch)), GZIP)

    assert answer.status == 204


def test_a_search_form_may_be_gzip(lab: Integrator) -> None:
    lab.register(register_body("found"))
    headers = GZIP | {"Content-Type": "application/x-www-form-urlencoded"}
    form = gzip.compress(f"identifier={SYSTEM}|found".encode())

    assert lab.request("POST", f"{BASE}/_search", form, headers).json["total"] == 1


@pytest.mark.parametrize("beyond", [1, 200 * MIB])
def test_the_limit_holds_for_decoded_bytes(small: RunningService, beyond: int) -> None:
    bomb = gzip.compress(b" " * (300_000 + beyond), 9)
    assert len(bomb) < 300_000

    answer = register(small.integrator(), bomb)

    assert (answer.status, answer.issues[0]["code"]) == (413, "too-costly")


def test_the_limit_holds_for_coded_bytes_that_decode_to_nothing(small: RunningService) -> None:
    nothing = gzip.compress(b"")
    empty_blocks = nothing[:10] + b"\0\0\0\xff\xff" * 70_000 + nothing[10:]
    lines = [
        f"Authorization: Bearer {small.integrator().token}",
        "Content-Type: application/fhir+json",
        "Content-Encoding: gzip",
        "Transfer-Encoding: chunked",
    ]

    exchange = raw.request(small, f"POST {REGISTER}", *lines, body=raw.chunked(empty_blocks))

    assert exchange.status == 413


@pytest.mark.parametrize(
    ("coded", "said"),
    [
        (dumps(register_body("plain")), "is not valid gzip"),
        (gzip.compress(dumps(register_body("cut")))[:-1], "is cut short"),
        (gzip.compress(dumps(register_body("behind"))) + b"{}", "goes on after the end"),
        (gzip.compress(b"{") + gzip.compress(b"}"), "goes on after the end"),
        (gzip.compress(dumps(register_body("c", presentedForm=[LARGE])), 0)[:-9], "is cut short"),
        (gzip.compress(bytes(MIB)) + b"{}", "goes on after the end"),
    ],
    ids=["plain", "cut", "garbage behind", "two members", "large and cut", "large and garbage"],
)
def test_what_is_no_complete_gzip_is_a_400(lab: Integrator, coded: bytes, said: str) -> None:
    answer = register(lab, coded)

    assert answer.status == 400
    assert said in diagnostics(answer)


def test_nothing_is_stored_of_a_stream_that_was_cut(lab: Integrator) -> None:
    register(lab, gzip.compress(dumps(register_body("cut before its checksum")))[:-8])

    found = lab.get(f"{BASE}?identifier={SYSTEM}|cut before its checksum".replace(" ", "%20"))
    assert found.json["total"] == 0


@pytest.mark.parametrize("coding", ["deflate", "br", "zstd", "gzip, gzip", "identity, gzip"])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_another_coding_is_a_415_that_lists_what_is_read(
    lab: Integrator, method: str, coding: str
) -> None:
    path = REGISTER if method == "POST" else f"{BASE}/any"

    answer = lab.request(method, path, b"{}", {"Content-Encoding": coding})

    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, identity")


def test_an_operator_can_refuse_gzip(tmp_path: Path) -> None:
    config = replace(Config(), server=ServerConfig(gzip_requests=False))
    with RunningService(tmp_path, config=config) as service:
        answer = register(service.integrator(), gzip.compress(b"{}"))

    assert (answer.status, answer.headers["accept-encoding"]) == (415, "identity")


def test_a_quota_counts_decoded_bytes(tmp_path: Path) -> None:
    config = replace(Config(), quotas=QuotasConfig(client_bytes_per_day=100_000))
    body = gzip.compress(dumps(register_body("quota", presentedForm=[LARGE])))
    assert len(body) < 20_000
    with RunningService(tmp_path, config=config) as service:
        answer = register(service.integrator(), body)

    assert answer.status == 429
