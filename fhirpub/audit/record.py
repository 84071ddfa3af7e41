"""Records of the audit trail: one line of JSON for each access, without clinical content.

A record names resources and patients by their ids, never by what they contain. Its members:

- ``at``: the time in milliseconds since 1970-01-01 UTC;
- ``action``: what was done, such as ``read`` or ``client.add``;
- ``status``: the HTTP status of the response, or its equivalent; 102 for a change that is about
  to be made, whose outcome is in another record;
- ``client``, ``environment``, ``address``, ``request``: the client, the environment of the
  service, the address that the client called from, and the id of its request;
- ``user``, ``host``: instead of these, the operating system's user that ran a command, and the
  host;
- ``what``: the resources or records concerned, each as ``Type/id``, or
  ``Type/id/_history/version``;
- ``patients``: the patients concerned, each as ``Patient/id``;
- ``query``: the query of a search, percent-encoded as it was sent;
- ``count``: how many attempts one record stands for, if there are several.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import orjson

Members = Mapping[str, Any]
"""A record as it is read from JSON."""
BEGUN = 102
"""The status of a record that is written before a change (RFC 2518, section 10.1)."""
MAX_NAMED = 1_000
"""The maximum number of resources, and of patients, that one record names."""
_MAX_QUERY = 8_000
_PART_BYTES, _MAX_MATCH = 64 * 1024, 100

_BEGINNING = b'"reference":"Patient/'
_PATIENT = re.compile(rb'"reference":"(Patient/[A-Za-z0-9.-]{1,64})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The acting party: a client over HTTP, or a user of the operating system.

    Attributes:
        client: The id of the client, if one is known.
        environment: The environment of the service.
        address: The address that the client called from.
        request: The id of its request.
        user: The user of the operating system that ran a command.
        host: The host on which the command ran.
    """

    client: str = ""
    environment: str = ""
    address: str = ""
    request: str = ""
    user: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What was done.

    Attributes:
        action: What was done, such as ``read``.
        status: The HTTP status of the response, or its equivalent.
        what: The resources or records concerned.
        patients: The patients concerned.
        query: The query of a search.
        count: How many attempts it stands for; 0 for one.
    """

    action: str
    status: int = 200
    what: tuple[str, ...] = ()
    patients: tuple[str, ...] = ()
    query: str = ""
    count: int = 0


def encode(access: Access, agent: Agent, *, at: int) -> bytes:
    """Return a record as a line of JSON, without the line feed.

    Args:
        access: What was done.
        agent: The acting party.
        at: When, in milliseconds; 0 leaves it to the sealing, which knows it of a version.
    """
    shared = shared_members(
        access.action, access.status, agent.client, agent.environment, agent.address
    )
    own = {
        "request": agent.request,
        "user": agent.user,
        "host": agent.host,
        "what": access.what[:MAX_NAMED],
        "patients": access.patients[:MAX_NAMED],
        "query": access.query[:_MAX_QUERY],
        "count": access.count,
    }
    known = {name: value for name, value in own.items() if value}
    begin = b'{"at":%d,' % at if at else b"{"
    return (
        b"%b%b,%b" % (begin, shared, orjson.dumps(known)[1:]) if known else begin + shared + b"}"
    )


def form_query(form: Iterable[tuple[str, str]]) -> str:
    """Return the fields of a form as a query, as far as a record holds it.

    Args:
        form: The names and values.
    """
    kept, left = [], _MAX_QUERY
    for name, value in form:
        kept.append((name[:left], value[:left]))
        left -= len(name) + len(value)
        if left <= 0:
            break
    return urlencode(kept)


@lru_cache(maxsize=1024)
def shared_members(action: str, status: int, client: str, environment: str, address: str) -> bytes:
    """Return the members that many requests of a client have in common, without the braces."""
    members: dict[str, Any] = {"action": action, "status": int(status)}
    known = {"client": client, "environment": environment, "address": address}
    members |= {name: text for name, text in known.items() if text}
    return orjson.dumps(members)[1:-1]


def encode_request(
    shared: bytes,
    request: str,
    *,
    at: int = 0,
    what: tuple[str, ...] = (),
    patients: tuple[str, ...] = (),
    query: str = "",
) -> bytes:
    """Return the record of a request over HTTP: what `encode` returns, in half of its time.

    Args:
        shared: What `shared_members` returns.
        request: The id of the request, which is not empty.
        at: When, in milliseconds; 0 leaves it to the sealing.
        what: The resources or records concerned.
        patients: The patients concerned.
        query: The query of a search.
    """
    own: dict[str, Any] = {"request": request}
    if what:
        own["what"] = what[:MAX_NAMED]
    if patients:
        own["patients"] = patients[:MAX_NAMED]
    if query:
        own["query"] = query[:_MAX_QUERY]
    begin = b'{"at":%d,' % at if at else b"{"
    return b"%b%b,%b" % (begin, shared, orjson.dumps(own)[1:])


def complete(audit: bytes, *, at: int, what: str) -> dict[str, Any]:
    """Return the members of the record of a write, with what its version knows of it.

    These are the time and the resource.
    """
    members = orjson.loads(audit)
    return {"at": at, **members, "what": [what, *members.get("what", ())]}


def patients_in(bodies: Iterable[bytes]) -> tuple[str, ...]:
    """Return the patients that stored resources refer to, each once, in their order.

    In stored JSON, which has no blanks, a string cannot look like the member that is searched:
    its quotation marks are escaped.
    """
    found: dict[bytes, None] = {}
    for body in bodies:
        first = body.find(_BEGINNING)
        if first < 0:
            continue
        # Most resources refer to one patient: to find the text alone takes a fifth of the time.
        match = _PATIENT.match(body, first)
        if match and body.rfind(_BEGINNING) == first:
            found[match[1]] = None
        else:
            found |= dict.fromkeys(_matches(body, first))
    return tuple([match.decode() for match in found])


def _matches(body: bytes, first: int) -> Iterator[bytes]:
    """Yield what matches in parts of a body: in a long one, other threads have their turns."""
    for start in range(first, len(body), _PART_BYTES):
        yield from _PATIENT.findall(body, start, start + _PART_BYTES + _MAX_MATCH)


def name_of(type_name: str, resource_id: str, version: int = 0) -> str:
    """Return how a record names a resource, or one of its versions."""
    name = f"{type_name}/{resource_id}"
    return f"{name}/_history/{version}" if version else name


def unversioned(name: str) -> str:
    """Return the name of a resource without the version."""
    return name.partition("/_history/")[0]


def key_of(tenant: str, kind: str, value: str) -> int:
    """Return the key by which blocks are found that contain a value.

    Args:
        tenant: The tenant of the block.
        kind: ``agent``, ``patient`` or ``entity``.
        value: The client or user, the patient, or the resource without its version.

    Returns:
        A signed 64-bit number. Two values may have the same one: a key finds candidates.
    """
    text = f"{tenant}\n{kind}\n{value}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def keys_of(tenant: str, records: Iterable[Members]) -> frozenset[int]:
    """Return the keys by which a block of these records is found, given their members."""
    agents: set[str] = set()
    patients: set[str] = set()
    entities: set[str] = set()
    for members in records:
        agents.add(members.get("client") or members.get("user") or "")
        patients.update(members.get("patients", ()))
        entities.update(members.get("what", ()))
    agents.discard("")
    named = {"agent": agents, "patient": patients, "entity": {*map(unversioned, entities)}}
    return frozenset(key_of(tenant, kind, name) for kind, names in named.items() for name in names)
