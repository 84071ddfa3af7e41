"""Pages of endpoints and their deliveries, and what can be done there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import Tab, open_tab, text_of
from tests.console.test_resources import SCRIPT, publish
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"
WHY = "the answer was 502, not 2xx"


@pytest.fixture(scope="module")
def receivers() -> Iterator[Receiver]:
    """One receiver for all tests; each test sets its replies."""
    with Receiver() as running:
        yield running


@pytest.fixture
def receiver(receivers: Receiver) -> Receiver:
    """The receiver, which repeats challenges."""
    receivers.received.clear()
    receivers.answer(Reply(status=200, echo=True))
    return receivers


@pytest.fixture
def endpoint(lab: Integrator, receiver: Receiver) -> dict[str, Any]:
    """An endpoint that was added and verified."""
    added: dict[str, Any] = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
    assert lab.request("POST", f"{ENDPOINTS}/{added['id']}/verify").json["passed"]
    return added


def page_of(endpoint: dict[str, Any], *more: str) -> str:
    return "/".join(["/console/endpoints", endpoint["id"], *more])


def deliveries_of(lab: Integrator, endpoint: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.get(f"{ENDPOINTS}/{endpoint['id']}/deliveries").json[
        "deliveries"
    ]
    return found


def is_delivered(lab: Integrator, endpoint: dict[str, Any]) -> bool:
    return [one["status"] for one in deliveries_of(lab, endpoint)] == ["delivered"]


def has_failed(deliveries: list[dict[str, Any]]) -> bool:
    return any(attempt.get("why") == WHY for one in deliveries for attempt in one["attempts"])


def failed_delivery(
    lab: Integrator, endpoint: dict[str, Any], receiver: Receiver, body: bytes
) -> dict[str, Any]:
    """Return a delivery whose first attempt the receiver refused with a body."""
    receiver.answer(Reply(status=502, body=body))
    publish(lab, "A-1")
    assert wait_until(lambda: has_failed(deliveries_of(lab, endpoint)))
    return deliveries_of(lab, endpoint)[0]


def test_an_endpoint_is_added_and_its_secrets_are_shown_once(tab: Tab, receiver: Receiver) -> None:
    page = tab.post("/console/add-endpoint", {"url": receiver.url, "payload": "id-only"})

    assert page.status == 200
    assert "whsec_" in page.body.decode()
    assert "whsec_" not in tab.get("/console/endpoints").body.decode()
    assert receiver.url in text_of(tab.get("/console/endpoints"))


def test_what_is_wrong_with_a_new_endpoint_is_shown_with_what_was_entered(tab: Tab) -> None:
    page = tab.post("/console/add-endpoint", {"url": "ftp://x", "description": "Ward"})

    assert page.status == 400
    assert 'value="ftp://x"' in page.body.decode()
    assert "url: " in text_of(page)


def test_a_failed_delivery_shows_why_and_what_the_receiver_answered(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any], receiver: Receiver
) -> None:
    delivery = failed_delivery(lab, endpoint, receiver, b"upstream lab-gw timed out")

    page = text_of(tab.get(page_of(endpoint, "deliveries", delivery["event_id"])))

    assert WHY in page
    assert "upstream lab-gw timed out" in page
    assert "Send it again" in page


def test_what_a_receiver_answers_is_escaped(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any], receiver: Receiver
) -> None:
    delivery = failed_delivery(lab, endpoint, receiver, SCRIPT.encode())

    page = tab.get(page_of(endpoint, "deliveries", delivery["event_id"])).body.decode()

    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_a_delivery_is_sent_again(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any], receiver: Receiver
) -> None:
    delivery = failed_delivery(lab, endpoint, receiver, b"")
    receiver.answer(Reply(status=200))

    answer = tab.post(page_of(endpoint, "deliveries", delivery["event_id"], "replay"))

    assert answer.status == 303
    assert wait_until(lambda: deliveries_of(lab, endpoint)[0]["status"] == "delivered")


def test_deliveries_are_sent_again_by_their_time_and_state(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any]
) -> None:
    publish(lab, "A-1")
    assert wait_until(
        lambda: [one["status"] for one in deliveries_of(lab, endpoint)] == ["delivered"]
    )

    page = tab.post(
        page_of(endpoint, "replay"), {"status": "delivered", "since": "2026-01-01T00:00"}
    )

    assert "1 delivery is being sent again." in text_of(page)


@pytest.mark.parametrize(
    ("query", "found"),
    [("status=delivered", 1), ("status=dead", 0), ("event_type=diagnostic_report.created", 1)],
)
def test_deliveries_are_found_by_state_and_event(
    query: str, found: int, lab: Integrator, tab: Tab, endpoint: dict[str, Any]
) -> None:
    publish(lab, "A-1")
    assert wait_until(
        lambda: [one["status"] for one in deliveries_of(lab, endpoint)] == ["delivered"]
    )

    page = tab.get(page_of(endpoint, f"deliveries?{query}")).body.decode()

    assert page.count('aria-label="Delivery ') == found


def test_an_endpoint_is_paused_and_enabled(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any]
) -> None:
    states = []
    for act in ("pause", "enable"):
        assert tab.post(page_of(endpoint, "state", act)).status == 303
        states.append(lab.get(f"{ENDPOINTS}/{endpoint['id']}").json["state"])

    assert states == ["paused", "active"]


@pytest.mark.parametrize("trial", ["verify", "test"])
def test_an_endpoint_is_tried(trial: str, tab: Tab, endpoint: dict[str, Any]) -> None:
    assert "It passed." in text_of(tab.post(page_of(endpoint, "trial", trial)))


def test_a_trial_that_does_not_pass_says_why(
    tab: Tab, endpoint: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer(Reply(status=404))

    page = text_of(tab.post(page_of(endpoint, "trial", "test")))

    assert "It did not pass: the answer was 404, not 2xx." in page


@pytest.mark.parametrize(("kind", "prefix"), [("secret", "whsec_"), ("token", "whtok_")])
def test_a_secret_is_rotated_after_a_question(
    kind: str, prefix: str, tab: Tab, endpoint: dict[str, Any]
) -> None:
    asked = tab.get(page_of(endpoint, "rotate", kind))
    page = tab.post(page_of(endpoint, "rotate", kind))

    assert "shown once" in text_of(asked)
    assert prefix in page.body.decode()


def test_an_endpoint_is_deleted_after_a_question(
    lab: Integrator, tab: Tab, endpoint: dict[str, Any]
) -> None:
    asked = tab.get(page_of(endpoint, "delete"))
    assert "cannot be undone" in text_of(asked)

    assert tab.post(page_of(endpoint, "delete")).status == 303
    assert lab.get(f"{ENDPOINTS}/{endpoint['id']}").status == 404


def test_an_endpoint_of_another_tenant_is_not_there(
    console: RunningService, endpoint: dict[str, Any]
) -> None:
    other = open_tab(console.integrator("Other"))

    for more in ((), ("deliveries",), ("delete",), ("rotate", "secret"), ("replay",)):
        assert other.get(page_of(endpoint, *more)).status == 404
    for more in (("delete",), ("state", "pause"), ("trial", "test"), ("rotate", "secret")):
        assert other.post(page_of(endpoint, *more)).status == 404
    assert endpoint["id"] not in other.get("/console/endpoints").body.decode()


def test_the_statistics_are_drawn(lab: Integrator, tab: Tab, endpoint: dict[str, Any]) -> None:
    publish(lab, "A-1")
    assert wait_until(
        lambda: [one["status"] for one in deliveries_of(lab, endpoint)] == ["delivered"]
    )

    page = tab.get(page_of(endpoint)).body.decode()

    assert page.count('<rect class="ok"') == 2
    assert '<rect class="failed"' not in page


@pytest.mark.parametrize("number", ["\u00b2", "9" * 30, "9" * 5000, "-1", "x"])
@pytest.mark.parametrize("name", ["from_seq", "to_seq"])
def test_a_replay_from_what_is_no_number_is_refused(
    name: str, number: str, tab: Tab, endpoint: dict[str, Any]
) -> None:
    answer = tab.post(page_of(endpoint, "replay"), {name: number})

    assert answer.status in (400, 422)
    assert name in text_of(answer)
