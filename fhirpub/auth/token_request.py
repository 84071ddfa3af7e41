"""Requests for tokens, and to revoke one, in a form or JSON (RFC 6749, 7009, D-25 to D-29)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from fhirpub.auth.assertions.verification import (
    TYPE,
    AssertionRefused,
    OpenedAssertion,
    open_assertion,
)
from fhirpub.auth.scopes import is_scope
from fhirpub.errors import Refused, TokenRefused, TooLarge
from fhirpub.fhir.strict_json import loads
from fhirpub.problems import ContentProblem

MAX_BYTES = 8192
MAX_FIELDS = 20

_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_NAMES = frozenset(
    {
        "audience",
        "client_assertion",
        "client_assertion_type",
        "client_id",
        "client_secret",
        "grant_type",
        "scope",
        "token",
        "token_type_hint",
    }
)
_ASSERTED = frozenset({"client_assertion", "client_assertion_type"})
_BASIC = re.compile(r"basic +([A-Za-z0-9+/]+={0,2})", re.IGNORECASE)
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""What error_description may hold (RFC 6749, 5.2)."""
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the client sent: ``authorization`` holds the value of every Authorization header."""

    content_type: str
    body: bytes = field(repr=False)
    authorization: Sequence[str] = field(default=(), repr=False)
    query: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The secret of a client; whether it is right is not known yet."""

    client_id: str
    client_secret: str = field(repr=False)
    basic: bool = False


Proof = Credentials | OpenedAssertion
"""How a client authenticates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A well-formed request for a token; an empty ``audience`` is the only one that there is."""

    credentials: Proof
    audience: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationRequest:
    """A well-formed request to revoke a token, of which nothing is known yet."""

    credentials: Proof
    token: str = field(repr=False)


def read(message: Message) -> TokenRequest:
    """Return the request for a token, or refuse its shape.

    Raises TooLarge, TokenRefused: ``invalid_request``, ``unsupported_grant_type``, or
    ``invalid_client`` if HTTP Basic was tried in vain or an assertion can be none. With an
    assertion ``audience`` may be missing: SMART App Launch does not know it.
    """
    fields, authorization = _read(message)
    _check_grant(fields)
    needed = ("grant_type",) if _is_asserted(fields) else ("grant_type", "audience")
    _refuse_missing(fields, needed, authorization)
    scopes, audience = _scopes(fields), fields.get("audience", "")
    credentials = _credentials(fields, authorization)
    return TokenRequest(credentials=credentials, audience=audience, scopes=scopes)


def read_revocation(message: Message) -> RevocationRequest:
    """Return the request to revoke a token (RFC 7009, 2.1), or refuse its shape.

    ``token_type_hint`` is ignored: there is one type of tokens. Raises as :func:`read` does.
    """
    fields, authorization = _read(message)
    _refuse_missing(fields, ("token",), authorization)
    credentials = _credentials(fields, authorization)
    return RevocationRequest(credentials=credentials, token=fields["token"])


def read_assertion(message: Message) -> OpenedAssertion:
    """Return the assertion of a request that has to come with one.

    Raises TooLarge, TokenRefused: ``invalid_request``, ``invalid_client`` for what can be no
    assertion, and ``unauthorized_client`` for a client with a secret.
    """
    fields, authorization = _read(message)
    if not _is_asserted(fields) and (authorization or "client_secret" in fields):
        rule = "this is for clients with a private key: a secret is not enough"
        raise TokenRefused("unauthorized_client", rule, client=fields.get("client_id", ""))
    missing = sorted(_ASSERTED - fields.keys())
    if missing:
        raise refuse_malformed(f"missing: {', '.join(missing)}")
    return _assertion(fields, authorization)


def fields_of(message: Message) -> dict[str, str]:
    """Return the parameters of a request to a token endpoint. Raises TooLarge, TokenRefused."""
    _refuse_query(message.query)
    if len(message.body) > MAX_BYTES:
        rule = f"a token request has at most {MAX_BYTES} bytes"
        raise TooLarge.because(rule, details=ContentProblem.BODY_TOO_LARGE)
    # RFC 6749 section 3.1: a parameter without a value counts as left out.
    sent = _fields(message.content_type, message.body)
    return {name: value for name, value in sent.items() if value}


def _read(message: Message) -> tuple[dict[str, str], Sequence[str]]:
    """Return the parameters, and the Authorization headers that are to be heeded."""
    fields = fields_of(message)
    authorization = message.authorization
    # A token that comes along authenticates no client.
    if "client_secret" in fields or _is_asserted(fields):
        authorization = [item for item in authorization if item[:7].lower() != "bearer "]
    return fields, authorization


def _is_asserted(fields: Mapping[str, str]) -> bool:
    return bool(_ASSERTED & fields.keys())


def _credentials(fields: Mapping[str, str], authorization: Sequence[str]) -> Proof:
    if _is_asserted(fields):
        return _assertion(fields, authorization)
    if not authorization:
        return Credentials(client_id=fields["client_id"], client_secret=fields["client_secret"])
    if len(authorization) > 1 or "client_secret" in fields:
        raise refuse_malformed("the client must authenticate in one way only")
    client_id, secret = _basic(authorization[0])
    if fields.get("client_id", client_id) != client_id:
        raise refuse_malformed("client_id differs from that of the Authorization header")
    return Credentials(client_id=client_id, client_secret=secret, basic=True)


def _assertion(fields: Mapping[str, str], authorization: Sequence[str]) -> OpenedAssertion:
    if authorization or "client_secret" in fields:
        raise refuse_malformed("the client must authenticate in one way only")
    if fields["client_assertion_type"] != TYPE:
        raise refuse_malformed(f"client_assertion_type must be {TYPE}")
    try:
        opened = open_assertion(fields["client_assertion"])
    except AssertionRefused as refusal:
        raise refuse_assertion(str(refusal)) from None
    if fields.get("client_id", opened.subject) != opened.subject:
        raise refuse_malformed("client_id differs from that of the client_assertion")
    return opened


def refuse_malformed(description: str) -> TokenRefused:
    """Return the refusal of a missing or malformed parameter."""
    return TokenRefused("invalid_request", description)


def refuse_credentials(*, basic: bool, client: str = "") -> TokenRefused:
    """Return the one refusal of credentials, whatever is wrong with them."""
    said = "client authentication failed"
    return TokenRefused("invalid_client", said, challenge=basic, client=client)


def refuse_assertion(said: str, *, client: str = "") -> TokenRefused:
    """Return the refusal of an assertion, with what is wrong (RFC 7521, 4.2.1)."""
    return TokenRefused("invalid_client", f"the client_assertion {said}", client=client)


def _refuse_query(query: str) -> None:
    for pair in query.split("&"):
        name = unquote_to_bytes(pair.partition("=")[0].replace("+", " "))
        if name.decode("utf-8", "replace") in _NAMES:
            raise refuse_malformed("parameters must be in the body, never in the address")


def _fields(content_type: str, body: bytes) -> dict[str, str]:
    media_type, *parameters = [part.strip().lower() for part in content_type.split(";")]
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8"):
            raise refuse_malformed("the character set must be UTF-8")
    if media_type == _FORM and body.lstrip()[:1] == b"{":
        raise refuse_malformed(f"the body is JSON, whose Content-Type is {_JSON}")
    if media_type == _FORM:
        return _form(body)
    if media_type == _JSON:
        return _json(body)
    raise refuse_malformed(f"the Content-Type must be {_FORM} or {_JSON}")


def _form(body: bytes) -> dict[str, str]:
    pairs = [chunk for chunk in body.split(b"&") if chunk]
    _check_count(len(pairs))
    fields: dict[str, str] = {}
    for pair in pairs:
        try:
            name, value = [_unquote(part) for part in _halves(pair)]
        except ValueError:
            raise refuse_malformed("the form is not encoded as UTF-8 with percent signs") from None
        if name in fields:
            raise refuse_malformed("a parameter is given more than once")
        fields[name] = value
    return _plain(fields)


def _json(body: bytes) -> dict[str, str]:
    try:
        value = loads(body)
    except Refused as refusal:
        raise refuse_malformed(_reason(body, refusal)) from None
    if type(value) is not dict:
        raise refuse_malformed("the body must be a JSON object")
    _check_count(len(value))
    # RFC 6749 section 3.2: what is not known is ignored, what has no value is left out.
    known = {name: item for name, item in value.items() if name in _NAMES and item is not None}
    if not all(isinstance(item, str) for item in known.values()):
        raise refuse_malformed("every parameter must be a string")
    return _plain(known)


def _reason(body: bytes, refusal: Refused) -> str:
    """Return why a body is no JSON, in the characters that are allowed here."""
    if body.startswith(tuple(f"{name}=".encode() for name in _NAMES)):
        return f"the body is a form, whose Content-Type is {_FORM}"
    said = refusal.issues[0].diagnostics
    return said if _DESCRIPTION.fullmatch(said) else "the body is not valid JSON"


def _halves(pair: bytes) -> tuple[str, str]:
    name, _, value = pair.decode().partition("=")
    return name, value


def _unquote(text: str) -> str:
    """Decode percent signs and ``+``; raises ValueError for what is not UTF-8 or no percent."""
    if _BAD_PERCENT.search(text):
        raise ValueError
    return unquote_to_bytes(text.replace("+", " ")).decode()


def _check_count(count: int) -> None:
    if count > MAX_FIELDS:
        raise refuse_malformed(f"a token request has at most {MAX_FIELDS} parameters")


def _plain(fields: dict[str, str]) -> dict[str, str]:
    for name in fields.values():
        if _CONTROL.search(name):
            raise refuse_malformed("a parameter holds a control character")
    return fields


def _check_grant(fields: Mapping[str, str]) -> None:
    if fields.get("grant_type", "client_credentials") != "client_credentials":
        raise TokenRefused("unsupported_grant_type", "grant_type must be client_credentials")


def _scopes(fields: Mapping[str, str]) -> tuple[str, ...]:
    scopes = tuple(part for part in fields.get("scope", "").split(" ") if part)
    if not all(is_scope(scope) for scope in scopes):
        raise refuse_malformed("scope holds a character that no scope has")
    return scopes


def _refuse_missing(
    fields: Mapping[str, str], needed: tuple[str, ...], authorization: Sequence[str]
) -> None:
    credentials: Sequence[str] = () if authorization else ("client_id", "client_secret")
    if _is_asserted(fields):
        credentials = sorted(_ASSERTED)
    missing = [name for name in (*needed, *credentials) if name not in fields]
    if missing:
        raise refuse_malformed(f"missing: {', '.join(missing)}")


def _basic(header: str) -> tuple[str, str]:
    """Return id and secret; both are form-encoded inside (RFC 6749 section 2.3.1)."""
    match = _BASIC.fullmatch(header)
    if match is None:
        raise refuse_credentials(basic=True)
    try:
        client_id, colon, secret = (
            base64.b64decode(match[1], validate=True).decode().partition(":")
        )
        client_id, secret = _unquote(client_id), _unquote(secret)
    except (binascii.Error, ValueError):
        raise refuse_credentials(basic=True) from None
    if not (client_id and colon and secret) or _CONTROL.search(client_id + secret):
        raise refuse_credentials(basic=True)
    return client_id, secret
