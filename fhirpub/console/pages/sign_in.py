"""Signing in and out."""

from __future__ import annotations

from functools import partial

from fhirpub.administration.http.callers import bootstrap_kid
from fhirpub.auth.passkeys import why_none
from fhirpub.config.administration import BOOTSTRAP
from fhirpub.console.entrance import Attempt, SignInRefused, enter, leave, path_after
from fhirpub.console.sessions import Person
from fhirpub.console.visit import Html, Page, PageRefused, Redirect, Result, Visit
from fhirpub.errors import NotAuthenticated

_LINK_ENDED = "The link has expired or was used before: ask for another one."


async def show_sign_in(visit: Visit) -> Result:
    """Show how to sign in."""
    if visit.session is not None:
        return Redirect(path=path_after(visit.query.get("next", "")))
    return await sign_in_page(visit, visit.query.get("next", ""))


async def sign_in_by_key(visit: Visit) -> Result:
    """Begin the session of an operator who has the administrative key."""
    following = visit.field("next")
    try:
        attempt = Attempt("administrative key", partial(_by_key, visit))
        return await enter(visit, attempt, following=following)
    except SignInRefused:
        problem = "This is not the administrative key."
        return await sign_in_page(visit, following, problem=problem)


async def _by_key(visit: Visit) -> Person:
    callers = visit.console.interface.callers
    try:
        name = await callers.authenticate([f"Bearer {visit.field('key')}"])
    except NotAuthenticated as problem:
        raise SignInRefused(problem.reason) from None
    if name != BOOTSTRAP:
        raise SignInRefused("a token in place of the administrative key")
    kid = bootstrap_kid(visit.console.config.admin)
    return Person(subject=name, name=name, is_operator=True, kid=kid)


async def show_link(visit: Visit) -> Result:
    """Ask before a link is used, so that what loads it ahead does not use it up."""
    code = visit.query.get("code", "")
    try:
        person = await visit.console.sessions.read_once("sign-in", code)
    except NotAuthenticated:
        raise PageRefused(_LINK_ENDED) from None
    values = {"name": person.name, "is_operator": person.is_operator, "code": code}
    return Html(template="sign_in_link.html", title="Sign in", values=values)


async def sign_in_by_link(visit: Visit) -> Result:
    """Begin the session that a link is for."""
    try:
        return await enter(visit, Attempt("link", partial(_by_link, visit)))
    except SignInRefused:
        raise PageRefused(_LINK_ENDED) from None


async def _by_link(visit: Visit) -> Person:
    try:
        return await visit.console.sessions.use_once("sign-in", visit.field("code"))
    except NotAuthenticated as problem:
        raise SignInRefused(problem.reason) from None


async def sign_out(visit: Visit) -> Result:
    """End the session."""
    return await leave(visit)


async def sign_in_page(visit: Visit, following: str, *, problem: str = "") -> Html:
    """Return the page that shows how to sign in."""
    console = visit.console
    challenge = options = ""
    if console.ceremonies is not None:
        challenge = await console.sessions.sign_once("challenge")
        options = console.ceremonies.to_sign_in(challenge)
    values = {
        "following": path_after(following),
        "problem": problem,
        "challenge": challenge,
        "options": options,
        "why_no_passkeys": why_none(console.config),
        "has_provider": console.provider is not None,
        "has_key": bool(console.config.admin.bootstrap_key_hash),
        "base_url": console.base_url,
    }
    status = 403 if problem else 200
    return Html(template="sign_in.html", title="Sign in", values=values, status=status)


PAGES = (
    Page(method="GET", path="/sign-in", run=show_sign_in, audience="anyone"),
    Page(method="POST", path="/sign-in/key", run=sign_in_by_key, audience="anyone"),
    Page(method="GET", path="/sign-in/link", run=show_link, audience="anyone"),
    Page(method="POST", path="/sign-in/link", run=sign_in_by_link, audience="anyone"),
    Page(method="POST", path="/sign-out", run=sign_out, audience="signed-in"),
)
