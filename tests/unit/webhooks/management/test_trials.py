"""Tests and challenges that are sent at once, to a sink in place of a receiver."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule, Throttled
from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.testing.clock import HandClock
from fhirpub.testing.webhook_contract import an_endpoint
from fhirpub.webhooks.management.event_types import TEST, EventTypes
from fhirpub.webhooks.management.samples import Samples
from fhirpub.webhooks.management.trials import Trials
from fhirpub.webhooks.policy.outcome import WITHHELD, Outcome
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.response import as_kept
from fhirpub.webhooks.transport.sender import Sender
from tests.unit.webhooks.dispatch.jumping_loop import run

SETTINGS = WebhooksConfig(timeout_seconds=0.02, connect_seconds=0.01)
CONFIG = Config(webhooks=SETTINGS)
CIPHER = SecretCipher([b"k" * 32])
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Answering(Sender):
    """A sender whose receiver gives one outcome, or repeats the challenge."""

    def __init__(self, outcome: Outcome | None) -> None:
        super().__init__(SETTINGS, clock=HandClock())
        self.sent: list[Message] = []
        self._outcome = outcome

    async def attempt(self, message: Message) -> Outcome:
        self.sent.append(message)
        if self._outcome:
            return self._outcome
        challenge: str = json.loads(message.body)["data"]["challenge"]
        return Outcome(status=200, answer=challenge.encode(), private=True)


def endpoint(**changes: Any) -> Endpoint:
    made = an_endpoint(**changes)
    secret = CIPHER.encrypt(SECRET, endpoint=made.id, purpose="secret")
    token = CIPHER.encrypt("token", endpoint=made.id, purpose="token")
    return replace(made, secrets=(EndpointSecret(secret),), token=token)


def trials(sender: Sender, config: Config = CONFIG) -> Trials:
    types = EventTypes.of([])
    clock = HandClock()
    samples = Samples(types, base_url="https://fhir.example.org", clock=clock)
    return Trials(sender=sender, seal=CIPHER, samples=samples, config=config, clock=clock)


async def test_a_test_is_sent_with_the_secrets_and_the_token_of_its_endpoint() -> None:
    sender, made = Answering(Outcome(status=204)), endpoint()

    trial = await trials(sender).send_test(made, TEST, operator=False)

    (message,) = sender.sent
    assert trial.passed
    assert (message.tenant, message.url, message.token) == (made.tenant, made.url, "token")
    assert (message.secrets, message.number, message.sequence) == ((SECRET,), 1, 0)
    assert (message.event_id, message.event_type) == (trial.event_id, TEST)
    assert json.loads(message.body)["sequence"] == 0


async def test_a_secret_whose_time_is_over_signs_no_test() -> None:
    sender, made = Answering(Outcome(status=204)), endpoint()
    now, (secret,) = HandClock().now, made.secrets
    former = [replace(secret, expires=now + more) for more in (1, 0)]

    for old in former:
        both = replace(made, secrets=(secret, old))
        await trials(sender).send_test(both, TEST, operator=False)

    assert [len(message.secrets) for message in sender.sent] == [2, 1]


@pytest.mark.parametrize("outcome", [Outcome(status=300), Outcome(reason="E_RESET")])
async def test_a_test_without_an_answer_of_2xx_has_not_passed(outcome: Outcome) -> None:
    trial = await trials(Answering(outcome)).send_test(endpoint(), TEST, operator=False)

    assert not trial.passed
    assert trial.outcome == outcome


async def test_a_challenge_passes_when_it_is_repeated() -> None:
    assert (await trials(Answering(None)).send_challenge(endpoint(), operator=False)).passed


@pytest.mark.parametrize(
    "outcome", [Outcome(status=200, answer=b"OK"), Outcome(status=200, answer=b"")]
)
async def test_a_challenge_that_is_not_repeated_has_not_passed(outcome: Outcome) -> None:
    trial = await trials(Answering(outcome)).send_challenge(endpoint(), operator=False)

    assert not trial.passed


async def test_a_private_receiver_that_repeats_the_challenge_is_shown() -> None:
    new = endpoint(state="unverified")

    trial = await trials(Answering(None)).send_challenge(new, operator=False)

    assert trial.outcome.status == 200


PRIVATE = Outcome(status=200, answer=b"inside", private=True, duration=1)


async def test_a_private_answer_to_an_unverified_endpoint_lasts_as_long_as_a_timeout() -> None:
    begun = time.monotonic()

    trial = await trials(Answering(PRIVATE)).send_challenge(
        endpoint(state="unverified"), operator=False
    )

    assert trial.outcome == Outcome(reason=WITHHELD, duration=20)
    assert not trial.passed
    assert time.monotonic() - begun >= 0.12


async def test_the_operator_sees_a_private_answer_at_once() -> None:
    trial = await trials(Answering(PRIVATE)).send_challenge(
        endpoint(state="unverified"), operator=True
    )

    assert trial.outcome is PRIVATE


async def test_a_verified_endpoint_shows_a_private_answer() -> None:
    trial = await trials(Answering(PRIVATE)).send_test(endpoint(), TEST, operator=False)

    assert trial.outcome is PRIVATE


async def test_a_verified_endpoint_shows_a_private_answer_that_is_a_failure() -> None:
    failed = replace(PRIVATE, status=500)

    trial = await trials(Answering(failed)).send_test(endpoint(), TEST, operator=False)

    assert trial.outcome is failed


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [(Outcome(reason="E_CONNECT"), "E_CONNECT"), (Outcome(status=503), "status 503")],
)
async def test_an_endpoint_that_takes_no_test_event_stays_disabled(
    outcome: Outcome, cause: str
) -> None:
    text = rf"the endpoint did not take a test event \({cause}\): it stays disabled"

    with pytest.raises(BrokenRule, match=text):
        await trials(Answering(outcome)).require_success(
            endpoint(state="disabled"), operator=False
        )


async def test_an_endpoint_that_takes_a_test_event_is_not_refused() -> None:
    sender = Answering(Outcome(status=200))

    await trials(sender).require_success(endpoint(state="disabled"), operator=False)

    assert [message.event_type for message in sender.sent] == [TEST]


async def test_four_trials_of_a_tenant_run_at_a_time() -> None:
    running = trials(Answering(Outcome(status=200)))

    with (
        running.admit("a"),
        running.admit("a"),
        running.admit("a"),
        running.admit("a"),
    ):
        with pytest.raises(Throttled), running.admit("a"):
            pass
        with running.admit("b"):
            pass


async def test_a_trial_too_many_may_come_again_after_as_many_seconds_as_a_timeout_has() -> None:
    config = Config(webhooks=WebhooksConfig(timeout_seconds=7.0))
    running = trials(Answering(None), config)

    with ExitStack() as four:
        for _number in range(4):
            four.enter_context(running.admit("a"))
        with pytest.raises(Throttled) as refused, running.admit("a"):
            pass

    assert refused.value.retry_after == 7


async def test_a_trial_that_ends_or_fails_makes_room_for_one() -> None:
    running = trials(Answering(Outcome(status=200)))
    for _ in range(5):
        with pytest.raises(LookupError), running.admit("a"):
            raise LookupError

    with running.admit("a"):
        pass


def test_a_trial_that_is_withheld_takes_no_longer_if_its_attempt_took_some_time() -> None:
    class Slow(Answering):
        async def attempt(self, message: Message) -> Outcome:
            await asyncio.sleep(0.1)
            return await super().attempt(message)

    async def lasted() -> float:
        begun = asyncio.get_running_loop().time()
        new = endpoint(state="unverified")
        await trials(Slow(PRIVATE)).send_challenge(new, operator=False)
        return asyncio.get_running_loop().time() - begun

    assert run(lasted()) == pytest.approx(0.12)


async def test_a_challenge_that_holds_the_token_is_known_again_without_it() -> None:
    class Kept(Answering):
        async def attempt(self, message: Message) -> Outcome:
            outcome = await super().attempt(message)
            return replace(outcome, answer=as_kept(outcome.answer, message.token))

    made = endpoint()
    letter = replace(made, token=CIPHER.encrypt("a", endpoint=made.id, purpose="token"))

    for _trial in range(20):  # nearly half of the challenges have the letter
        assert (await trials(Kept(None)).send_challenge(letter, operator=True)).passed
