"""The entries of a batch: each like its own request, within the bounds of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.batch import BatchConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.handlers.batch.run import BatchTimeout
from tests.batches import (
    BASE,
    TYPE,
    UNKNOWN,
    bundle,
    entry,
    issues,
    places,
    problems,
    registering,
    send,
    status,
    statuses,
)
from tests.bodies import register_body
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import id_of

URN = f"urn:uuid:{UNKNOWN}"


def test_entries_are_answered_in_their_order(lab: Integrator) -> None:
    reads = [entry("GET", f"{TYPE}/{UNKNOWN}"), entry("GET", TYPE), entry("GET", "nowhere")] * 20

    answers = send(lab, *reads)

    assert statuses(answers) == [404, 200, 404] * 20


def test_one_that_fails_stops_no_other(lab: Integrator, value: str) -> None:
    answers = send(lab, registering(value, status="wrong"), registering(value), entry("GET", TYPE))

    assert statuses(answers) == [400, 201, 200]


def test_a_registered_entry_is_located_with_its_tag(lab: Integrator, value: str) -> None:
    (answer,) = send(lab, registering(value))

    assert answer["response"]["etag"] == 'W/"1"'
    assert answer["response"]["lastModified"].endswith("Z")
    assert f"/{TYPE}/" in answer["response"]["location"]


def test_a_head_has_the_answer_of_a_get_without_its_resource(lab: Integrator) -> None:
    read, head = send(lab, entry("GET", TYPE), entry("HEAD", TYPE))

    assert status(read) == status(head) == 200
    assert ("resource" in read, "resource" in head) == (True, False)


def test_the_place_of_a_problem_leads_through_the_batch(lab: Integrator, value: str) -> None:
    answers = send(lab, entry("GET", TYPE), registering(value, status="wrong"))

    (place,) = places(answers[1])
    assert place.startswith("Bundle.entry[1].resource")


def test_an_entry_that_cannot_be_read_is_refused_alone(lab: Integrator) -> None:
    answers = send(lab, {"request": {"method": "WRONG", "url": TYPE}}, entry("GET", TYPE))

    assert statuses(answers) == [400, 200]
    assert places(answers[0])[0].startswith("Bundle.entry[0].request")


def test_a_condition_that_is_not_evaluated_is_refused(lab: Integrator) -> None:
    answers = send(lab, entry("GET", TYPE, ifMatch='W/"1"'))

    assert (statuses(answers), problems(answers[0])) == ([400], ["condition-unsupported"])


def test_a_condition_of_an_entry_counts(lab: Integrator, value: str) -> None:
    name = id_of(lab.register(register_body(value)))

    answers = send(
        lab,
        entry("GET", f"{TYPE}/{name}", ifNoneMatch='W/"1"'),
        entry("GET", f"{TYPE}/{name}", ifNoneMatch='W/"2"'),
    )

    assert statuses(answers) == [304, 200]


def test_an_entry_that_relies_on_another_is_refused(lab: Integrator, value: str) -> None:
    changed = register_body(value, result=[{"reference": URN}])

    answers = send(
        lab,
        entry("POST", f"{TYPE}/$register", register_body(uuid4().hex), full_url=URN),
        entry("POST", f"{TYPE}/$register", changed, full_url="urn:uuid:" + str(uuid4())),
    )

    assert problems(answers[1]) == ["reference-unresolved"]
    assert places(answers[1]) == ["Bundle.entry[1].resource"]
    assert "refers to entry[0] of the batch" in issues(answers[1])[0]["diagnostics"]
    assert status(answers[0]) == 201


def test_an_address_without_fhir_is_refused(lab: Integrator) -> None:
    (answer,) = send(lab, entry("GET", f"{lab.service.base_url}{BASE}/../../health/live"))

    assert status(answer) >= 400


def test_an_entry_is_named_in_the_log_after_its_batch(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        send(lab, entry("GET", TYPE), entry("GET", f"{TYPE}/{UNKNOWN}"), X_Request_Id=name)

        line = caught.of(f"{name}-1")

    assert (line["event"], line["status"]) == ("refused", 404)


def test_an_entry_has_no_more_rights_than_its_batch(service: RunningService) -> None:
    one, other = service.integrator(), service.integrator("Other")
    name = id_of(one.register(register_body(uuid4().hex)))

    found = [statuses(send(lab, entry("GET", f"{TYPE}/{name}"))) for lab in (one, other)]

    assert found == [[200], [404]]


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose batches have at most forty entries, and small answers."""
    config = Config(batch=BatchConfig(entries=40, answer_bytes=4_000))
    with RunningService(tmp_path_factory.mktemp("bounded"), config=config) as service:
        yield service


def reads(name: str, count: int) -> list[dict[str, Any]]:
    return [entry("GET", f"{TYPE}/{name}") for _ in range(count)]


def test_reads_beyond_the_room_are_refused_and_writes_are_not(bounded: RunningService) -> None:
    lab = bounded.integrator()
    name = id_of(lab.register(register_body(uuid4().hex)))

    answers = send(lab, *reads(name, 6), registering(uuid4().hex))

    assert sorted({*statuses(answers[:6])}) == [200, 413]
    assert status(answers[6]) == 201
    refused = next(answer for answer in answers if status(answer) == 413)
    assert problems(refused) == ["batch-answer-too-large"]
    assert "more than 4000 bytes" in issues(refused)[0]["diagnostics"]


@pytest.mark.parametrize(("count", "wanted"), [(40, 200), (41, 413)])
def test_a_batch_may_have_as_many_entries_as_the_limit(
    bounded: RunningService, count: int, wanted: int
) -> None:
    lab = bounded.integrator()

    answer = lab.request("POST", BASE, bundle(*reads("x", count)))

    assert answer.status == wanted


def test_entries_that_begin_too_late_are_refused(tmp_path_factory: Any) -> None:
    config = Config(batch=BatchConfig(seconds=0.000_001))
    with RunningService(tmp_path_factory.mktemp("late"), config=config) as service:
        answers = send(service.integrator(), entry("GET", TYPE))

    assert (statuses(answers), problems(answers[0])) == ([503], ["batch-timeout"])


def test_a_late_entry_may_be_sent_again_in_five_seconds() -> None:
    late = BatchTimeout(1.50)

    assert (late.retry_after, str(late)) == (
        5,
        "the batch took 1.5 s: send this entry again in another one",
    )
