"""What a registration leaves in the audit trail, and conditions that are met."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import SYSTEM, register_body
from tests.erasing import Operator
from tests.unit.web.handlers.asking import REPORTS, asked, path_of, running
from tests.unit.web.handlers.registrations.test_register import create


def test_a_registration_and_its_repetition_leave_a_record_each(
    lab: Integrator, value: str
) -> None:
    made = [lab.register(register_body(value)) for _ in range(2)]

    first, second = records_of_tenant(lab)
    name = path_of(made[0]).partition("/fhir/r4/")[2]
    assert [(one["action"], one["status"]) for one in (first, second)] == [("register", 201)] * 2
    assert first["what"] == second["what"] == [f"{name}/_history/1"]
    assert first["patients"] == second["patients"]


@pytest.mark.parametrize("wanted", ["minimal", "representation"])
def test_what_meets_a_condition_is_recorded_with_its_patient(
    lab: Integrator, value: str, wanted: str
) -> None:
    create(lab, value)
    condition = f"identifier={SYSTEM}|{value}"
    create(lab, uuid4().hex, If_None_Exist=condition, Prefer=f"return={wanted}")

    first, met = records_of_tenant(lab)
    assert (met["action"], met["status"]) == ("register", 200)
    assert (met["what"], met["patients"]) == (first["what"], first["patients"])


@pytest.mark.parametrize("before", ["", "?", "DiagnosticReport?", f"{REPORTS}?"])
def test_a_condition_may_be_written_as_an_address(
    lab: Integrator, value: str, before: str
) -> None:
    first = create(lab, value)

    met = create(lab, uuid4().hex, If_None_Exist=f"{before}identifier={SYSTEM}|{value}")

    assert met.status == 200
    assert met.headers["location"] == first.headers["location"]


@pytest.mark.parametrize(("state", "status"), [("final", 200), ("amended", 201)])
def test_conditions_of_the_header_and_of_the_url_must_both_be_met(
    lab: Integrator, value: str, state: str, status: int
) -> None:
    create(lab, value)

    condition = f"identifier={SYSTEM}|{value}"
    answer = create(lab, uuid4().hex, f"?status={state}", If_None_Exist=condition)

    assert answer.status == status


@pytest.mark.parametrize("before", ["", "DiagnosticReport?"])
def test_a_value_in_a_condition_may_have_a_question_mark(
    lab: Integrator, value: str, before: str
) -> None:
    first = create(lab, f"{value}?b")

    met = create(lab, uuid4().hex, If_None_Exist=f"{before}identifier={SYSTEM}|{value}?b")

    assert (met.status, met.headers["location"]) == (200, first.headers["location"])


@pytest.mark.parametrize(
    ("scope", "wanted", "has_body"),
    [
        ("crs", "representation", True),
        ("crs", "minimal", False),
        ("cs", "representation", False),
    ],
)
def test_what_meets_a_condition_is_shown_to_those_who_may_read_it(
    strict_service: RunningService, value: str, scope: str, wanted: str, *, has_body: bool
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    create(owner, value)
    lab = strict_service.another_client(owner.tenant, scopes=(f"system/DiagnosticReport.{scope}",))

    condition = f"identifier={SYSTEM}|{value}"
    answer = create(lab, value, If_None_Exist=condition, Prefer=f"return={wanted}")

    assert (answer.status, bool(answer.body)) == (200, has_body)
    assert answer.headers["etag"] == 'W/"1"'


def test_a_registration_keeps_pace_with_the_events_of_its_tenant(
    lab: Integrator, value: str
) -> None:
    asked_for: list[str] = []

    def pause_for(owner: str) -> float:
        asked_for.append(owner)
        return 0.0

    async def statuses() -> list[int]:
        sending: Any = SimpleNamespace(pause_for=pause_for)
        services = replace(running(lab).services, sending=sending)
        found = []
        for _ in range(2):
            path = f"{REPORTS}/$register"
            async with asked(lab, "POST", path, services=services) as one:
                one.handler.data_received(dumps(register_body(value)))
                one.handler.run()
                await one.exchange.wait_ended()
                found.append(one.exchange.status)
        return found

    assert running(lab).call(statuses()) == [201, 201]
    assert asked_for == [lab.tenant.id]  # the repetition stores nothing


@pytest.mark.parametrize("changes", [{}, {"conclusion": "x y " * 20_000}], ids=["small", "large"])
def test_an_identifier_that_may_be_used_again_goes_on_with_its_numbers(
    service: RunningService, lab: Integrator, value: str, changes: dict[str, Any]
) -> None:
    first = lab.register(register_body(value))
    path = path_of(first)
    address = path.partition("/fhir/r4/")[2]
    Operator(service, lab).erase(address, allows_reuse=True)

    again = lab.register(register_body(value, **changes))

    number = int(again.headers["etag"].strip('W/"'))
    assert (again.status, path_of(again)) == (201, path)
    assert number > 1
    assert lab.get(path).json["meta"]["versionId"] == str(number)
