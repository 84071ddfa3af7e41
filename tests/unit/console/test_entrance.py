"""Sign-ins are admitted or refused, slowed down, recorded, and lead to a page of the console."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from fhirpub.audit.record import Agent
from fhirpub.auth.clients import disable_client, edit_client
from fhirpub.console.entrance import (
    SignInRefused,
    agent_of,
    enter,
    leave,
    path_after,
    record,
)
from fhirpub.console.sessions import Person
from fhirpub.errors import NotAuthenticated, Throttled
from tests.unit.console.signing_in import ADDRESS, Door


async def test_a_person_enters_with_a_session(door: Door) -> None:
    entered = await enter(door.visit, door.attempt(), following="/console/endpoints")

    session = await door.world.sessions.read(entered.cookie)
    assert (entered.path, entered.ends) == ("/console/endpoints", False)
    assert session.person == door.world.person


async def test_a_sign_in_is_recorded_in_the_chain_of_the_tenant(door: Door) -> None:
    await enter(door.visit, door.attempt())

    (line,) = await door.records(await door.tenant())
    assert (line["action"], line["status"]) == ("console.sign-in", 200)
    assert (line["client"], line["address"]) == (door.world.person.subject, ADDRESS)
    assert await door.records("") == []


async def test_the_sign_in_of_an_operator_is_recorded_in_the_chain_of_the_service(
    door: Door,
) -> None:
    await enter(door.visit, door.attempt(Person(subject="ana", name="Ana", is_operator=True)))

    (line,) = await door.records("")
    assert (line["user"], line["request"]) == ("ana", "r-1")
    assert "client" not in line


async def test_who_is_refused_has_no_session_and_is_counted_under_the_client(door: Door) -> None:
    with pytest.raises(SignInRefused):
        await enter(door.visit, door.refused(door.world.person.subject))

    (line,) = await door.records(await door.tenant())
    assert (line["action"], line["status"]) == ("console.sign-in", 403)
    assert (line["count"], line["address"]) == (1, ADDRESS)


async def test_a_refusal_without_a_client_is_counted_for_the_service(door: Door) -> None:
    with pytest.raises(SignInRefused):
        await enter(door.visit, door.refused())

    assert [one["status"] for one in await door.records("")] == [403]


async def test_a_refusal_is_logged_with_its_reason_and_way(door: Door) -> None:
    with capture_logs() as logged, pytest.raises(SignInRefused):
        await enter(door.visit, door.refused())

    (line,) = [one for one in logged if one["event"] == "sign-in refused"]
    assert (line["way"], line["reason"]) == ("a test", "a wrong passkey")
    assert (line["address"], line["request_id"]) == (ADDRESS, "r-1")


async def test_a_sign_in_is_logged_without_its_cookie(door: Door) -> None:
    with capture_logs() as logged:
        entered = await enter(door.visit, door.attempt())

    (line,) = [one for one in logged if one["event"] == "signed in"]
    assert (line["client"], line["tenant"]) == (door.world.person.subject, await door.tenant())
    assert (line["way"], line["address"], line["request_id"]) == ("a test", ADDRESS, "r-1")
    assert entered.cookie not in str(logged)


async def test_the_sign_in_and_sign_out_of_an_operator_are_logged_by_name(door: Door) -> None:
    with capture_logs() as logged:
        ana = Person(subject="ana", name="Ana", is_operator=True)
        entered = await enter(door.visit, door.attempt(ana))
        session = await door.world.sessions.read(entered.cookie)
        await leave(replace(door.visit, session=session))

    lines = [one for one in logged if one["event"] in ("signed in", "signed out")]
    named = [(one["event"], one["operator"], one["address"], one["request_id"]) for one in lines]
    assert named == [("signed in", "ana", ADDRESS, "r-1"), ("signed out", "ana", ADDRESS, "r-1")]


async def test_a_sign_out_is_logged_for_its_client_without_its_cookie(door: Door) -> None:
    entered = await enter(door.visit, door.attempt())
    session = await door.world.sessions.read(entered.cookie)
    with capture_logs() as logged:
        await leave(replace(door.visit, session=session))

    (line,) = [one for one in logged if one["event"] == "signed out"]
    assert (line["client"], line["tenant"]) == (door.world.person.subject, await door.tenant())
    assert entered.cookie not in str(logged)


async def test_a_client_that_was_disabled_since_its_proof_is_refused(door: Door) -> None:
    await disable_client(door.world.store, door.world.person.subject)

    with pytest.raises(SignInRefused) as refused:
        await enter(door.visit, door.attempt())

    assert refused.value.client == door.world.person.subject


async def test_an_operator_that_the_settings_do_not_name_is_refused(door: Door) -> None:
    with pytest.raises(SignInRefused) as refused:
        await enter(door.visit, door.attempt(Person(subject="x", name="x", is_operator=True)))

    assert refused.value.client == ""


@pytest.mark.parametrize(
    ("network", "admitted"), [("192.0.2.0/24", True), ("192.0.3.0/24", False)]
)
async def test_a_person_enters_from_the_networks_of_the_client_alone(
    door: Door, network: str, *, admitted: bool
) -> None:
    await edit_client(door.world.store, door.world.person.subject, networks=[network])

    if admitted:
        assert (await enter(door.visit, door.attempt())).cookie
    else:
        with pytest.raises(SignInRefused, match="address not permitted"):
            await enter(door.visit, door.attempt())


async def test_attempts_of_an_address_that_fail_are_slowed_down(door: Door) -> None:
    for _ in range(3):
        with pytest.raises(SignInRefused):
            await enter(door.visit, door.refused())

    with pytest.raises(Throttled):
        await enter(door.visit, door.attempt())
    elsewhere = replace(door.visit, address="198.51.100.9")
    assert (await enter(elsewhere, door.attempt())).cookie


async def test_who_leaves_has_no_session_any_more(door: Door) -> None:
    cookie = (await enter(door.visit, door.attempt())).cookie
    session = await door.world.sessions.read(cookie)

    left = await leave(replace(door.visit, session=session))

    assert (left.path, left.cookie, left.ends) == ("/console/sign-in", "", True)
    with pytest.raises(NotAuthenticated):
        await door.world.sessions.read(cookie)
    records = await door.records(await door.tenant())
    assert [one["action"] for one in records] == ["console.sign-in", "console.sign-out"]


def test_the_agent_of_a_person_is_a_client_and_that_of_an_operator_a_user(door: Door) -> None:
    person, operator = door.world.person, Person(subject="ana", name="Ana", is_operator=True)
    shared = {"environment": "sandbox", "address": ADDRESS, "request": "r-1"}

    assert agent_of(door.visit, person) == Agent(client=person.subject, **shared)
    assert agent_of(door.visit, operator) == Agent(user="ana", **shared)


async def test_nothing_is_recorded_without_an_audit_trail() -> None:
    await record(cast("Any", SimpleNamespace(audit=None)), "x", Agent(), None)


@pytest.mark.parametrize(
    "path", ["/console/", "/console/endpoints?a=1&b=%C3%BC", "/console/" + "x" * 1_491]
)
def test_a_page_of_the_console_follows(path: str) -> None:
    assert path_after(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/console",
        "/consoles/",
        "//evil.example/console/",
        "https://evil.example/console/",
        "/console/\\evil.example",
        "/console/ü",
        "/console/a\nb",
        "/console/" + "x" * 1_492,
    ],
)
def test_anything_else_leads_to_the_start(path: str) -> None:
    assert path_after(path) == "/console/"


async def test_attempts_from_outside_of_the_networks_are_slowed_down_as_well(door: Door) -> None:
    world = door.world
    await edit_client(world.store, world.person.subject, networks=["198.51.100.0/24"])
    for _ in range(3):
        with pytest.raises(SignInRefused):
            await enter(door.visit, door.attempt())

    with pytest.raises(Throttled):
        await enter(door.visit, door.attempt())
