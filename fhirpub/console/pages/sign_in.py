"""Signing in and out."""

from __future__ import annotations

from fhirpub.config.administration import BOOTSTRAP
from fhirpub.console.sessions import Person
from fhirpub.console.visit import BASE, Html, Page, PageRefused, Redirect, Result, Visit
from fhirpub.errors import NotAuthenticated

_START = f"{BASE}/"
_LINK_ENDED = "The link has expired or was used before: ask for another one."


async def show_sign_in(visit: Visit) -> Result:
    """Show how to sign in."""
    if visit.session is not None:
        return Redirect(path=_following(visit.query.get("next", "")))
    return _sign_in(visit, visit.query.get("next", ""))


async def sign_in_by_key(visit: Visit) -> Result:
    """Begin the session of an operator who has the administrative key."""
    following = visit.field("next")
    callers = visit.console.interface.callers
    try:
        name = await callers.authenticate([f"Bearer {visit.field('key')}"])
    except NotAuthenticated:
        name = ""
    if name != BOOTSTRAP:
        return _sign_in(visit, following, problem="This is not the administrative key.")
    return await begin(visit, Person(subject=name, name=name, is_operator=True), following)


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
        person = await visit.console.sessions.use_once("sign-in", visit.field("code"))
    except NotAuthenticated:
        raise PageRefused(_LINK_ENDED) from None
    return await begin(visit, person, "")


async def sign_out(visit: Visit) -> Result:
    """End the session."""
    await visit.console.sessions.end(visit.signed_in)
    return Redirect(path=f"{BASE}/sign-in", ends=True)


async def begin(visit: Visit, person: Person, following: str) -> Redirect:
    """Return the answer that begins a session."""
    cookie = await visit.console.sessions.begin(person)
    return Redirect(path=_following(following), cookie=cookie)


def _sign_in(visit: Visit, following: str, *, problem: str = "") -> Html:
    values = {
        "following": _following(following),
        "problem": problem,
        "challenge": "",
        "has_key": bool(visit.console.config.admin.bootstrap_key_hash),
        "base_url": visit.console.base_url,
    }
    status = 403 if problem else 200
    return Html(template="sign_in.html", title="Sign in", values=values, status=status)


def _following(path: str) -> str:
    """Return where to go on: a page of the console, and nothing else."""
    is_ours = path.startswith(_START) and "\\" not in path and path.isprintable()
    return path if is_ours else _START


PAGES = (
    Page(method="GET", path="/sign-in", run=show_sign_in, audience="anyone"),
    Page(method="POST", path="/sign-in/key", run=sign_in_by_key, audience="anyone"),
    Page(method="GET", path="/sign-in/link", run=show_link, audience="anyone"),
    Page(method="POST", path="/sign-in/link", run=sign_in_by_link, audience="anyone"),
    Page(method="POST", path="/sign-out", run=sign_out, audience="signed-in"),
)
