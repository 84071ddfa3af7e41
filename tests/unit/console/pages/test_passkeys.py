"""Invitations, the passkeys that are made by them, and signing in by a passkey."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.auth.clients import disable_client
from fhirpub.auth.passkeys import passkey
from fhirpub.console.pages import passkeys
from fhirpub.console.sessions import Person
from fhirpub.console.visit import PageRefused
from tests.console.sign_in.passkey import PRESENT, Passkey
from tests.unit.console.pages.entering import ORIGIN, at_the_door, session_of
from tests.unit.console.pages.visiting import as_page, in_words, place_of
from tests.unit.console.signing_in import Door

ENDED = "The invitation has expired or was used before"
NOT_ACCEPTED = "The passkey was not accepted. Try again, or ask the operator for an invitation."


async def invitation(door: Door, person: Person | None = None) -> str:
    visit = at_the_door(door)
    return await visit.console.sessions.sign_once("invitation", person or door.world.person)


async def options_of(door: Door, code: str) -> str:
    page = as_page(await passkeys.show_invitation(at_the_door(door, code=code)))
    return str(page.values["options"])


async def made(door: Door) -> Passkey:
    """Return a passkey that the person has, and that the invitation has made."""
    code = await invitation(door)
    new = Passkey(origin=ORIGIN)
    form = {"code": code, "credential": new.create(await options_of(door, code))}
    await passkeys.accept_invitation(at_the_door(door, form=form))
    return new


async def signing_in(door: Door, key: Passkey, **changes: str) -> dict[str, str]:
    """Return the form by which a passkey signs in."""
    visit = at_the_door(door)
    challenge = await visit.console.sessions.sign_once("challenge")
    assert visit.console.ceremonies is not None
    credential = key.sign_in(visit.console.ceremonies.to_sign_in(challenge))
    return {"challenge": challenge, "credential": credential, **changes}


async def test_an_invitation_is_shown_with_the_name_of_the_person(door: Door) -> None:
    code = await invitation(door)

    page = as_page(await passkeys.show_invitation(at_the_door(door, code=code)))

    assert (page.status, page.template) == (200, "invitation.html")
    assert (page.values["name"], page.values["code"]) == ("Ada", code)
    assert page.values["problem"] == ""


@pytest.mark.parametrize("code", ["", "x"])
async def test_a_wrong_invitation_is_refused(door: Door, code: str) -> None:
    with pytest.raises(PageRefused, match=ENDED):
        await passkeys.show_invitation(at_the_door(door, code=code))


async def test_the_invitation_of_a_client_that_there_is_not_is_refused(door: Door) -> None:
    code = await invitation(door, Person(subject="none", name="None"))

    with pytest.raises(PageRefused, match=ENDED):
        await passkeys.show_invitation(at_the_door(door, code=code))


async def test_the_invitation_of_a_disabled_person_is_refused(door: Door) -> None:
    code = await invitation(door)
    world = door.world
    await disable_client(world.store, world.person.subject)

    with pytest.raises(PageRefused, match=ENDED):
        await passkeys.show_invitation(at_the_door(door, code=code))


async def test_a_made_passkey_is_kept_and_begins_a_session(door: Door) -> None:
    code = await invitation(door)
    new = Passkey(origin=ORIGIN)
    form = {"code": code, "credential": new.create(await options_of(door, code))}
    visit = at_the_door(door, form=form)

    entered = await passkeys.accept_invitation(visit)

    person = (await session_of(visit, entered)).person
    assert (person.subject, person.name, person.kid) == (door.world.person.subject, "Ada", new.kid)
    client = await door.world.store.client(person.subject)
    assert client is not None
    assert passkey(client, new.kid) is not None


async def test_a_made_passkey_is_recorded_in_the_chain_of_the_tenant(door: Door) -> None:
    await made(door)

    lines = await door.records(await door.tenant())

    added = [one for one in lines if one["action"] == "client.passkey.add"]
    person = door.world.person.subject
    assert added
    assert all((one["what"], one["client"]) == ([f"Client/{person}"], person) for one in added)


async def test_an_invitation_makes_one_passkey(door: Door) -> None:
    code = await invitation(door)
    options = await options_of(door, code)
    first, second = (
        {"code": code, "credential": Passkey(origin=ORIGIN).create(options)} for _ in range(2)
    )
    await passkeys.accept_invitation(at_the_door(door, form=first))

    with pytest.raises(PageRefused, match=ENDED):
        await passkeys.accept_invitation(at_the_door(door, form=second))


async def test_a_passkey_that_is_not_accepted_leaves_the_invitation(door: Door) -> None:
    code = await invitation(door)
    credential = Passkey(origin="https://evil.example").create(await options_of(door, code))
    form = {"code": code, "credential": credential}

    page = as_page(await passkeys.accept_invitation(at_the_door(door, form=form)))

    assert page.status == 403
    assert page.values["problem"].startswith("The passkey was not accepted.")
    assert await options_of(door, code)


async def test_a_passkey_signs_in(door: Door) -> None:
    form = await signing_in(door, await made(door), next="/console/endpoints")
    visit = at_the_door(door, form=form)

    entered = await passkeys.sign_in_by_passkey(visit)

    assert place_of(entered) == "/console/endpoints"
    assert (await session_of(visit, entered)).person.subject == door.world.person.subject


async def test_a_session_of_a_passkey_ends_with_it(door: Door) -> None:
    key = await made(door)
    visit = at_the_door(door, form=await signing_in(door, key))
    entered = await passkeys.sign_in_by_passkey(visit)

    person = (await session_of(visit, entered)).person
    assert person.kid == key.kid


async def test_a_guess_of_no_client_is_counted_for_the_service(door: Door) -> None:
    key = await made(door)
    key.user = b"anything at all"

    await passkeys.sign_in_by_passkey(at_the_door(door, form=await signing_in(door, key)))

    assert [one["status"] for one in await door.records("")] == [403]
    assert "anything" not in str(await door.records(""))


async def test_a_challenge_is_signed_once(door: Door) -> None:
    form = await signing_in(door, await made(door))
    await passkeys.sign_in_by_passkey(at_the_door(door, form=form))

    page = as_page(await passkeys.sign_in_by_passkey(at_the_door(door, form=form)))

    assert (page.status, page.values["problem"]) == (403, NOT_ACCEPTED)


async def test_a_passkey_of_an_unverified_user_does_not_use_up_the_challenge(door: Door) -> None:
    key = await made(door)
    key.flags = PRESENT
    form = await signing_in(door, key, next="/console/accesses")
    visit = at_the_door(door, form=form)

    page = as_page(await passkeys.sign_in_by_passkey(visit))

    assert (page.status, page.values["following"]) == (403, "/console/accesses")
    await visit.console.sessions.use_once("challenge", form["challenge"])


async def test_a_passkey_of_another_client_is_refused(door: Door) -> None:
    key = await made(door)
    key.user = b"no such client"

    page = await passkeys.sign_in_by_passkey(at_the_door(door, form=await signing_in(door, key)))

    assert as_page(page).status == 403


async def test_a_passkey_that_the_client_has_not_is_refused(door: Door) -> None:
    key = await made(door)
    key.id = b"another"

    page = await passkeys.sign_in_by_passkey(at_the_door(door, form=await signing_in(door, key)))

    assert as_page(page).status == 403


@pytest.mark.parametrize("page", [passkeys.show_invitation, passkeys.accept_invitation])
async def test_without_passkeys_there_are_no_invitations(door: Door, page: Any) -> None:
    code = await invitation(door)
    visit = at_the_door(door, form={"code": code}, has_passkeys=False, code=code)

    with pytest.raises(PageRefused, match="The console has no passkeys"):
        await page(visit)


def test_each_page_of_passkeys_has_its_address_and_audience() -> None:
    assert in_words(passkeys.PAGES) == [
        "GET /invitation show_invitation anyone",
        "POST /invitation accept_invitation anyone",
        "POST /sign-in/passkey sign_in_by_passkey anyone",
    ]


async def test_a_passkey_that_is_not_accepted_is_counted_for_the_invited_client(
    door: Door,
) -> None:
    code = await invitation(door)
    credential = Passkey(origin="https://evil.example").create(await options_of(door, code))
    form = {"code": code, "credential": credential}

    await passkeys.accept_invitation(at_the_door(door, form=form))

    found = [(one["action"], one["status"]) for one in await door.records(await door.tenant())]
    assert found == [("console.sign-in", 403)]
