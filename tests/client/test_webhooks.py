"""fhirpub-client verifies what the service sends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.testing.service import RunningService
from fhirpub_client import NotVerified, verify
from tests.api.test_webhooks_at_work import ENDPOINTS, SETTINGS, act
from tests.bodies import register_body

OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Received, str]]:
    """A delivery as a receiver got it, and the secret of the endpoint."""
    folder: Path = tmp_path_factory.mktemp("hooks")
    config = Config(webhooks=SETTINGS)
    with Receiver() as receiver, RunningService(folder, config=config) as service:
        lab = service.integrator()
        endpoint: Any = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        receiver.answer(Reply(status=200, echo=True))
        act(lab, endpoint, "verify")
        receiver.received.clear()
        lab.register(register_body("R-1"))
        yield receiver.wait(1)[0], endpoint["signing_secret"]


def test_a_delivery_is_verified_and_read(sent: tuple[Received, str]) -> None:
    delivery, secret = sent

    assert verify(delivery.headers, delivery.body, [secret]) == delivery.json


def test_during_a_rotation_either_secret_is_right(sent: tuple[Received, str]) -> None:
    delivery, secret = sent

    assert verify(delivery.headers, delivery.body, [OTHER, secret]) == delivery.json


def test_a_changed_body_is_not_verified(sent: tuple[Received, str]) -> None:
    delivery, secret = sent

    with pytest.raises(NotVerified):
        verify(delivery.headers, delivery.body + b" ", [secret])


def test_another_secret_verifies_nothing(sent: tuple[Received, str]) -> None:
    delivery, _secret = sent

    with pytest.raises(NotVerified):
        verify(delivery.headers, delivery.body, [OTHER])


def test_without_signature_nothing_is_verified(sent: tuple[Received, str]) -> None:
    delivery, secret = sent

    with pytest.raises(NotVerified):
        verify({}, delivery.body, [secret])


@pytest.mark.parametrize("secrets", [[], [""], ["whsec_"]])
def test_without_a_secret_nothing_can_be_verified(
    sent: tuple[Received, str], secrets: list[str]
) -> None:
    delivery, _secret = sent

    with pytest.raises(ValueError, match="secret"):
        verify(delivery.headers, delivery.body, secrets)


@pytest.mark.parametrize("secrets", [[OTHER, ""], ["", OTHER], [OTHER, "whsec_"]])
def test_an_empty_secret_beside_another_one_is_refused(
    sent: tuple[Received, str], secrets: list[str]
) -> None:
    delivery, _secret = sent

    with pytest.raises(ValueError, match="secret"):
        verify(delivery.headers, delivery.body, secrets)


def test_names_of_headers_are_in_any_case(sent: tuple[Received, str]) -> None:
    delivery, secret = sent
    upper = {name.upper(): value for name, value in delivery.headers.items()}

    assert verify(upper, delivery.body, [secret, OTHER]) == delivery.json


@pytest.mark.parametrize(("seconds_ago", "is_taken"), [(240, True), (360, False)])
def test_a_delivery_is_verified_for_five_minutes(seconds_ago: int, *, is_taken: bool) -> None:
    signed = datetime.fromtimestamp(now_ms() / 1000 - seconds_ago, UTC)
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(signed.timestamp())),
        "webhook-signature": Webhook(OTHER).sign("evt_1", signed, '{"a":1}'),
    }

    if is_taken:
        assert verify(headers, b'{"a":1}', [OTHER]) == {"a": 1}
    else:
        with pytest.raises(NotVerified, match="too old"):
            verify(headers, b'{"a":1}', [OTHER])
