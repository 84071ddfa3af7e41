"""Which state an endpoint has after a change, and what it is refused in each."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.errors import (
    BrokenRule,
    InvalidContent,
    NoSuchRecord,
    NotPossible,
    VersionConflict,
)
from fhirpub.plugin_api.sinks import EventSink, SinkEvent
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.samples import LAB, OTHER
from fhirpub.webhooks.management.event_types import TEST
from fhirpub.webhooks.policy.endpoint_health import NEW_HEALTH
from fhirpub.webhooks.transport.sinks import Sinks
from tests.unit.webhooks.management.office import FAILED, PULL, SEAL, SECRET, URL, Office

MOVED = "https://93.184.215.14/other"
ID = "e0000000-0000-4000-8000-000000000000"


# Additions


@pytest.mark.parametrize(
    ("url", "trusted", "state"),
    [
        (URL, False, "unverified"),
        (URL, True, "active"),
        (PULL, False, "paused"),
        (PULL, True, "paused"),
    ],
)
async def test_the_first_state_follows_from_the_url_and_who_adds_it(
    office: Office, url: str, state: str, *, trusted: bool
) -> None:
    added = await office.add(url, trusted=trusted)

    assert (added.state, added.created, added.tenant) == (state, office.clock(), LAB)
    assert (await office.stored(added)).state == state


async def test_an_endpoint_keeps_the_secret_and_the_token_that_were_given(office: Office) -> None:
    given = {"url": URL, "signing_secret": SECRET, "bearer_token": "abc"}

    added = await office.service.add(LAB, given, endpoint_id=ID)

    assert (added.endpoint.id, added.signing_secret, added.token) == (ID, SECRET, "abc")
    assert SEAL.decrypt(added.endpoint.token, endpoint=ID, purpose="token") == "abc"
    (secret,) = added.endpoint.secrets
    assert SEAL.decrypt(secret.sealed, endpoint=ID, purpose="secret") == SECRET


async def test_an_endpoint_gets_a_secret_and_a_token_of_its_own(office: Office) -> None:
    one, other = [await office.service.add(LAB, {"url": URL}) for _number in range(2)]

    assert len({one.signing_secret, other.signing_secret, one.token, other.token}) == 4
    assert one.endpoint.id != other.endpoint.id


async def test_an_endpoint_needs_a_url(office: Office) -> None:
    with pytest.raises(InvalidContent) as refused:
        await office.service.add(LAB, {})

    assert [issue.expression for issue in refused.value.issues] == ["url"]


async def test_a_tenant_has_as_many_endpoints_as_the_setting_and_no_more(office: Office) -> None:
    first = [await office.add() for _number in range(2)]
    with pytest.raises(BrokenRule, match="at most 2 endpoints"):
        await office.add()
    await office.service.add(OTHER, {"url": URL})

    await office.service.delete(LAB, first[0].id)

    assert (await office.add()).state == "active"


async def test_endpoints_that_rest_count_for_the_limit(office: Office) -> None:
    paused, disabled = [await office.add() for _number in range(2)]
    await office.service.pause(LAB, paused.id)
    await office.service.disable(LAB, disabled.id)

    with pytest.raises(BrokenRule, match="at most 2 endpoints"):
        await office.add()


async def test_additions_at_once_are_counted_one_after_the_other(office: Office) -> None:
    added = await asyncio.gather(*(office.add() for _ in range(4)), return_exceptions=True)

    assert [type(one) for one in added].count(BrokenRule) == 2
    assert len(await office.service.endpoints(LAB)) == 2


async def test_an_id_that_is_taken_is_refused(office: Office) -> None:
    await office.service.add(LAB, {"url": URL}, endpoint_id=ID)

    with pytest.raises(NotPossible, match=ID):
        await office.service.add(LAB, {"url": URL}, endpoint_id=ID)


# Changes


async def test_a_deleted_endpoint_is_not_found(office: Office) -> None:
    added = await office.add()

    await office.service.delete(LAB, added.id)

    assert await office.service.endpoints(LAB) == []
    with pytest.raises(NoSuchRecord):
        await office.service.endpoint(LAB, added.id)
    assert (await office.stored(added)).token == b""


async def test_an_endpoint_of_another_revision_is_not_deleted(office: Office) -> None:
    added = await office.add()

    def check(revision: int) -> None:
        if revision != added.revision + 1:
            raise VersionConflict(target="W/2", current=revision)

    with pytest.raises(VersionConflict):
        await office.service.delete(LAB, added.id, check=check)

    assert await office.stored(added) == added


async def test_an_endpoint_at_another_url_has_to_be_verified_again(office: Office) -> None:
    added = await office.add()

    changed = await office.service.change(LAB, added.id, {"url": MOVED})

    assert (changed.state, changed.url, changed.revision) == ("unverified", MOVED, 2)


async def test_an_endpoint_that_the_operator_moves_stays_active(office: Office) -> None:
    added = await office.add()

    changed = await office.service.change(LAB, added.id, {"url": MOVED}, trusted=True)

    assert changed.state == "active"


async def test_a_change_at_the_same_url_keeps_state_and_health(office: Office) -> None:
    added = await office.add()
    await office.store.save_health(added.id, b'{"warned":1}')

    changed = await office.service.change(LAB, added.id, {"url": URL, "description": "LIS"})

    assert (changed.state, changed.description) == ("active", "LIS")
    assert (await office.stored(added)).condition == b'{"warned":1}'


async def test_a_change_of_nothing_makes_no_revision(office: Office) -> None:
    added = await office.add()

    assert await office.service.change(LAB, added.id, {"url": URL}) == await office.stored(added)
    assert (await office.stored(added)).revision == added.revision


async def test_an_endpoint_that_is_sent_to_cannot_be_read_instead(office: Office) -> None:
    added = await office.add()

    for trusted in (False, True):
        with pytest.raises(InvalidContent, match="add another endpoint"):
            await office.service.change(LAB, added.id, {"url": PULL}, trusted=trusted)


class Queue(EventSink):
    name = "queue"

    async def send(self, event: SinkEvent) -> None:
        """Take it."""


async def test_only_the_operator_adds_an_endpoint_at_a_sink_or_moves_one_there(
    office: Office,
) -> None:
    office.sender._sinks = Sinks([Queue()], timeout_seconds=1)
    with pytest.raises(InvalidContent):
        await office.add("sink:queue", trusted=False)
    at_a_sink, added = await office.add("sink:queue/a"), await office.add()
    with pytest.raises(InvalidContent):
        await office.service.change(LAB, added.id, {"url": "sink:queue"})

    moved = await office.service.change(LAB, added.id, {"url": "sink:queue"}, trusted=True)

    assert (at_a_sink.url, at_a_sink.state) == ("sink:queue/a", "active")
    assert (moved.url, moved.state) == ("sink:queue", "active")


@pytest.mark.parametrize("field", ["signing_secret", "bearer_token"])
async def test_a_secret_is_not_changed_like_another_field(office: Office, field: str) -> None:
    added = await office.add()

    with pytest.raises(InvalidContent):
        await office.service.change(LAB, added.id, {field: SECRET})


# Pauses


async def test_a_paused_endpoint_goes_on_without_a_test(office: Office) -> None:
    added = await office.add()
    paused = await office.service.pause(LAB, added.id)

    enabled = await office.service.enable(LAB, added.id)

    assert (paused.state, enabled.state, office.sent) == ("paused", "active", [])


async def test_an_endpoint_is_verified_before_it_is_enabled(office: Office) -> None:
    added = await office.add(trusted=False)

    with pytest.raises(BrokenRule, match="verify it first"):
        await office.service.enable(LAB, added.id)


async def test_an_endpoint_that_its_client_reads_is_not_enabled(office: Office) -> None:
    added = await office.add(PULL)

    with pytest.raises(BrokenRule, match="read by its client"):
        await office.service.enable(LAB, added.id)


async def test_what_the_operator_disabled_only_the_operator_enables(office: Office) -> None:
    added = await office.add()
    disabled = await office.service.disable(LAB, added.id)

    with pytest.raises(BrokenRule, match="by the operator"):
        await office.service.enable(LAB, added.id)
    enabled = await office.service.enable(LAB, added.id, operator=True)

    assert (disabled.state, enabled.state, office.sent) == ("disabled", "active", [TEST])


async def disabled_by_failures(office: Office) -> Endpoint:
    added = await office.add()
    failing = replace(added, state="disabled", why="failures", revision=2)
    assert await office.store.put_endpoint(LAB, failing)
    await office.store.save_health(added.id, b'{"warned":1}')
    return failing


async def test_an_endpoint_that_failed_goes_on_after_a_test_without_its_failures(
    office: Office,
) -> None:
    failing = await disabled_by_failures(office)

    enabled = await office.service.enable(LAB, failing.id)

    assert (enabled.state, enabled.why, office.sent) == ("active", "", [TEST])
    assert (await office.stored(failing)).condition == NEW_HEALTH


async def test_an_endpoint_that_fails_its_test_stays_disabled(office: Office) -> None:
    failing = await disabled_by_failures(office)
    office.sender.outcome = FAILED

    with pytest.raises(BrokenRule, match=r"\(status 503\): it stays disabled"):
        await office.service.enable(LAB, failing.id)

    assert (await office.stored(failing)).state == "disabled"
    assert (await office.stored(failing)).condition == b'{"warned":1}'


async def test_one_that_was_never_verified_is_unverified_once_it_is_enabled(
    office: Office,
) -> None:
    added = await office.add(trusted=False)
    await office.service.disable(LAB, added.id)

    enabled = await office.service.enable(LAB, added.id, operator=True)

    assert (enabled.state, office.sent) == ("unverified", [])
