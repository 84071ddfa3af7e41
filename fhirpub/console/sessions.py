"""Sessions of people, and the one-time links that begin them: signed statements, kept nowhere.

A session is a cookie with a statement of its own type, so that it is no access token, and an
access token is no session. A client that is disabled, or a caller of administration that the
settings no longer name, has no session from then on.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fhirpub.administration.http.callers import has_key
from fhirpub.auth import refusals
from fhirpub.auth.caller import Caller
from fhirpub.auth.revocation import MAX_REVOKED
from fhirpub.auth.statements import (
    OneTimeStatements,
    Purpose,
    read_statement,
    sign_statement,
)
from fhirpub.auth.tokens import Tokens
from fhirpub.config.administration import BOOTSTRAP, admin_callers
from fhirpub.config.settings import Config
from fhirpub.errors import Throttled
from fhirpub.runtime.clock import Clock
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.store import Store

_SESSION = "console+jwt"
_OPERATOR = "admin "
"""Before the name of an operator, where clients have their ids."""
_RETRY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who signs in: a person of a client, or an operator.

    Attributes:
        subject: The id of the client, or the name of the caller of administration.
        name: The name that pages show.
        is_operator: Whether this is a caller of administration.
        kid: The name of the key by which it signs in. A session ends if that is taken away.
    """

    subject: str
    name: str
    is_operator: bool = False
    kid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that is in order.

    Attributes:
        person: Whose session it is.
        id: Its id, the same for as long as it lasts.
        proof: What forms of its pages repeat, so that other sites cannot send them.
        began: When the person signed in, in seconds since 1970.
        expires: When it ends if no page is asked for, in seconds since 1970.
        caller: The client for which the person acts; None for an operator.
    """

    person: Person
    id: str
    proof: str = field(repr=False)
    began: int
    expires: int
    caller: Caller | None = None


class Sessions:
    """Begins sessions, reads them from cookies, and ends them."""

    def __init__(self, config: Config, tokens: Tokens, store: Store, *, clock: Clock) -> None:
        self._config = config
        self._tokens = tokens
        self._store = store
        self._clock = clock
        self.once = OneTimeStatements(tokens.ring, store, clock=clock)

    async def begin(self, person: Person) -> str:
        """Return the cookie of a new session. Raises StoreUnavailable."""
        now = self._clock() // 1000
        id_, proof = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        session = Session(person=person, id=id_, proof=proof, began=now, expires=now)
        return await self._sign(session)

    async def renew(self, session: Session) -> str:
        """Return a cookie by which a session lasts longer; empty if it is long enough.

        Raises StoreUnavailable.
        """
        left = session.expires - self._clock() // 1000
        if left > self._config.console.idle_minutes * 30:
            return ""
        return await self._sign(session)

    async def read(self, cookie: str) -> Session:
        """Return the session of a cookie. Raises NotAuthenticated, StoreUnavailable."""
        claims = await read_statement(self._tokens.ring, cookie, type_=_SESSION)
        session = _session_of(claims)
        if self._clock() >= session.expires * 1000:
            raise refusals.expired()
        person = session.person
        if not person.is_operator:
            caller = await self._tokens.caller_of_session(person.subject, session.id, person.kid)
            return replace(session, caller=caller)
        await self._check_operator(person, session.id)
        return session

    async def end(self, session: Session) -> None:
        """End a session everywhere. Raises NoSuchRecord, Throttled, StoreUnavailable."""
        until = (session.began + self._config.console.session_hours * 3600) * 1000
        person = session.person
        if person.is_operator:
            ended = RevokedToken(f"{_OPERATOR}{person.subject}", session.id, until)
            if not await self._store.revoke_token(ended, most=MAX_REVOKED):
                raise Throttled(retry_after=_RETRY_SECONDS)
        else:
            await self._tokens.end_session(RevokedToken(person.subject, session.id, until))

    async def sign_once(self, purpose: Purpose, person: Person | None = None) -> str:
        """Return a statement that can be used once, such as that in a link.

        Raises StoreUnavailable.
        """
        return await self.once.sign(purpose, _claims_of(person) if person is not None else {})

    async def read_once(self, purpose: Purpose, statement: str) -> Person:
        """Return the subject of a statement, which is not used up. Raises as :meth:`use_once`."""
        return _person_of(await self.once.read(purpose, statement))

    async def use_once(self, purpose: Purpose, statement: str) -> Person:
        """Use up a statement; return its subject.

        Raises NotAuthenticated if it is wrong, expired or was used before; StoreUnavailable.
        """
        return _person_of(await self.once.use(purpose, statement))

    async def _check_operator(self, person: Person, id_: str) -> None:
        admin, name = self._config.admin, person.subject
        known = (
            name in admin_callers(admin)
            or name in self._config.console.oidc_operators
            or (name == BOOTSTRAP and bool(admin.bootstrap_key_hash))
        )
        if not known:
            raise refusals.unproved("caller that the settings do not name")
        if person.kid and not await has_key(admin, name, person.kid):
            raise refusals.revoked()
        ended = await self._store.revoked_tokens(f"{_OPERATOR}{name}")
        if any(one.jti == id_ for one in ended):
            raise refusals.revoked()

    async def _sign(self, session: Session) -> str:
        console, now = self._config.console, self._clock() // 1000
        latest = session.began + console.session_hours * 3600
        claims = {
            **_claims_of(session.person),
            "jti": session.id,
            "proof": session.proof,
            "began": session.began,
            "exp": min(now + console.idle_minutes * 60, latest),
        }
        return await sign_statement(self._tokens.ring, claims, type_=_SESSION)


def _claims_of(person: Person) -> Mapping[str, Any]:
    return {
        "sub": person.subject,
        "name": person.name,
        "operator": person.is_operator,
        "kid": person.kid,
    }


def _person_of(claims: Mapping[str, Any]) -> Person:
    return Person(
        subject=claims.get("sub", ""),
        name=claims.get("name", ""),
        is_operator=claims.get("operator", False),
        kid=claims.get("kid", ""),
    )


def _session_of(claims: Mapping[str, Any]) -> Session:
    return Session(
        person=_person_of(claims),
        id=claims["jti"],
        proof=claims["proof"],
        began=claims["began"],
        expires=claims["exp"],
    )
