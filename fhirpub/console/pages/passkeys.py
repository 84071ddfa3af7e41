"""Passkeys: a person who was invited makes one, and signs in with it from then on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fhirpub.administration.changes import recorded
from fhirpub.auth.passkeys import PasskeyRefused, add_passkey, check_invitable, passkey, why_none
from fhirpub.console.entrance import Attempt, SignInRefused, agent_of, enter
from fhirpub.console.pages.sign_in import sign_in_page
from fhirpub.console.sessions import Person
from fhirpub.console.visit import Html, Page, PageRefused, Result, Visit
from fhirpub.errors import NotAuthenticated, NotPossible
from fhirpub.storage.contract import Client

if TYPE_CHECKING:
    from fhirpub.console.ceremonies import Ceremonies

_ENDED = "The invitation has expired or was used before: ask the operator for another one."
_NOT_MADE = "The passkey was not accepted. Try again, on this device or another one."
_NOT_ACCEPTED = "The passkey was not accepted. Try again, or ask the operator for an invitation."


class _Ended(SignInRefused):
    """The invitation has ended."""


async def show_invitation(visit: Visit) -> Result:
    """Show the name of the invited person, and let the browser make a passkey."""
    return await _invitation(visit, visit.query.get("code", ""))


async def accept_invitation(visit: Visit) -> Result:
    """Keep the passkey that a browser has made, and begin a session."""
    try:
        return await enter(visit, Attempt("invitation", partial(_by_invitation, visit)))
    except _Ended:
        raise PageRefused(_ENDED) from None
    except SignInRefused:
        return await _invitation(visit, visit.field("code"), problem=_NOT_MADE)


async def sign_in_by_passkey(visit: Visit) -> Result:
    """Begin the session of a person who has a passkey."""
    following = visit.field("next")
    try:
        attempt = Attempt("passkey", partial(_by_passkey, visit))
        return await enter(visit, attempt, following=following)
    except SignInRefused:
        return await sign_in_page(visit, following, problem=_NOT_ACCEPTED)


async def _invitation(visit: Visit, code: str, *, problem: str = "") -> Html:
    ceremonies = _ceremonies(visit)
    try:
        client = await _invited(visit, code)
    except _Ended:
        raise PageRefused(_ENDED) from None
    values = {
        "name": client.name or client.id,
        "code": code,
        "options": ceremonies.to_create(client, code),
        "problem": problem,
    }
    status = 403 if problem else 200
    return Html(template="invitation.html", title="Invitation", values=values, status=status)


async def _by_invitation(visit: Visit) -> Person:
    ceremonies, code = _ceremonies(visit), visit.field("code")
    client = await _invited(visit, code)
    try:
        key = ceremonies.read_new(visit.field("credential"), code)
        await visit.console.sessions.use_once("invitation", code)
    except PasskeyRefused as problem:
        raise SignInRefused(str(problem), client=client.id) from None
    except NotAuthenticated as problem:
        raise _Ended(problem.reason, client=client.id) from None
    person = Person(subject=client.id, name=client.name or client.id, kid=key["kid"])
    services, agent = visit.console.services, agent_of(visit, person)
    doing = recorded(
        services.config,
        services.store,
        "client.passkey.add",
        ("Client", client.id),
        tenant=client.tenant,
        agent=agent,
    )
    async with doing:
        await add_passkey(services.store, client.id, key)
    return person


async def _invited(visit: Visit, code: str) -> Client:
    """Return the client that an invitation is for. Raises SignInRefused."""
    try:
        person = await visit.console.sessions.read_once("invitation", code)
    except NotAuthenticated as problem:
        raise _Ended(problem.reason) from None
    client = await visit.console.services.store.client(person.subject)
    if client is None:
        raise _Ended("no client", client=person.subject)
    try:
        check_invitable(client)
    except NotPossible:
        raise _Ended("client that cannot be invited", client=client.id) from None
    return client


async def _by_passkey(visit: Visit) -> Person:
    ceremonies, sessions = _ceremonies(visit), visit.console.sessions
    statement, credential = visit.field("challenge"), visit.field("credential")
    claimed = ""
    try:
        await sessions.read_once("challenge", statement)
        claimed, kid = ceremonies.claimed_key(credential)
        client = await visit.console.services.store.client(claimed)
        if client is None:
            claimed = ""  # the text of a stranger, which may be long and anything
            raise SignInRefused("no such client")
        key = passkey(client, kid)
        if key is None:
            raise SignInRefused("no such passkey", client=claimed)
        ceremonies.verify(credential, statement, key)
        # Last of all, so that only the owner of a passkey makes the store record anything.
        await sessions.use_once("challenge", statement)
    except (NotAuthenticated, PasskeyRefused) as problem:
        raise SignInRefused(_reason(problem), client=claimed) from None
    return Person(subject=client.id, name=client.name or client.id, kid=kid)


def _ceremonies(visit: Visit) -> Ceremonies:
    if visit.console.ceremonies is None:
        raise PageRefused(f"The console has no passkeys: {why_none(visit.console.config)}.")
    return visit.console.ceremonies


def _reason(problem: NotAuthenticated | PasskeyRefused) -> str:
    return problem.reason if isinstance(problem, NotAuthenticated) else str(problem)


PAGES = (
    Page(method="GET", path="/invitation", run=show_invitation, audience="anyone"),
    Page(method="POST", path="/invitation", run=accept_invitation, audience="anyone"),
    Page(method="POST", path="/sign-in/passkey", run=sign_in_by_passkey, audience="anyone"),
)
