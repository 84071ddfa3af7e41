"""The entrance: sign-ins are admitted or refused, slowed down, logged and recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from fhirpub.audit.record import Access, Agent, encode
from fhirpub.audit.trail import SERVICE
from fhirpub.auth.caller import Caller
from fhirpub.console.sessions import Person
from fhirpub.console.visit import BASE, Redirect, Visit
from fhirpub.errors import NotAuthenticated, TokenRefused
from fhirpub.runtime.logging import logger
from fhirpub.web.services import Services

SIGN_IN = "console.sign-in"
_START = f"{BASE}/"
_LONGEST = 1_500
"""A longer path fits into no cookie, in which the way to a provider keeps it."""
_log = logger()


class SignInRefused(TokenRefused):
    """A sign-in is refused. The text is for the log and is not shown in a browser."""

    def __init__(self, reason: str, *, client: str = "") -> None:
        super().__init__("invalid_client", reason, client=client)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way to sign in: its name, and what returns the subject that it has verified."""

    way: str
    prove: Callable[[], Awaitable[Person]]


async def enter(visit: Visit, attempt: Attempt, *, following: str = "") -> Redirect:
    """Begin a session; return the answer that leads to the page that follows.

    Attempts of one address are slowed down when they fail. Raises SignInRefused, Throttled,
    StoreUnavailable.
    """
    try:
        async with visit.console.throttle.attempt("", visit.address):
            person = await attempt.prove()
            cookie, caller = await _begin(visit, person)
    except SignInRefused as refusal:
        _note_refusal(visit, refusal, attempt.way)
        raise
    await record(visit.console.services, SIGN_IN, agent_of(visit, person), caller)
    _log.info("signed in", way=attempt.way, **_facts(visit, person, caller))
    return Redirect(path=path_after(following), cookie=cookie)


def path_after(path: str) -> str:
    """Return where to go on: a page of the console, and nothing else."""
    is_text = path.isascii() and path.isprintable() and len(path) <= _LONGEST
    return path if is_text and path.startswith(_START) and "\\" not in path else _START


async def leave(visit: Visit) -> Redirect:
    """End the session in all processes; return the answer that leads to the sign-in."""
    session = visit.signed_in
    await visit.console.sessions.end(session)
    agent = agent_of(visit, session.person)
    await record(visit.console.services, "console.sign-out", agent, session.caller)
    _log.info("signed out", **_facts(visit, session.person, session.caller))
    return Redirect(path=f"{BASE}/sign-in", ends=True)


def agent_of(visit: Visit, person: Person) -> Agent:
    """Return the agent, for the audit trail."""
    return Agent(
        client="" if person.is_operator else person.subject,
        user=person.subject if person.is_operator else "",
        environment=visit.console.config.auth.environment,
        address=visit.address,
        request=visit.request_id,
    )


async def record(services: Services, action: str, agent: Agent, caller: Caller | None) -> None:
    """Record durably what a person did, in the chain of the client's tenant or of the service.

    Raises StoreUnavailable.
    """
    if services.audit is None:
        return
    tenant = SERVICE if caller is None else caller.tenant.id
    await services.audit.write(tenant, lambda at: encode(Access(action=action), agent, at=at))


async def _begin(visit: Visit, person: Person) -> tuple[str, Caller | None]:
    """Return the cookie of a session that is read at once as each page reads it."""
    cookie = await visit.console.sessions.begin(person)
    client = "" if person.is_operator else person.subject
    try:
        session = await visit.console.sessions.read(cookie)
    except NotAuthenticated as problem:
        raise SignInRefused(problem.reason, client=client) from None
    caller = session.caller
    if caller is not None and not caller.may_call_from(visit.address):
        raise SignInRefused("address not permitted", client=client)
    return cookie, caller


def _note_refusal(visit: Visit, refusal: SignInRefused, way: str) -> None:
    _log.info(
        "sign-in refused",
        way=way,
        reason=str(refusal),
        address=visit.address,
        request_id=visit.request_id,
    )
    audit = visit.console.services.audit
    if audit is not None:
        status = HTTPStatus.FORBIDDEN
        audit.count_refusal(SIGN_IN, status, address=visit.address, client=refusal.client)


def _facts(visit: Visit, person: Person, caller: Caller | None) -> dict[str, str]:
    facts = {"operator": person.subject}
    if caller is not None:
        facts = {"client": caller.client_id, "tenant": caller.tenant.id}
    return {**facts, "address": visit.address, "request_id": visit.request_id}
