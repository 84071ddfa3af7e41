"""What is reported of a registration with other content, and when it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.register import Registration
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.testing.store_contract import a_version
from fhirpub.web.handlers.placement import LARGE_STORED
from fhirpub.web.handlers.registrations.comparison import compare, replay_headers
from tests.bodies import register_body
from tests.metrics import Moves
from tests.panels import panel, result
from tests.unit.web.handlers.asking import REPORTS, Places, asked, running


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that refuses other content."""
    config = Config(fhir=FhirConfig(other_content="conflict"))
    with RunningService(tmp_path_factory.mktemp("refusing"), config=config) as service:
        yield service


@pytest.mark.parametrize(
    ("created", "same", "headers"),
    [
        (True, True, {}),
        (True, False, {}),
        (False, True, {"Idempotent-Replayed": "true"}),
        (False, None, {"Idempotent-Replayed": "true"}),
        (False, False, {"Idempotent-Replayed": "true", "Idempotent-Content": "different"}),
    ],
)
def test_a_repetition_is_named_as_one(
    created: bool,  # noqa: FBT001 - a case
    same: bool | None,  # noqa: FBT001 - a case
    headers: dict[str, str],
) -> None:
    made = Registration(a_version(), created=created, same=same)

    assert replay_headers(made) == headers


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"conclusion": "Other"}, "conclusion"),
        ({"conclusion": "Other", "code": {"text": "Other"}}, "conclusion, code"),
        ({"conclusion": "x y " * 20_000}, "conclusion"),
    ],
    ids=["one", "two", "large"],
)
def test_other_content_is_refused_with_the_elements_that_differ(
    refusing: RunningService, changes: dict[str, Any], named: str
) -> None:
    lab, value = refusing.integrator(), uuid4().hex
    lab.register(register_body(value))

    answer = lab.register(register_body(value, **changes))

    assert (answer.status, answer.problems) == (409, ["identifier-in-use"])
    said = answer.issues[0]["diagnostics"].partition("what differs: ")[2]
    assert sorted(said.split(", ")) == sorted(named.split(", "))


def test_the_same_content_is_not_refused(refusing: RunningService) -> None:
    lab, body = refusing.integrator(), register_body(uuid4().hex)

    assert [lab.register(body).status for _ in range(2)] == [201, 201]


def test_another_value_of_a_result_is_other_content(refusing: RunningService) -> None:
    lab, value = refusing.integrator(), uuid4().hex

    found = [lab.register(panel(value, result("r1", size))).status for size in (1.0, 1.0, 2.0)]

    assert found == [201, 201, 409]


def test_another_value_of_the_last_result_is_other_content(refusing: RunningService) -> None:
    lab, value = refusing.integrator(), uuid4().hex

    found = [
        lab.register(panel(value, result("r1", 1.0), result("r2", 1.0), result("r3", size)))
        for size in (1.0, 2.0)
    ]

    assert [answer.status for answer in found] == [201, 409]
    assert found[1].issues[0]["diagnostics"].endswith("what differs: Observation.valueQuantity")


def test_other_content_is_counted_also_where_it_is_not_refused(lab: Integrator) -> None:
    moves, value = Moves(running(lab)), uuid4().hex

    for conclusion in ("One", "One", "Two"):
        lab.register(register_body(value, conclusion=conclusion))

    assert moves.by("other_content_total") == 1


def test_other_content_is_counted_and_logged_also_where_it_is_refused(
    refusing: RunningService,
) -> None:
    lab, value, moves = refusing.integrator(), uuid4().hex, Moves(refusing)
    with capture_logs() as logged:
        found = [lab.register(register_body(value, conclusion=one)).status for one in "AB"]

    assert found == [201, 409]
    assert moves.by("other_content_total") == 1
    assert "other content under a registered identifier" in [one["event"] for one in logged]


def test_other_content_is_logged_by_its_elements_and_without_their_values(lab: Integrator) -> None:
    value = uuid4().hex
    lab.register(register_body(value))
    with capture_logs() as logged:
        lab.register(register_body(value, conclusion="Lovelace"))

    (line,) = [one for one in logged if one["event"].startswith("other content")]
    assert (line["log_level"], line["type"]) == ("warning", "DiagnosticReport")
    assert (line["elements"], line["client"]) == ("conclusion", lab.client_id)
    assert "Lovelace" not in str(line)


@pytest.mark.parametrize("large", ["first", "repeated", "member"])
def test_where_versions_are_compared_follows_from_all_that_is_compared(
    lab: Integrator, large: str
) -> None:
    content = {"resourceType": "DiagnosticReport", "meta": {}}
    small = replace(a_version(), body=dumps(content), parts=b"{}")
    big = replace(small, body=dumps({**content, "conclusion": "x" * (LARGE_STORED + 1)}))
    first = big if large == "first" else small
    repeated = big if large == "repeated" else small
    if large == "member":
        repeated = replace(repeated, members=(replace(big, id="m"),))

    async def found() -> list[tuple[str, str]]:
        services = running(lab).services
        places: Any = Places(services.context)
        services = replace(services, threads=places, processes=places)
        async with asked(lab, "POST", f"{REPORTS}/$register", services=services) as one:
            await compare(one.body_handler, first, repeated)
        seen: list[tuple[str, str]] = places.seen
        return seen

    assert running(lab).call(found()) == [("process", lab.tenant.id)]
