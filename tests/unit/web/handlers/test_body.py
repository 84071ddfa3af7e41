"""The type, the size, the coding and the memory of a body, and what a client prefers to get."""

from __future__ import annotations

import gzip
from uuid import uuid4

import pytest

from fhirpub.config.settings import Config, ServerConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests import raw
from tests.bodies import document, register_body
from tests.unit.web.handlers.asking import MOST, REPORTS, asked, named, running

VALIDATE = f"{REPORTS}/$validate"
REGISTER = f"{REPORTS}/$register"
GZIP = {"Content-Encoding": "gzip"}


def padded(size: int) -> bytes:
    return b"{}" + b" " * (size - 2)


def send(lab: Integrator, body: bytes, **headers: str) -> Answer:
    return lab.request("POST", VALIDATE, body, named(headers))


def in_chunks(lab: Integrator, body: bytes, *lines: str) -> int:
    kind = "Content-Type: application/fhir+json"
    token = f"Authorization: Bearer {lab.token}"
    coding = "Transfer-Encoding: chunked"
    sent = raw.request(
        lab.service, f"POST {VALIDATE}", token, kind, coding, *lines, body=raw.chunked(body)
    )
    return sent.status


# The type.


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/fhir+json", 200),
        ("application/json", 200),
        ("text/plain", 415),
        ("application/json-patch+json", 415),
    ],
)
def test_a_body_must_be_fhir(lab: Integrator, kind: str, status: int) -> None:
    assert send(lab, b"{}", Content_Type=kind).status == status


def test_a_refused_patch_lists_the_forms_of_patches(lab: Integrator) -> None:
    answer = lab.request("PATCH", f"{REPORTS}/x", b"{}", {"Content-Type": "text/plain"})

    forms = answer.headers["accept-patch"].split(", ")
    assert answer.status == 415
    assert "application/json-patch+json" in forms
    assert "application/merge-patch+json" in forms


def test_another_refused_body_lists_no_forms_of_patches(lab: Integrator) -> None:
    assert "accept-patch" not in send(lab, b"{}", Content_Type="text/plain").headers


def test_another_refusal_of_a_patch_lists_no_forms(lab: Integrator) -> None:
    answer = lab.patch(f"{REPORTS}/x", b"{}")

    assert (answer.status, "accept-patch" in answer.headers) == (404, False)


# The size.


@pytest.mark.parametrize(("size", "status"), [(MOST, 200), (MOST + 1, 413)])
def test_a_body_may_be_as_large_as_the_limit(few: Integrator, size: int, status: int) -> None:
    assert send(few, padded(size)).status == status


@pytest.mark.parametrize(("size", "status"), [(MOST, 200), (MOST + 1, 413)])
def test_a_body_in_chunks_may_be_as_large_as_the_limit(
    few: Integrator, size: int, status: int
) -> None:
    assert in_chunks(few, padded(size)) == status


def test_a_refusal_of_a_large_body_names_the_limit(few: Integrator) -> None:
    answer = send(few, padded(MOST + 1))

    assert answer.problems == ["body-too-large"]
    assert answer.issues[0]["diagnostics"] == f"the body has more than {MOST} bytes"


def test_a_large_body_is_not_expected_if_it_is_announced(few: Integrator) -> None:
    head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {few.token}\r\n"
    more = f"Content-Type: application/fhir+json\r\nContent-Length: {MOST + 1}\r\n"

    talk = raw.talk(few.service, f"{head}{more}Expect: 100-continue\r\n\r\n".encode(), seconds=1)

    assert talk.status == 413


# The coding.


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
@pytest.mark.parametrize("size", [2, 100_000])
def test_a_body_may_be_in_gzip(lab: Integrator, coding: str, size: int) -> None:
    answer = send(lab, gzip.compress(padded(size)), Content_Encoding=coding)

    assert (answer.status, answer.problems) == (200, send(lab, padded(size)).problems)


@pytest.mark.parametrize("coding", ["identity", "Identity"])
def test_identity_is_no_coding(lab: Integrator, coding: str) -> None:
    assert send(lab, b"{}", Content_Encoding=coding).status == 200


def test_another_coding_is_refused_with_those_that_are_read(lab: Integrator) -> None:
    answer = send(lab, b"{}", Content_Encoding="br")

    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, identity")


def test_gzip_is_refused_where_it_is_switched_off(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    config = Config(server=ServerConfig(gzip_requests=False))
    with RunningService(tmp_path_factory.mktemp("plain"), config=config) as service:
        lab = service.integrator()

        answers = [
            send(lab, gzip.compress(b"{}"), Content_Encoding="gzip"),
            send(lab, b"{}"),
        ]

    assert [answer.status for answer in answers] == [415, 200]
    assert answers[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("size", [3, 200_000])
def test_gzip_that_is_cut_short_is_refused(lab: Integrator, size: int) -> None:
    coded = gzip.compress(uuid4().bytes * (size // 16 + 1))

    answer = send(lab, coded[:-5], Content_Encoding="gzip")

    assert (answer.status, answer.problems) == (400, ["gzip-invalid"])


@pytest.mark.parametrize("size", [10, 40_000])
def test_what_is_no_gzip_is_refused(lab: Integrator, size: int) -> None:
    answer = send(lab, b"x" * size, Content_Encoding="gzip")

    assert (answer.status, answer.problems) == (400, ["gzip-invalid"])
    assert answer.issues[0]["diagnostics"].startswith("the body is not valid gzip")


@pytest.mark.parametrize(
    ("size", "level", "status"),
    [
        (MOST, 1, 200),
        (MOST + 1, 1, 413),
        (MOST, 0, 413),  # without compression it is longer than the body
        (MOST + 1, 0, 413),
    ],
)
def test_a_body_may_decode_to_as_much_as_the_limit(
    few: Integrator, size: int, level: int, status: int
) -> None:
    coded = gzip.compress(padded(size), level)

    assert send(few, coded, Content_Encoding="gzip").status == status


@pytest.mark.parametrize(("size", "status"), [(MOST, 200), (MOST + 1, 413)])
def test_gzip_in_chunks_may_not_be_longer_than_the_limit(
    few: Integrator, size: int, status: int
) -> None:
    coded = gzip.compress(padded(size), 1)

    assert in_chunks(few, coded, "Content-Encoding: gzip") == status


def test_gzip_in_chunks_is_as_long_as_it_is_sent(few: Integrator) -> None:
    coded = gzip.compress(padded(MOST), 0)  # without compression it is longer than the body

    assert in_chunks(few, coded, "Content-Encoding: gzip") == 413


def test_what_follows_gzip_in_chunks_is_refused_as_no_part_of_it(few: Integrator) -> None:
    coded = gzip.compress(b"{}") + b"x" * MOST

    assert in_chunks(few, coded, "Content-Encoding: gzip") == 400


def test_a_large_document_in_gzip_is_kept_byte_for_byte(lab: Integrator) -> None:
    large = document(b"%PDF-1.4 " + bytes(range(256)) * 1_500)
    body = dumps(register_body(uuid4().hex, presentedForm=[large]))

    answer = lab.request("POST", REGISTER, gzip.compress(body, 1), GZIP)

    read = lab.get(answer.headers["location"]).json
    assert read["presentedForm"][0]["data"] == large["data"]


# The memory.


@pytest.mark.parametrize(("size", "is_held"), [(65_536, False), (65_537, True)])
def test_a_large_body_takes_memory_as_soon_as_it_is_announced(
    lab: Integrator, size: int, *, is_held: bool
) -> None:
    async def begin() -> bool:
        async with asked(lab, "POST", VALIDATE, {"Content-Length": str(size)}) as one:
            return one.request in one.handler.services.request_memory

    assert running(lab).call(begin()) is is_held


@pytest.mark.parametrize(("size", "is_held"), [(65_536, False), (65_537, True)])
def test_a_body_of_unknown_size_takes_memory_once_it_is_large(
    lab: Integrator, size: int, *, is_held: bool
) -> None:
    async def receive() -> bool:
        async with asked(lab, "POST", VALIDATE, {"Transfer-Encoding": "chunked"}) as one:
            one.handler.data_received(b" " * 40_000)
            one.handler.data_received(b" " * (size - 40_000))
            return one.request in one.handler.services.request_memory

    assert running(lab).call(receive()) is is_held


def test_a_refused_body_releases_its_memory_at_once(few: Integrator) -> None:
    async def receive() -> tuple[bool, bool]:
        async with asked(few, "POST", VALIDATE, {"Transfer-Encoding": "chunked"}) as one:
            memory = one.handler.services.request_memory
            one.handler.data_received(b" " * MOST)
            before = one.request in memory
            one.handler.data_received(b" ")
            after = one.request in memory
            return before, after

    assert running(few).call(receive()) == (True, False)


def test_a_body_that_is_answered_has_released_its_memory(lab: Integrator) -> None:
    assert send(lab, padded(100_000)).status == 200

    assert running(lab).services.request_memory._held == {}


def test_a_body_takes_memory_by_steps_of_256_kib(lab: Integrator) -> None:
    async def sizes() -> list[int]:
        async with asked(lab, "POST", VALIDATE, {"Content-Length": "1000000"}) as one:
            memory = one.handler.services.request_memory
            found = [memory._held[one.request].size]
            for size in (262_144, 1):
                one.handler.data_received(b" " * size)
                found.append(memory._held[one.request].size)
            found.append(memory._held[one.request].expected)
            return found

    assert running(lab).call(sizes()) == [262_144, 262_144, 524_289, 1_000_000]


def test_the_memory_of_a_body_is_that_of_its_tenant(lab: Integrator) -> None:
    async def owner() -> str:
        async with asked(lab, "POST", VALIDATE, {"Content-Length": "100000"}) as one:
            return one.handler.services.request_memory._held[one.request].owner

    assert running(lab).call(owner()) == lab.tenant.id


# The quotas.


@pytest.mark.parametrize("size", [1_001, 5_000])
def test_an_announced_body_beyond_a_quota_is_refused(counted: RunningService, size: int) -> None:
    answer = send(counted.integrator(), padded(size))

    assert (answer.status, answer.problems) == (429, ["quota-used-up"])


def test_a_quota_of_bytes_can_be_used_to_its_last_one(counted: RunningService) -> None:
    lab = counted.integrator()

    found = [send(lab, padded(size)).status for size in (600, 400, 2)]

    assert found == [200, 200, 429]


def test_a_body_in_chunks_beyond_a_quota_is_refused(counted: RunningService) -> None:
    assert in_chunks(counted.integrator(), padded(1_001)) == 429


def test_a_request_without_a_body_is_not_refused_for_bytes(counted: RunningService) -> None:
    lab = counted.integrator()
    send(lab, padded(1_000))

    assert lab.get(REPORTS).status == 200


def test_a_gzip_stream_that_is_cut_before_its_first_byte_is_refused_as_such(
    lab: Integrator,
) -> None:
    coded = gzip.compress(b"{}")[:10]

    answer = lab.request("POST", f"{REPORTS}/$validate", coded, {"Content-Encoding": "gzip"})

    assert (answer.status, answer.problems) == (400, ["gzip-invalid"])
