"""What the guide to webhooks says about corrections of results."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import Integrator, RunningService
from tests.docs.test_webhooks_guide import GUIDE, blocks, service
from tests.panels import RESULTS, panel, result

__all__ = ["service"]


def revised(
    service: RunningService, lab: Integrator, receiver: Receiver, *, results: int
) -> dict[str, Any]:
    """Correct all results of a report; return the body of the webhook about it."""
    add = service.services.endpoints.add
    service.call(add(lab.tenant.id, {"url": receiver.url}, trusted=True))
    first, corrected = (
        [
            result(f"r{number}", value, identifier=[{"system": RESULTS, "value": str(number)}])
            for number in range(results)
        ]
        for value in (13.2, 12.3)
    )
    registered = lab.register(panel("R-1", *first)).json["parameter"][0]["resource"]
    lab.request(
        "POST",
        f"/fhir/r4/DiagnosticReport/{registered['id']}/$revise",
        panel("R-1", *corrected, status="corrected"),
        {"If-Match": 'W/"1"'},
    )
    _created, sent = receiver.wait(2)
    event: dict[str, Any] = json.loads(sent.body)
    return event


def test_the_guides_event_of_a_correction_has_the_fields_of_a_real_one(
    service: RunningService,
) -> None:
    (shown,) = (json.loads(text) for text in blocks("json") if text.startswith('{"status"'))
    with Receiver() as receiver:
        data = revised(service, service.integrator(), receiver, results=1)["data"]

    (address,) = data["changed"]
    assert shown.keys() <= data.keys()
    assert shown | {"changed": [address]} == {name: data[name] for name in shown}
    assert re.sub(r"\w", "x", shown["changed"][0]) == re.sub(r"\w", "x", address)


def test_a_version_of_a_result_has_the_time_of_its_event(service: RunningService) -> None:
    lab = service.integrator()
    with Receiver() as receiver:
        event = revised(service, lab, receiver, results=1)

    (address,) = event["data"]["changed"]
    history = lab.get(f"/fhir/r4/{address}/_history").json
    assert history["entry"][0]["resource"]["meta"]["lastUpdated"] == event["timestamp"]


@pytest.mark.parametrize(("share", "names"), [(1.05, 0), (0.95, 1)])
def test_the_guide_states_how_many_results_an_event_can_name(
    service: RunningService, share: float, names: int
) -> None:
    (number,) = re.findall(r"If some (\d+) results have changed at once", GUIDE)
    with Receiver() as receiver:
        data = revised(service, service.integrator(), receiver, results=int(int(number) * share))[
            "data"
        ]

    assert list(data).count("changed") == names
