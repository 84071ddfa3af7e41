"""Signing in by an OpenID Connect provider.

Until a person comes back from there, the cookie of the session holds what was asked for: so only
the browser that began can go on.
"""

from __future__ import annotations

import hmac
from dataclasses import asdict
from functools import partial

from fhirpub.administration.context import only_one
from fhirpub.auth.clients import is_person
from fhirpub.console.entrance import Attempt, SignInRefused, enter, path_after
from fhirpub.console.openid import OpenIdProvider, ProviderUnavailable, SignInRequest
from fhirpub.console.pages.sign_in import sign_in_page
from fhirpub.console.sessions import Person
from fhirpub.console.visit import Page, PageRefused, Redirect, Result, Visit
from fhirpub.errors import NoSuchRecord, NotAuthenticated, NotPossible
from fhirpub.storage.contract import Client

_NOT_KNOWN_HERE = "The provider knows you, and this service does not: ask the operator to add you."
_AWAY = "The provider cannot be reached now: try again, or sign in otherwise."
_AGAIN = "The sign-in was not completed: try again."


class _Unknown(SignInRefused):
    """The provider knows a person that this service does not."""


async def leave_for_provider(visit: Visit) -> Result:
    """Lead the browser to the provider, unless it has a session: that of a link ends none."""
    if visit.session is not None:
        return Redirect(path=path_after(visit.query.get("next", "")))
    request = SignInRequest.create()
    try:
        place = await _provider(visit).address(request)
    except ProviderUnavailable:
        return await sign_in_page(visit, visit.query.get("next", ""), problem=_AWAY)
    kept = {**asdict(request), "next": path_after(visit.query.get("next", ""))}
    cookie = await visit.console.sessions.once.sign("provider", kept)
    return Redirect(path=place, cookie=cookie)


async def return_from_provider(visit: Visit) -> Result:
    """Begin the session of the person whom the provider names."""
    try:
        kept = await visit.console.sessions.once.read("provider", visit.cookie)
    except NotAuthenticated:
        return await sign_in_page(visit, "", problem=_AGAIN)
    names = ("state", "nonce", "verifier")
    request = SignInRequest(**{name: str(kept[name]) for name in names})
    following = str(kept["next"])
    try:
        attempt = Attempt("provider", partial(_by_provider, visit, request))
        return await enter(visit, attempt, following=following)
    except _Unknown:
        return await sign_in_page(visit, following, problem=_NOT_KNOWN_HERE)
    except SignInRefused:
        return await sign_in_page(visit, following, problem=_AGAIN)
    except ProviderUnavailable:
        return await sign_in_page(visit, following, problem=_AWAY)


async def _by_provider(visit: Visit, request: SignInRequest) -> Person:
    """Return the person at the provider. Raises SignInRefused, ProviderUnavailable."""
    state, code = visit.query.get("state", ""), visit.query.get("code", "")
    if not code or not hmac.compare_digest(state.encode(), request.state.encode()):
        raise SignInRefused("no code of the provider for this browser")
    try:
        claimed = await _provider(visit).identify(code, request)
        # Last of all: so only whom the provider knows makes the store record anything.
        await visit.console.sessions.once.use("provider", visit.cookie)
    except NotAuthenticated as problem:
        raise SignInRefused(problem.reason) from None
    if claimed in visit.console.config.console.oidc_operators:
        return Person(subject=claimed, name=claimed, is_operator=True)
    client = await _person_named(visit, claimed)
    return Person(subject=client.id, name=client.name)


async def _person_named(visit: Visit, claimed: str) -> Client:
    """Return the person with an id or a name. Raises SignInRefused."""
    store = visit.console.services.store
    found = await store.client(claimed)
    if found is not None and is_person(found):
        return found
    here = visit.console.config.auth.environment
    named = [one for one in await store.clients() if one.name == claimed and is_person(one)]
    # A person who was disabled, which is for good, may have been added again.
    admitted = [one for one in named if one.environment == here and not one.disabled]
    people = {one.id: one for one in admitted or named}
    try:
        id_ = only_one("person", claimed, people)
    except (NoSuchRecord, NotPossible) as problem:
        raise _Unknown(type(problem).__name__) from None
    return people[id_]


def _provider(visit: Visit) -> OpenIdProvider:
    if visit.console.provider is None:
        raise PageRefused("No provider is configured.")
    return visit.console.provider


PAGES = (
    Page(method="GET", path="/sign-in/leave", run=leave_for_provider, audience="anyone"),
    Page(method="GET", path="/sign-in/provider", run=return_from_provider, audience="anyone"),
)
