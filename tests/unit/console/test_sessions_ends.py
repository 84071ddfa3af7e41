"""When sessions end: without pages, after hours, when they are ended, and with their person."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.administration.http.callers import bootstrap_kid
from fhirpub.auth.clients import disable_client
from fhirpub.auth.revocation import MAX_REVOKED
from fhirpub.auth.tenants import change_tenant
from fhirpub.config.administration import BOOTSTRAP, AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.console.sessions import Person, Session
from fhirpub.errors import NotAuthenticated, Throttled
from fhirpub.storage.client_activity_contract import RevokedToken
from tests.unit.console.signing_in import KEY_HASH, World, configured

IDLE, HOURS = 20 * 60, 10 * 3_600


@pytest.fixture
async def desk(world: World) -> World:
    """A world with the operators ana and bootstrap."""
    return configured(world, admin=AdminConfig(bootstrap_key_hash=KEY_HASH, callers=["ana=/no"]))


def an_operator(name: str = "ana", kid: str = "") -> Person:
    return Person(subject=name, name=name, is_operator=True, kid=kid)


async def begun(world: World, person: Person | None = None) -> Session:
    return await world.sessions.read(await world.sessions.begin(person or world.person))


async def is_read(world: World, cookie: str) -> bool:
    try:
        await world.another_process().read(cookie)
    except NotAuthenticated:
        return False
    return True


async def test_a_session_has_the_person_and_the_times_of_its_beginning(world: World) -> None:
    session = await begun(world)

    now = world.clock() // 1000
    assert session.person == world.person
    assert (session.began, session.expires) == (now, now + IDLE)


@pytest.mark.parametrize(("seconds", "lasts"), [(IDLE - 1, True), (IDLE, False)])
async def test_a_session_ends_after_the_minutes_without_a_page(
    world: World, seconds: int, *, lasts: bool
) -> None:
    cookie = await world.sessions.begin(world.person)

    world.clock.forward(seconds=seconds)

    assert await is_read(world, cookie) is lasts


@pytest.mark.parametrize(("seconds", "renewed"), [(IDLE // 2 - 1, False), (IDLE // 2, True)])
async def test_a_session_is_renewed_once_half_of_its_minutes_have_passed(
    world: World, seconds: int, *, renewed: bool
) -> None:
    session = await begun(world)

    world.clock.forward(seconds=seconds)

    assert bool(await world.sessions.renew(session)) is renewed


async def test_a_session_ends_after_its_hours_however_much_it_is_used(world: World) -> None:
    session = await begun(world)
    end = session.began + HOURS
    while world.clock() // 1000 + IDLE < end:
        world.clock.forward(seconds=IDLE - 60)
        session = await world.sessions.read(await world.sessions.renew(session))

    assert session.expires == end


async def test_the_times_of_sessions_are_those_of_the_settings(world: World) -> None:
    short = configured(world, console=ConsoleConfig(idle_minutes=5, session_hours=1))

    session = await begun(short)

    assert session.expires - session.began == 300


async def test_a_session_that_is_ended_is_ended_in_all_processes(world: World) -> None:
    ended = await world.sessions.begin(world.person)
    stays = await world.sessions.begin(world.person)

    await world.sessions.end(await world.sessions.read(ended))

    assert not await is_read(world, ended)
    assert await is_read(world, stays)


async def test_what_ends_a_session_is_kept_until_its_hours_are_over(world: World) -> None:
    session = await begun(world)

    await world.sessions.end(session)

    until = (session.began + HOURS) * 1000
    (kept,) = await world.store.revoked_tokens(world.person.subject)
    assert kept == RevokedToken(world.person.subject, session.id, until)


async def test_a_disabled_client_has_no_session(world: World) -> None:
    cookie = await world.sessions.begin(world.person)

    await disable_client(world.store, world.person.subject)

    assert not await is_read(world, cookie)


async def test_a_client_of_a_disabled_tenant_has_no_session(world: World) -> None:
    session = await begun(world)
    cookie = await world.sessions.begin(world.person)
    assert session.caller is not None

    await change_tenant(world.store, session.caller.tenant.id, disabled=True)

    assert not await is_read(world, cookie)


async def test_an_operator_that_the_settings_name_has_a_session_without_a_client(
    desk: World,
) -> None:
    for name in ("ana", BOOTSTRAP):
        session = await begun(desk, an_operator(name))
        assert (session.person.subject, session.caller) == (name, None)


async def test_an_operator_of_a_provider_is_one_while_the_settings_list_it(world: World) -> None:
    listed = configured(world, console=ConsoleConfig(oidc_operators=["ada@lab.example"]))
    person = an_operator("ada@lab.example")

    cookie = await listed.sessions.begin(person)

    assert (await listed.sessions.read(cookie)).person == person
    assert not await is_read(world, cookie)


async def test_without_a_bootstrap_key_none_signs_in_by_it(world: World) -> None:
    cookie = await world.sessions.begin(an_operator(BOOTSTRAP))

    assert not await is_read(world, cookie)


async def test_the_session_of_a_key_ends_when_the_key_is_replaced(desk: World) -> None:
    person = an_operator(BOOTSTRAP, kid=bootstrap_kid(desk.config.admin))
    cookie = await desk.sessions.begin(person)
    assert await is_read(desk, cookie)

    other = AdminConfig(bootstrap_key_hash=hashlib.sha256(b"other").hexdigest())

    assert not await is_read(configured(desk, admin=other), cookie)


async def test_the_session_of_a_caller_ends_with_its_file_of_keys(desk: World) -> None:
    cookie = await desk.sessions.begin(an_operator("ana", kid="1"))

    assert not await is_read(desk, cookie)


async def test_the_session_of_an_operator_that_is_ended_is_ended_alone(desk: World) -> None:
    ended = await desk.sessions.begin(an_operator())
    others = [await desk.sessions.begin(an_operator(name)) for name in ("ana", BOOTSTRAP)]

    await desk.sessions.end(await desk.sessions.read(ended))

    assert not await is_read(desk, ended)
    assert [await is_read(desk, one) for one in others] == [True, True]


async def test_an_operator_with_the_name_of_a_client_ends_no_session_of_the_client(
    world: World,
) -> None:
    name = world.person.subject
    desk = configured(world, admin=AdminConfig(callers=[f"{name}=/no"]))

    await desk.sessions.end(await begun(desk, an_operator(name)))

    assert await desk.store.revoked_tokens(name) == []


async def test_an_operator_with_too_many_ended_sessions_has_to_wait(desk: World) -> None:
    session, until = await begun(desk, an_operator()), desk.clock() + 60_000
    ended = [RevokedToken("admin ana", str(number), until) for number in range(MAX_REVOKED)]
    await asyncio.gather(*(desk.store.revoke_token(one, most=MAX_REVOKED) for one in ended))

    with pytest.raises(Throttled, check=lambda refused: refused.retry_after == 60):
        await desk.sessions.end(session)


async def test_a_person_is_no_operator_and_an_operator_no_person(desk: World) -> None:
    person = replace(desk.person, is_operator=True)
    operator = replace(an_operator(), is_operator=False)

    for one in (person, operator):
        with pytest.raises(NotAuthenticated):
            await desk.sessions.read(await desk.sessions.begin(one))


async def test_a_cookie_that_is_no_statement_is_no_session(world: World, tmp_path: Path) -> None:
    for cookie in ("", "x", "a.b.c"):
        assert not await is_read(world, cookie)


async def test_a_statement_without_a_person_names_none(world: World) -> None:
    statement = await world.sessions.sign_once("challenge")

    assert await world.sessions.use_once("challenge", statement) == Person(subject="", name="")


async def test_a_statement_that_is_only_read_can_be_used(world: World) -> None:
    person = replace(world.person, kid="passkey:1")
    statement = await world.sessions.sign_once("sign-in", person)

    assert await world.sessions.read_once("sign-in", statement) == person
    assert await world.sessions.use_once("sign-in", statement) == person
    with pytest.raises(NotAuthenticated):
        await world.sessions.use_once("sign-in", statement)


async def test_the_proof_of_forms_is_no_id_and_another_in_each_session(world: World) -> None:
    first, second = await begun(world), await begun(world)

    assert len({first.id, second.id, first.proof, second.proof}) == 4
