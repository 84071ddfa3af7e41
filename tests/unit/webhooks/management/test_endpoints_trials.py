"""Tests, challenges and secrets of endpoints."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule, Throttled
from fhirpub.testing.samples import LAB
from fhirpub.webhooks.management.endpoint_secrets import encrypt_secret
from fhirpub.webhooks.management.event_types import TEST, VERIFICATION
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.message import Message
from tests.unit.webhooks.management.office import OLD, PULL, SEAL, SECRET, URL, Office

NEW = b"n" * 32


# Tests and challenges


async def test_a_challenge_that_is_repeated_makes_an_endpoint_active(office: Office) -> None:
    added = await office.add(trusted=False)
    office.sender.outcome = None

    trial = await office.service.verify(LAB, added.id)

    assert (trial.passed, trial.endpoint.state) == (True, "active")
    assert (await office.stored(added)).state == "active"
    assert office.sent == [VERIFICATION]


async def test_a_challenge_that_is_not_repeated_changes_nothing(office: Office) -> None:
    added = await office.add(trusted=False)

    trial = await office.service.verify(LAB, added.id, operator=True)

    assert (trial.passed, trial.endpoint.state) == (False, "unverified")
    assert await office.stored(added) == added


async def test_a_test_of_an_unverified_endpoint_is_its_challenge(office: Office) -> None:
    added = await office.add(trusted=False)
    office.sender.outcome = None

    trial = await office.service.test(LAB, added.id)

    assert (trial.event_type, trial.replaces_test) == (VERIFICATION, True)
    assert (await office.stored(added)).state == "active"


async def test_a_test_of_an_active_endpoint_is_a_test(office: Office) -> None:
    added = await office.add()

    trial = await office.service.test(LAB, added.id)

    assert (trial.event_type, trial.replaces_test, trial.passed) == (TEST, False, True)


@pytest.mark.parametrize("name", ["test", "verify"])
async def test_nothing_is_sent_to_an_endpoint_that_its_client_reads(
    office: Office, name: str
) -> None:
    added = await office.add(PULL)

    with pytest.raises(BrokenRule, match="nothing is sent to it"):
        await getattr(office.service, name)(LAB, added.id)


@pytest.mark.parametrize("name", ["test", "verify"])
async def test_a_fifth_trial_at_once_is_refused_unless_it_was_admitted_before(
    office: Office, name: str
) -> None:
    added = await office.add()
    act = getattr(office.service, name)
    with ExitStack() as running:
        for _number in range(3):
            running.enter_context(office.service.admit_trial(LAB))
        with office.service.admit_trial(LAB):
            with pytest.raises(Throttled):
                await act(LAB, added.id)
            await act(LAB, added.id, operator=True, admitted=True)
        await act(LAB, added.id, operator=True)

    assert len(office.sent) == 2


# Secrets


async def test_a_rotated_secret_is_the_one_that_was_given(office: Office) -> None:
    added = await office.add()

    given = await office.service.rotate_secret(LAB, added.id, {"signing_secret": SECRET})
    made = await office.service.rotate_secret(LAB, added.id, {})

    assert given.signing_secret == SECRET != made.signing_secret
    newest = made.endpoint.secrets[0].sealed
    assert SEAL.decrypt(newest, endpoint=added.id, purpose="secret") == made.signing_secret
    assert (given.token, made.token) == ("", "")


async def test_the_former_secret_signs_for_a_day_by_default(office: Office) -> None:
    added = await office.add()

    rotated = await office.service.rotate_secret(LAB, added.id, {})

    assert [one.expires for one in rotated.endpoint.secrets] == [
        None,
        office.clock() + 86_400_000,
    ]


async def test_without_a_grace_period_the_former_secret_is_gone(office: Office) -> None:
    added = await office.add()

    rotated = await office.service.rotate_secret(LAB, added.id, {"grace_seconds": 0})

    assert len(rotated.endpoint.secrets) == 1


async def test_a_rotated_token_is_the_one_that_was_given(office: Office) -> None:
    added = await office.add()

    given = await office.service.rotate_token(LAB, added.id, {"bearer_token": "abc"})
    stored = (await office.stored(added)).token
    made = await office.service.rotate_token(LAB, added.id, {})

    assert (given.token, given.signing_secret) == ("abc", "")
    assert SEAL.decrypt(stored, endpoint=added.id, purpose="token") == "abc"
    assert len(made.token) > 20


async def test_secrets_of_a_former_key_are_encrypted_under_the_first_one(office: Office) -> None:
    added = await office.add()
    await office.service.delete(LAB, (await office.add()).id)
    service = office.with_seal(SecretCipher([NEW, OLD]))
    before = service.is_old(added)

    changed = [await service.reseal(LAB) for _again in range(2)]

    resealed = await office.stored(added)
    assert (before, service.is_old(resealed), changed) == (True, False, [1, 0])
    assert SecretCipher([NEW]).decrypt(resealed.token, endpoint=added.id, purpose="token")


async def test_one_secret_of_a_former_key_is_enough_to_be_old(office: Office) -> None:
    service = office.with_seal(SecretCipher([NEW, OLD]))
    added = (await service.add(LAB, {"url": URL})).endpoint
    former = encrypt_secret(added.id, SECRET, SEAL)

    assert not service.is_old(added)
    assert service.is_old(replace(added, secrets=(*added.secrets, former)))
    assert not service.is_old(replace(added, state="deleted", secrets=(former,)))


async def test_a_token_of_a_former_key_is_enough_to_be_old(office: Office) -> None:
    service = office.with_seal(SecretCipher([NEW, OLD]))
    added = (await service.add(LAB, {"url": URL})).endpoint
    former = SEAL.encrypt("token", endpoint=added.id, purpose="token")

    assert service.is_old(replace(added, token=former))


async def test_all_endpoints_are_encrypted_under_the_first_key(office: Office) -> None:
    added = [await office.add() for _number in range(2)]
    service = office.with_seal(SecretCipher([NEW, OLD]))

    assert await service.reseal(LAB) == 2

    assert not any([service.is_old(await office.stored(one)) for one in added])


@pytest.mark.parametrize("name", ["test", "verify"])
async def test_from_the_operator_nothing_is_withheld_of_a_challenge(
    office: Office, name: str
) -> None:
    added = await office.add(trusted=False)
    office.sender.outcome = Outcome(reason="E_TLS", private=True, duration=1)

    trial = await getattr(office.service, name)(LAB, added.id, operator=True)

    assert trial.outcome is office.sender.outcome


async def test_a_test_is_of_the_event_that_was_asked_for(office: Office) -> None:
    added = await office.add()

    trial = await office.service.test(LAB, added.id, {"event_type": "message.exhausted"})

    assert (trial.event_type, office.sent) == ("message.exhausted", ["message.exhausted"])


async def test_the_test_before_an_endpoint_goes_on_is_one_of_the_four_at_once(
    office: Office,
) -> None:
    added = await office.add()
    await office.service.disable(LAB, added.id)
    with ExitStack() as running:
        for _number in range(4):
            running.enter_context(office.service.admit_trial(LAB))
        with pytest.raises(Throttled):
            await office.service.enable(LAB, added.id, operator=True)

    assert (await office.stored(added)).state == "disabled"
    assert office.sent == []


async def test_an_endpoint_that_is_read_goes_on_without_a_test(office: Office) -> None:
    added = await office.add(PULL)
    await office.service.disable(LAB, added.id)

    enabled = await office.service.enable(LAB, added.id, operator=True)

    assert (enabled.state, enabled.why, office.sent) == ("paused", "", [])


async def test_a_test_is_not_signed_with_a_secret_whose_time_is_over(office: Office) -> None:
    added = await office.add(signing_secret=SECRET)
    await office.service.rotate_secret(LAB, added.id, {"grace_seconds": 60})

    for seconds in (59.999, 0.001):
        office.clock.forward(seconds=seconds)
        await office.service.test(LAB, added.id)

    assert [len(message.secrets) for message in office.sender.sent] == [2, 1]


async def test_a_challenge_that_was_passed_before_a_move_verifies_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await office.add(trusted=False)
    office.sender.outcome, attempt = None, office.sender.attempt

    async def then_move(message: Message) -> Outcome:
        outcome = await attempt(message)
        await office.service.change(LAB, added.id, {"url": f"{URL}/new"})
        return outcome

    monkeypatch.setattr(office.sender, "attempt", then_move)
    trial = await office.service.verify(LAB, added.id)

    stored = await office.stored(added)
    assert (stored.url, stored.state) == (f"{URL}/new", "unverified")
    assert trial.endpoint == stored


async def test_the_operator_is_told_why_a_private_endpoint_stays_disabled(
    office: Office,
) -> None:
    added = await office.add()
    await office.service.disable(LAB, added.id)
    office.sender.outcome = Outcome(reason="E_TLS", private=True, duration=1)

    with pytest.raises(BrokenRule, match="E_TLS"):
        await office.service.enable(LAB, added.id, operator=True)


async def test_what_the_operator_disables_during_the_test_of_a_tenant_stays_disabled(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await office.add()
    gone = replace(added, state="disabled", why="gone", revision=added.revision + 1)
    assert await office.store.put_endpoint(LAB, gone)
    attempt = office.sender.attempt

    async def then_disable(message: Message) -> Outcome:
        await office.service.disable(LAB, added.id)
        return await attempt(message)

    monkeypatch.setattr(office.sender, "attempt", then_disable)
    with pytest.raises(BrokenRule, match="by the operator"):
        await office.service.enable(LAB, added.id)

    assert (await office.stored(added)).state == "disabled"


async def test_an_endpoint_that_is_moved_back_after_a_move_in_the_meantime_is_verified_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    added, address = await office.add(), office.sender.address
    moves: list[str] = []

    async def while_it_moves(url: str, *, tenant: str, trusted: bool) -> str:
        if not moves:
            moves.append(url)
            await office.service.change(LAB, added.id, {"url": f"{URL}/new"}, trusted=True)
        return await address(url, tenant=tenant, trusted=trusted)

    monkeypatch.setattr(office.sender, "address", while_it_moves)
    changed = await office.service.change(LAB, added.id, {"url": URL})

    assert (changed.url, changed.state) == (URL, "unverified")
