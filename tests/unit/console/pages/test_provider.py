"""Signing in by a provider: who comes back, to which person, and what is said otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.auth import refusals
from fhirpub.auth.clients import NewClient, add_client, disable_client
from fhirpub.console.openid import ProviderUnavailable, SignInRequest
from fhirpub.console.pages import provider
from fhirpub.console.visit import PageRefused, Redirect
from tests.unit.console.pages.entering import at_the_door, session_of
from tests.unit.console.pages.visiting import as_page, in_words, place_of
from tests.unit.console.signing_in import Door
from tests.unit.console.test_sessions_ends import begun

AGAIN = "The sign-in was not completed: try again."
AWAY = "The provider cannot be reached now: try again, or sign in otherwise."
NOT_KNOWN_HERE = "The provider knows you, and this service does not: ask the operator to add you."


class Provider:
    """Names one person, or fails."""

    def __init__(self, claimed: str = "Ada", problem: Exception | None = None) -> None:
        self.claimed = claimed
        self.problem = problem
        self.requests: list[SignInRequest] = []
        self.codes: list[str] = []

    async def address(self, request: SignInRequest) -> str:
        self.requests.append(request)
        if self.problem:
            raise self.problem
        return f"https://login.example.org/authorize?state={request.state}"

    async def identify(self, code: str, request: SignInRequest) -> str:
        assert request == self.requests[-1]
        self.codes.append(code)
        if self.problem:
            raise self.problem
        return self.claimed


async def left(door: Door, at: Provider, following: str = "/console/endpoints") -> str:
    """Return the cookie of a browser that has left for the provider."""
    result = await provider.leave_for_provider(at_the_door(door, provider=at, next=following))
    assert isinstance(result, Redirect)
    return result.cookie


async def came_back(door: Door, at: Provider, **changes: str) -> tuple[Any, Any]:
    cookie = changes.pop("cookie", None) or await left(door, at)
    query = {"state": at.requests[-1].state, "code": "c", **changes}
    visit = at_the_door(door, provider=at, cookie=cookie, **query)
    return visit, await provider.return_from_provider(visit)


async def test_a_browser_is_led_to_the_provider(door: Door) -> None:
    at = Provider()

    result = await provider.leave_for_provider(at_the_door(door, provider=at))

    assert place_of(result) == (
        f"https://login.example.org/authorize?state={at.requests[0].state}"
    )
    assert not result.ends  # type: ignore[union-attr]


async def test_who_is_signed_in_does_not_leave(door: Door) -> None:
    at = Provider()
    session = await begun(door.world)
    visit = at_the_door(door, provider=at, session=session, next="/console/accesses")

    assert place_of(await provider.leave_for_provider(visit)) == "/console/accesses"
    assert at.requests == []


async def test_without_a_provider_no_browser_leaves(door: Door) -> None:
    with pytest.raises(PageRefused, match="No provider is configured"):
        await provider.leave_for_provider(at_the_door(door))


async def test_a_provider_that_is_away_is_said_so(door: Door) -> None:
    at = Provider(problem=ProviderUnavailable("x"))
    visit = at_the_door(door, provider=at, next="/console/accesses")

    page = as_page(await provider.leave_for_provider(visit))

    assert (page.values["problem"], page.values["following"]) == (AWAY, "/console/accesses")


async def test_a_person_comes_back_with_a_session_to_what_was_asked_for(door: Door) -> None:
    at = Provider()

    visit, entered = await came_back(door, at)

    session = await session_of(visit, entered)
    assert place_of(entered) == "/console/endpoints"
    assert (session.person.subject, session.person.name) == (door.world.person.subject, "Ada")
    assert at.codes == ["c"]


async def test_a_person_comes_back_to_all_of_the_address_that_was_asked_for(door: Door) -> None:
    at, place = Provider(), f"/console/endpoints/{'e' * 36}/deliveries?status=dead&before=7"
    cookie = await left(door, at, place)

    _visit, entered = await came_back(door, at, cookie=cookie)

    assert place_of(entered) == place


async def test_a_person_may_be_named_by_id(door: Door) -> None:
    visit, entered = await came_back(door, Provider(door.world.person.subject))

    assert (await session_of(visit, entered)).person.subject == door.world.person.subject


async def test_an_operator_of_the_settings_comes_back_as_one(door: Door) -> None:
    visit, entered = await came_back(door, Provider("boss@example.org"))

    person = (await session_of(visit, entered)).person
    assert (person.subject, person.is_operator) == ("boss@example.org", True)


async def test_a_way_back_is_used_once(door: Door) -> None:
    at = Provider()
    cookie = await left(door, at)
    await came_back(door, at, cookie=cookie)

    _visit, page = await came_back(door, at, cookie=cookie)

    assert as_page(page).values["problem"] == AGAIN


async def test_a_browser_that_did_not_leave_does_not_come_back(door: Door) -> None:
    visit = at_the_door(door, provider=Provider(), cookie="x", state="s", code="c")

    page = as_page(await provider.return_from_provider(visit))

    assert (page.status, page.values["problem"]) == (403, AGAIN)
    assert page.values["following"] == "/console/"


@pytest.mark.parametrize("changes", [{"state": "other"}, {"state": ""}, {"code": ""}])
async def test_another_state_or_no_code_is_refused_before_the_provider_is_asked(
    door: Door, changes: dict[str, str]
) -> None:
    at = Provider()

    _visit, page = await came_back(door, at, **changes)

    assert as_page(page).values["problem"] == AGAIN
    assert as_page(page).values["following"] == "/console/endpoints"
    assert at.codes == []


@pytest.mark.parametrize(
    ("problem", "said"),
    [(refusals.unproved("nonce"), AGAIN), (ProviderUnavailable("x"), AWAY)],
)
async def test_a_failure_on_the_way_back_is_said(
    door: Door, problem: Exception, said: str
) -> None:
    at = Provider()
    cookie = await left(door, at)
    at.problem = problem

    visit, page = await came_back(door, at, cookie=cookie)

    assert as_page(page).values["problem"] == said
    await visit.console.sessions.once.use("provider", cookie)  # it was not used up


async def test_a_person_that_the_service_does_not_know_is_said_so(door: Door) -> None:
    _visit, page = await came_back(door, Provider("eve@example.org"))

    assert as_page(page).values["problem"] == NOT_KNOWN_HERE


async def added(door: Door, name: str, *, is_person: bool, environment: str = "sandbox") -> str:
    tenant = await door.tenant()
    new = NewClient(tenant=tenant, name=name, environment=environment, is_person=is_person)
    client, _secret = await add_client(door.world.store, new, clock=door.world.clock)
    return client.id


async def test_an_application_is_no_person(door: Door) -> None:
    id_ = await added(door, "robot", is_person=False)

    for claimed in ("robot", id_):
        _visit, page = await came_back(door, Provider(claimed))
        assert as_page(page).values["problem"] == NOT_KNOWN_HERE


async def test_an_application_of_the_same_name_does_not_hide_a_person(door: Door) -> None:
    await added(door, "Ada", is_person=False)

    visit, entered = await came_back(door, Provider("Ada"))

    assert (await session_of(visit, entered)).person.subject == door.world.person.subject


async def test_two_persons_of_one_name_are_not_known_by_it(door: Door) -> None:
    await added(door, "Ada", is_person=True)

    _visit, page = await came_back(door, Provider("Ada"))

    assert as_page(page).values["problem"] == NOT_KNOWN_HERE


async def test_a_person_who_was_disabled_and_added_again_is_known(door: Door) -> None:
    await disable_client(door.world.store, door.world.person.subject)
    again = await added(door, "Ada", is_person=True)

    visit, entered = await came_back(door, Provider("Ada"))

    assert (await session_of(visit, entered)).person.subject == again


async def test_a_person_of_another_environment_does_not_hide_one_of_this(door: Door) -> None:
    await added(door, "Ada", is_person=True, environment="production")

    visit, entered = await came_back(door, Provider("Ada"))

    assert (await session_of(visit, entered)).person.subject == door.world.person.subject


async def test_a_disabled_person_is_refused(door: Door) -> None:
    world = door.world
    await disable_client(world.store, world.person.subject)

    _visit, page = await came_back(door, Provider("Ada"))

    assert as_page(page).status == 403


def test_each_page_of_the_provider_has_its_address_and_audience() -> None:
    assert in_words(provider.PAGES) == [
        "GET /sign-in/leave leave_for_provider anyone",
        "GET /sign-in/provider return_from_provider anyone",
    ]
