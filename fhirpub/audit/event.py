"""A record as an AuditEvent of FHIR R4, after IHE's Basic Audit Log Patterns (BALP 1.1).

An event names the resources and the patients of its record, and nothing of what they contain. A
literal reference leads to a resource that FHIR can read; clients, endpoints and the like are named
by an identifier.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fhirpub.audit.identity import id_of
from fhirpub.audit.record import BEGUN, Members, unversioned
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant
from fhirpub.fhir.xml.tables import tables

AUDIT_EVENT = "AuditEvent"
OWN_ACTIONS = "urn:fhirpub:audit-action"
"""The system of the action as the record names it, the last subtype of every event."""
INTERACTIONS = "http://hl7.org/fhir/restful-interaction"
TYPES = "http://terminology.hl7.org/CodeSystem/audit-event-type"
DICOM = "http://dicom.nema.org/resources/ontology/DCM"
ACTION_CODES = "http://hl7.org/fhir/audit-event-action"
OUTCOME_CODES = "http://hl7.org/fhir/audit-event-outcome"
PATIENT = "Patient"

_PROFILE = "https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit."
_REQUEST_ID = {
    "system": "https://profiles.ihe.net/ITI/BALP/CodeSystem/BasicAuditEntityType",
    "code": "XrequestId",
}
_QUERY = "Query"
_RESOURCE_TYPES = "http://hl7.org/fhir/resource-types"
_ENTITY_TYPES = "http://terminology.hl7.org/CodeSystem/audit-entity-type"
_ROLES = "http://terminology.hl7.org/CodeSystem/object-role"
_SERVER_TYPE = {
    "system": "http://terminology.hl7.org/CodeSystem/security-source-type",
    "code": "4",
    "display": "Application Server",
}
_PERSON = {"system": _ENTITY_TYPES, "code": "1", "display": "Person"}
_SYSTEM_OBJECT = {"system": _ENTITY_TYPES, "code": "2", "display": "System Object"}
_ROLE_PATIENT = {"system": _ROLES, "code": "1", "display": "Patient"}
_ROLE_RESOURCE = {"system": _ROLES, "code": "4", "display": "Domain Resource"}
_ROLE_QUERY = {"system": _ROLES, "code": "24", "display": "Query"}
_ROLE_OTHER = {"system": _ROLES, "code": "13", "display": "Security Resource"}
_ROLES_OF_OTHERS: Mapping[str, JsonObject] = {
    "Client": {"system": _ROLES, "code": "11", "display": "Security User Entity"},
    "Endpoint": {"system": _ROLES, "code": "16", "display": "Data Destination"},
}
_SOURCE = {"system": DICOM, "code": "110153", "display": "Source Role ID"}
_DESTINATION = {"system": DICOM, "code": "110152", "display": "Destination Role ID"}
_REST = {"system": TYPES, "code": "rest", "display": "Restful Operation"}
_APPLICATION = {"system": DICOM, "code": "110100", "display": "Application Activity"}
_EXPORT = {"system": DICOM, "code": "110106", "display": "Export"}
_AUTHENTICATION = {"system": DICOM, "code": "110114", "display": "User Authentication"}
_MACHINE, _IP, _URI = "1", "2", "5"
_NAME = re.compile(r"([A-Z][A-Za-z]*)/([A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]{1,64})?")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an action is in the terms of FHIR.

    Attributes:
        action: One of C, R, U, D and E.
        interaction: The RESTful interaction; empty if there is none.
        profile: The BALP profile of a success that is about no patient, or about one if it is
            preceded by ``Patient``; empty if there is none.
        type: What kind of event it is.
    """

    action: str
    interaction: str = ""
    profile: str = ""
    type: Mapping[str, str] | None = None


MEANINGS: dict[str, Meaning] = {
    "read": Meaning("R", "read", "Read"),
    "vread": Meaning("R", "vread", "Read"),
    "history": Meaning("R", "history-instance"),
    "search": Meaning("E", "search-type", _QUERY),
    "register": Meaning("C", "create", "Create"),
    "revise": Meaning("U", "update", "Update"),
    "update": Meaning("U", "patch", "Update"),
    "validate": Meaning("E", "operation"),
    "operation": Meaning("E", "operation"),
    "batch": Meaning("E", "batch"),
    "token": Meaning("E", type=_AUTHENTICATION),
    "unauthenticated": Meaning("E", type=_AUTHENTICATION),
    "endpoint.read": Meaning("R"),
    "endpoint.create": Meaning("C"),
    "endpoint.update": Meaning("U"),
    "endpoint.delete": Meaning("D"),
    "endpoint.pause": Meaning("U"),
    "endpoint.enable": Meaning("U"),
    "endpoint.verify": Meaning("E"),
    "endpoint.test": Meaning("E"),
    "endpoint.secret.rotate": Meaning("U"),
    "endpoint.token.rotate": Meaning("U"),
    "delivery.read": Meaning("R"),
    "delivery.replay": Meaning("E"),
    "event.deliver": Meaning("R", type=_EXPORT),
    "audit.read": Meaning("R", "read", "Read"),
    "audit.search": Meaning("E", "search-type", _QUERY),
    "audit.export": Meaning("R", type=_EXPORT),
    "client.add": Meaning("C"),
    "client.rotate": Meaning("U"),
    "client.disable": Meaning("U"),
    "client.passkey.add": Meaning("U"),
    "client.passkey.remove": Meaning("U"),
    "console.link": Meaning("E", type=_AUTHENTICATION),
    "console.sign-in": Meaning("E", type=_AUTHENTICATION),
    "console.sign-out": Meaning("E", type=_AUTHENTICATION),
    "tenant.add": Meaning("C"),
    "tenant.disable": Meaning("U"),
    "key.rotate": Meaning("U"),
    "quota.set": Meaning("U"),
    "erase": Meaning("D"),
    "erase.list": Meaning("R"),
    "hold.add": Meaning("C"),
    "hold.release": Meaning("D"),
    "hold.list": Meaning("R"),
    "transfer": Meaning("R", type=_EXPORT),
}
"""What each action means; all others are `_OTHER`."""
_OTHER = Meaning("E")
_READS = ("read", "vread", "history-instance")


@dataclass(frozen=True, slots=True)
class Origin:
    """What the events of one tenant share.

    Attributes:
        prefix: What the id of each event begins with (`Tenant.audit_prefix`).
        base_url: The address of the service.
        issuer: The system of the ids of clients: the authority that issues their tokens.
    """

    prefix: str
    base_url: str
    issuer: str


def meaning_of(record: Members) -> Meaning:
    """Return what the action of a record means."""
    return MEANINGS.get(record["action"], _OTHER)


def outcome_of(record: Members) -> str:
    """Return the code of the outcome: 0 success, 4 refused, 8 failed."""
    status = record["status"]
    if status < 400:
        return "0"
    return "4" if status < 500 else "8"


def subtypes_of(record: Members) -> list[JsonObject]:
    """Return the RESTful interaction, if it is one, and the action as the record names it."""
    interaction = meaning_of(record).interaction
    rest = {"system": INTERACTIONS, "code": interaction, "display": interaction}
    own = {"system": OWN_ACTIONS, "code": record["action"]}
    return [rest, own] if interaction else [own]


def patients_of(record: Members) -> list[str]:
    """Return the patients that a record concerns, those among them that were accessed."""
    accessed = map(unversioned, record.get("what", ()))
    named = (name for name in accessed if name.startswith(f"{PATIENT}/"))
    return [*dict.fromkeys([*record.get("patients", ()), *named])]


def agent_of(record: Members) -> str:
    """Return the id of the client, or the name of the user that ran a command, or nothing."""
    return str(record.get("client") or record.get("user") or "")


def event_of(record: Members, origin: Origin, *, block: int, place: int) -> JsonObject:
    """Return a record as an AuditEvent.

    Args:
        record: The members of the record.
        origin: What the events of the tenant share.
        block: The number of the block that holds it.
        place: Its place there, counted from 0.
    """
    recorded = instant(record["at"])
    entities = [*_entities(record)]
    agents = [*_agents(record, origin)]
    profile = _profile(record, agents)
    meta: JsonObject = {"versionId": "1", "lastUpdated": recorded}
    return {
        "resourceType": AUDIT_EVENT,
        "id": id_of(origin.prefix, block, place),
        "meta": {**meta, "profile": [profile]} if profile else meta,
        "type": _type_of(record),
        "subtype": subtypes_of(record),
        "action": meaning_of(record).action,
        "recorded": recorded,
        "outcome": outcome_of(record),
        "outcomeDesc": _describe_outcome(record),
        "agent": agents,
        "source": _source(record, origin),
        **({"entity": entities} if entities else {}),
    }


def _type_of(record: Members) -> JsonObject:
    known = meaning_of(record).type
    return dict(known or (_APPLICATION if record.get("user") else _REST))


def _describe_outcome(record: Members) -> str:
    status, count = record["status"], record.get("count", 0)
    if status == BEGUN:
        return "The change was begun; another event has its outcome."
    return f"HTTP status {status}" + (f", {count} attempts" if count else "")


def _source(record: Members, origin: Origin) -> JsonObject:
    source: JsonObject = {"observer": _service(origin), "type": [_SERVER_TYPE]}
    environment = record.get("environment")
    return {"site": environment, **source} if environment else source


def _service(origin: Origin) -> JsonObject:
    return {"identifier": {"system": "urn:ietf:rfc:3986", "value": origin.base_url}}


# Agents: who asked, and this service.


def _agents(record: Members, origin: Origin) -> Iterator[JsonObject]:
    """Yield the caller, and the service.

    BALP follows the data: in a read the client is the destination, in all else the source. What
    is delivered leaves the service on its own.
    """
    reads = meaning_of(record).interaction in _READS
    delivers = record["action"] == "event.deliver"
    client, server = (_DESTINATION, _SOURCE) if reads or delivers else (_SOURCE, _DESTINATION)
    if record.get("user"):
        yield _user(record)
    elif not delivers or record.get("client") or record.get("address"):
        yield _client(record, origin, client, requestor=not delivers)
    yield {
        "type": {"coding": [server]},
        "who": _service(origin),
        "requestor": delivers,
        "network": {"address": origin.base_url, "type": _URI},
    }


def _client(record: Members, origin: Origin, role: JsonObject, *, requestor: bool) -> JsonObject:
    client, address = record.get("client"), record.get("address")
    known = {"identifier": {"system": origin.issuer, "value": client}}
    agent: JsonObject = {
        "type": {"coding": [role]},
        "who": known if client else {"display": "a client without a valid token"},
        "requestor": requestor,
    }
    return agent | ({"network": {"address": address, "type": _IP}} if address else {})


def _user(record: Members) -> JsonObject:
    host = record.get("host")
    agent: JsonObject = {
        "who": {"identifier": {"value": record["user"]}},
        "name": record["user"],
        "requestor": True,
    }
    return agent | ({"network": {"address": host, "type": _MACHINE}} if host else {})


# Entities: patients, resources, the query, the request.


def _entities(record: Members) -> Iterator[JsonObject]:
    for name in patients_of(record):
        yield {"what": {"reference": name}, "type": _PERSON, "role": _ROLE_PATIENT}
    is_search = meaning_of(record).profile == _QUERY
    for name in record.get("what", ()):
        yield _entity(name, is_result=is_search)
    if record.get("query"):
        query = base64.b64encode(record["query"].encode()).decode()
        yield {"type": _SYSTEM_OBJECT, "role": _ROLE_QUERY, "query": query}
    if record.get("request"):
        yield {"what": {"identifier": {"value": record["request"]}}, "type": _REQUEST_ID}


def _entity(name: str, *, is_result: bool) -> JsonObject:
    """Return what was accessed: by a reference if it is a resource that FHIR can read.

    In a search only the query is a system object, as BALP has it; results have the type of a
    resource.
    """
    kind, _, value = name.partition("/")
    if is_readable(name):
        own = {"system": _RESOURCE_TYPES, "code": kind}
        type_ = own if is_result else _SYSTEM_OBJECT
        return {"what": {"reference": name}, "type": type_, "role": _ROLE_RESOURCE}
    return {
        "what": {"identifier": {"value": value or kind}},
        "type": _SYSTEM_OBJECT,
        "role": _ROLES_OF_OTHERS.get(kind, _ROLE_OTHER),
        "name": name,
    }


def is_readable(name: str) -> bool:
    """Return whether a name can be a literal reference to a resource of this service."""
    match = _NAME.fullmatch(name)
    return match is not None and match[1] != "Endpoint" and match[1] in tables().resources


def _profile(record: Members, agents: list[JsonObject]) -> str:
    """Return the URL of the BALP profile that an event conforms to, or nothing.

    They are profiles of successes, by a client with an address, with exactly one resource or one
    query, and with one patient or none.
    """
    name = meaning_of(record).profile
    patients, what = patients_of(record), record.get("what", ())
    if not name or outcome_of(record) != "0" or record["status"] == BEGUN or len(patients) > 1:
        return ""
    asked = record.get("query", "")
    fits = bool(asked) if name == _QUERY else len(what) == 1 and not asked
    if not fits or not record.get("client") or not all("network" in agent for agent in agents):
        return ""
    is_of_fhir = all(map(is_readable, [*what, *patients]))
    return f"{_PROFILE}{PATIENT if patients else ''}{name}" if is_of_fhir else ""
