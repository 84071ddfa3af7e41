"""Sessions and one-time statements, on a store in a file."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.auth.statements import VALID_SECONDS
from fhirpub.console.sessions import Person
from fhirpub.errors import NotAuthenticated
from tests.unit.console.signing_in import World


async def test_each_session_has_an_id_and_a_proof_of_its_own(world: World) -> None:
    one, other = [await world.sessions.begin(world.person) for _ in range(2)]

    first, second = await world.sessions.read(one), await world.sessions.read(other)

    assert first.id != second.id
    assert first.proof != second.proof


async def test_a_renewed_session_is_the_same_one(world: World) -> None:
    session = await world.sessions.read(await world.sessions.begin(world.person))
    world.clock.forward(seconds=11 * 60)

    renewed = await world.sessions.read(await world.sessions.renew(session))

    assert (renewed.id, renewed.proof, renewed.began) == (
        session.id,
        session.proof,
        session.began,
    )
    assert renewed.expires > session.expires


async def test_a_session_that_is_long_enough_is_not_renewed(world: World) -> None:
    session = await world.sessions.read(await world.sessions.begin(world.person))
    world.clock.forward(seconds=9 * 60)

    assert await world.sessions.renew(session) == ""


async def test_a_session_acts_with_the_scopes_that_its_client_has_now(world: World) -> None:
    session = await world.sessions.read(await world.sessions.begin(world.person))

    assert session.caller is not None
    assert session.caller.client_id == world.person.subject


@pytest.mark.parametrize("purpose", ["sign-in", "invitation", "challenge"])
async def test_a_statement_is_for_one_purpose(world: World, purpose: str) -> None:
    others = [name for name in VALID_SECONDS if name != purpose]
    statement = await world.sessions.sign_once(purpose, world.person)  # type: ignore[arg-type]

    for other in others:
        with pytest.raises(NotAuthenticated):
            await world.sessions.read_once(other, statement)
    assert (await world.sessions.read_once(purpose, statement)) == world.person  # type: ignore[arg-type]


async def test_of_racing_processes_one_uses_a_statement(world: World) -> None:
    statement = await world.sessions.sign_once("sign-in", world.person)
    processes = [world.another_process() for _ in range(4)]

    uses = await asyncio.gather(
        *(each.use_once("sign-in", statement) for each in processes), return_exceptions=True
    )

    assert [use for use in uses if use == world.person] == [world.person]
    refusals = [use.reason for use in uses if isinstance(use, NotAuthenticated)]
    assert len(refusals) == 3
    assert all("used before" in reason for reason in refusals)


async def test_a_statement_is_no_session_and_a_session_no_statement(world: World) -> None:
    statement = await world.sessions.sign_once("sign-in", world.person)
    cookie = await world.sessions.begin(world.person)

    with pytest.raises(NotAuthenticated):
        await world.sessions.read(statement)
    with pytest.raises(NotAuthenticated):
        await world.sessions.use_once("sign-in", cookie)


async def test_a_session_by_a_key_that_the_client_has_not_is_none(world: World) -> None:
    cookie = await world.sessions.begin(replace(world.person, kid="passkey:gone"))

    with pytest.raises(NotAuthenticated):
        await world.sessions.read(cookie)


async def test_the_session_of_an_operator_that_the_settings_do_not_name_is_none(
    world: World,
) -> None:
    person = Person(subject="ana", name="ana", is_operator=True)
    cookie = await world.sessions.begin(person)

    with pytest.raises(NotAuthenticated):
        await world.sessions.read(cookie)


async def test_a_session_that_was_ended_has_no_cookie_that_outlives_it(world: World) -> None:
    session = await world.sessions.read(await world.sessions.begin(world.person))
    world.clock.forward(seconds=11 * 60)
    later = await world.sessions.renew(session)

    await world.sessions.end(session)  # by the page that has the first cookie
    world.clock.forward(seconds=10 * 60)
    await world.store.sweep_revoked_tokens(before=world.clock())

    with pytest.raises(NotAuthenticated):
        await world.another_process().read(later)
