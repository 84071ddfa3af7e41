"""The patient (PID) and the organization that performed the examination (MSH-4)."""

from __future__ import annotations

import re
from datetime import date

from fhirpub_hl7v2.mapping.context import Context, JsonObject, codings, present, uri
from fhirpub_hl7v2.message import Segment, Value

_GENDERS = {
    "A": "other",
    "F": "female",
    "FEMALE": "female",
    "M": "male",
    "MALE": "male",
    "N": "other",
    "O": "other",
}
"""HL7 table 0001; an unknown gender is left out."""

_USES = {
    "BAD": "old",
    "D": "usual",
    "L": "official",
    "M": "maiden",
    "MSK": "anonymous",
    "N": "nickname",
    "NAV": "temp",
    "R": "official",
    "S": "anonymous",
    "TEMP": "temp",
}
"""HL7 table 0200."""

_DATE = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2}).*")
_TYPES = "http://terminology.hl7.org/CodeSystem/v2-0203"


def patient(context: Context, segment: Segment) -> JsonObject:
    """Return the Patient of a PID; a birth date without a day is left out."""
    return present(
        resourceType="Patient",
        id="patient",
        identifier=[
            _identifier(context, segment, value) for value in segment.values(3) if value.text(1)
        ],
        name=[_name(value) for value in segment.values(5) if value.text(1) or value.text(2)],
        gender=_GENDERS.get(segment.text(8).upper(), ""),
        birthDate=_birth_date(context, segment),
    )


def _birth_date(context: Context, segment: Segment) -> str:
    born = _DATE.fullmatch(segment.text(7))
    if born is None:
        return ""
    try:
        return date(*map(int, born.groups())).isoformat()
    except ValueError:
        context.report(segment, "must begin with a date such as 19700131", 7)
        return ""


def _identifier(context: Context, segment: Segment, value: Value) -> JsonObject:
    kind = value.text(5)
    return present(
        type=codings(_TYPES, kind) if kind else {},
        system=context.authority(segment, 3, value.parts(4), context.settings.patient_system),
        value=value.text(1),
    )


def _name(value: Value) -> JsonObject:
    given = [value.text(at) for at in (2, 3) if value.text(at)]
    return present(
        use=_USES.get(value.text(7), ""),
        family=value.text(1),
        given=given,
        prefix=[value.text(5)] if value.text(5) else [],
        suffix=[value.text(4)] if value.text(4) else [],
    )


def organization(context: Context, header: Segment) -> JsonObject:
    """Return the Organization of the settings, else the sending facility or application."""
    settings, facility = context.settings, header.value(4)
    name = settings.organization_name or facility.text(1) or header.text(3)
    system, number = settings.organization_system, settings.organization_value
    if not settings.organization_name and (sent := uri(facility.text(2))):
        system, number = "urn:ietf:rfc:3986", sent
    context.require(name or number, header, "is empty: set [organization] name", 4)
    identifier = [{"system": system, "value": number}] if system and number else []
    return present(
        resourceType="Organization", id="organization", identifier=identifier, name=name
    )
