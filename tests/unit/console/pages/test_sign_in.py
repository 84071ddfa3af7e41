"""Signing in by the administrative key or a link, and out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.config.administration import BOOTSTRAP
from fhirpub.console.pages import sign_in
from fhirpub.console.sessions import Person
from fhirpub.console.visit import PageRefused
from fhirpub.errors import NotAuthenticated
from tests.unit.console.pages.entering import KEY, ORIGIN, at_the_door, session_of
from tests.unit.console.pages.visiting import as_page, in_words, place_of
from tests.unit.console.signing_in import Door
from tests.unit.console.test_sessions_ends import begun


async def link_to(door: Door, person: Person | None = None) -> str:
    visit = at_the_door(door)
    return await visit.console.sessions.sign_once("sign-in", person or door.world.person)


async def test_the_page_shows_each_way_to_sign_in(door: Door) -> None:
    page = as_page(await sign_in.show_sign_in(at_the_door(door, next="/console/endpoints")))

    assert (page.status, page.template) == (200, "sign_in.html")
    assert page.values["following"] == "/console/endpoints"
    assert (page.values["has_key"], page.values["has_provider"]) == (True, False)
    assert page.values["why_no_passkeys"] == ""
    assert page.values["base_url"] == ORIGIN


async def test_the_page_has_a_challenge_that_is_used_once(door: Door) -> None:
    visit = at_the_door(door)

    page = as_page(await sign_in.show_sign_in(visit))

    await visit.console.sessions.use_once("challenge", page.values["challenge"])
    assert '"rpId": "console.example.org"' in page.values["options"]


async def test_without_passkeys_there_is_no_challenge(door: Door) -> None:
    page = as_page(await sign_in.show_sign_in(at_the_door(door, has_passkeys=False)))

    assert (page.values["challenge"], page.values["options"]) == ("", "")


async def test_the_page_leads_nowhere_else(door: Door) -> None:
    page = as_page(await sign_in.show_sign_in(at_the_door(door, next="https://evil.example")))

    assert page.values["following"] == "/console/"


async def test_who_is_signed_in_goes_on(door: Door) -> None:
    visit = at_the_door(door, session=await begun(door.world), next="/console/accesses")

    assert place_of(await sign_in.show_sign_in(visit)) == "/console/accesses"


async def test_the_administrative_key_begins_the_session_of_an_operator(door: Door) -> None:
    visit = at_the_door(door, form={"key": KEY, "next": "/console/operations"})

    entered = await sign_in.sign_in_by_key(visit)

    person = (await session_of(visit, entered)).person
    assert place_of(entered) == "/console/operations"
    assert (person.subject, person.is_operator) == (BOOTSTRAP, True)
    assert person.kid


@pytest.mark.parametrize("key", ["", "x" * 43, f"{KEY} "[1:]])
async def test_another_key_shows_the_page_with_what_is_wrong(door: Door, key: str) -> None:
    form = {"key": key, "next": "/console/operations"}

    page = as_page(await sign_in.sign_in_by_key(at_the_door(door, form=form)))

    assert page.status == 403
    assert page.values["problem"] == "This is not the administrative key."
    assert page.values["following"] == "/console/operations"


class OfOperator:
    """Callers of administration: one sends a token of its own."""

    async def authenticate(self, _authorization: Any) -> str:
        return "boss@example.org"


async def test_a_token_of_an_operator_is_no_administrative_key(door: Door) -> None:
    visit = at_the_door(door, form={"key": "a.b.c"})
    console: Any = visit.console
    console.interface = SimpleNamespace(callers=OfOperator())

    with capture_logs() as logged:
        page = as_page(await sign_in.sign_in_by_key(visit))

    assert page.status == 403
    reasons = [one["reason"] for one in logged if one["event"] == "sign-in refused"]
    assert reasons == ["a token in place of the administrative key"]


async def test_a_link_is_shown_with_its_person_and_not_used_up(door: Door) -> None:
    code = await link_to(door)

    pages = [as_page(await sign_in.show_link(at_the_door(door, code=code))) for _ in range(2)]

    shown = {"name": "Ada", "is_operator": False, "code": code}
    assert [page.values for page in pages] == [shown, shown]


async def test_a_link_begins_one_session(door: Door) -> None:
    code = await link_to(door)
    visit = at_the_door(door, form={"code": code})

    entered = await sign_in.sign_in_by_link(visit)

    assert (await session_of(visit, entered)).person == door.world.person
    with pytest.raises(PageRefused, match="expired or was used before"):
        await sign_in.sign_in_by_link(visit)


@pytest.mark.parametrize("page", [sign_in.show_link, sign_in.sign_in_by_link])
async def test_a_wrong_link_is_refused(door: Door, page: Any) -> None:
    visit = at_the_door(door, form={"code": "x"}, code="x")

    with pytest.raises(PageRefused, match="ask for another one"):
        await page(visit)


async def test_a_link_ends_after_two_minutes(door: Door) -> None:
    code = await link_to(door)
    door.world.clock.forward(seconds=120)

    with pytest.raises(PageRefused):
        await sign_in.show_link(at_the_door(door, code=code))


async def test_signing_out_ends_the_session(door: Door) -> None:
    visit = at_the_door(door)
    cookie = await visit.console.sessions.begin(door.world.person)
    visit.session = await visit.console.sessions.read(cookie)

    left = await sign_in.sign_out(visit)

    assert place_of(left) == "/console/sign-in"
    with pytest.raises(NotAuthenticated):
        await visit.console.sessions.read(cookie)


def test_each_page_of_the_sign_in_has_its_address_and_audience() -> None:
    assert in_words(sign_in.PAGES) == [
        "GET /sign-in show_sign_in anyone",
        "POST /sign-in/key sign_in_by_key anyone",
        "GET /sign-in/link show_link anyone",
        "POST /sign-in/link sign_in_by_link anyone",
        "POST /sign-out sign_out signed-in",
    ]
