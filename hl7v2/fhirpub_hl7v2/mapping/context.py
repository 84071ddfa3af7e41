"""What the mapping of one message knows, and the problems that it finds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from fhirpub_hl7v2.message import Segment, Value
from fhirpub_hl7v2.problems import Code, Problem
from fhirpub_hl7v2.settings import OTHERS, Settings

JsonObject = dict[str, Any]

_TIME = re.compile(
    r"(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:\.\d{1,6})?)?)?)?)?)?([+-]\d{4})?",
    re.ASCII,
)
_WRITTEN_OTHERWISE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
"""ISO 8601, which some senders use."""

_SYSTEMS = {
    "LN": "http://loinc.org",
    "LOINC": "http://loinc.org",
    "SCT": "http://snomed.info/sct",
    "SNOMED-CT": "http://snomed.info/sct",
    "UCUM": "http://unitsofmeasure.org",
    "I9C": "http://hl7.org/fhir/sid/icd-9-cm",
    "I10": "http://hl7.org/fhir/sid/icd-10",
    "I10C": "http://hl7.org/fhir/sid/icd-10-cm",
    "CVX": "http://hl7.org/fhir/sid/cvx",
    "NDC": "http://hl7.org/fhir/sid/ndc",
    "RXNORM": "http://www.nlm.nih.gov/research/umls/rxnorm",
}
"""HL7 table 0396."""

_HL7_TABLE = re.compile(r"HL7([0-9]{4})")
_OID = re.compile(r"[0-2](?:\.(?:0|[1-9][0-9]*))+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def present(**elements: Any) -> JsonObject:
    """Return an object of the elements that have a value."""
    return {name: value for name, value in elements.items() if value not in ("", None, [], {})}


def uri(identifier: str) -> str:
    """Return an OID, UUID or URI as a system; "" if it is none of them."""
    if _OID.fullmatch(identifier):
        return f"urn:oid:{identifier}"
    if _UUID.fullmatch(identifier.lower()):
        return f"urn:uuid:{identifier.lower()}"
    return identifier if _URI.fullmatch(identifier) else ""


@dataclass(slots=True)
class Context:
    """The settings, the offset of the message's times, and the problems so far."""

    settings: Settings
    offset: str = ""
    problems: list[Problem] = field(default_factory=list)

    def report(
        self, segment: Segment, text: str, at: int = 0, code: Code = Code.DATA_TYPE
    ) -> None:
        """Add a problem with a field of a segment."""
        self.problems.append(segment.problem(text, at, code))

    def require(self, value: Any, segment: Segment, text: str, at: int) -> None:
        """Add a problem if there is no value."""
        if not value:
            self.report(segment, text, at, Code.REQUIRED)

    def coding_system(self, name: str) -> str:
        """Return the system of HL7's name of a coding system; "" if it is not known."""
        if name in self.settings.codes:
            return self.settings.codes[name]
        if table := _HL7_TABLE.fullmatch(name.upper()):
            return f"http://terminology.hl7.org/CodeSystem/v2-{table[1]}"
        return _SYSTEMS.get(name.upper(), "") or uri(name)

    def concept(self, value: Value) -> JsonObject:
        """Return a coded value (CE, CWE, CNE) as a CodeableConcept; {} if it is empty."""
        codings = [
            present(
                system=self.coding_system(value.text(at + 2)),
                code=value.whole(at),
                display=value.whole(at + 1),
            )
            for at in (1, 4)
            if value.text(at)
        ]
        return present(coding=codings, text=text_of(value))

    def authority(self, segment: Segment, at: int, authority: Value, default: str) -> str:
        """Return the system of an assigning authority (HD); adds a problem if it is not known."""
        system = self.known_authority(authority) or ("" if authority else default)
        if not system:
            text = "names no assigning authority that is known"
            way_out = (
                'set its system in [authorities], or "*" for all'
                if authority
                else "set [patient] or [report] system"
            )
            self.report(segment, f"{text}: {way_out}", at, Code.NOT_FOUND)
        return system

    def known_authority(self, authority: Value) -> str:
        """Return the system of an assigning authority (HD); "" if it is not known."""
        name, identifier, kind = (authority.text(at) for at in (1, 2, 3))
        if name in self.settings.authorities and name != OTHERS:
            return self.settings.authorities[name]
        system = uri(identifier) or uri(name)
        base = self.settings.authorities.get(OTHERS)
        if system or not base or not authority:
            return system
        own = [kind or "id", identifier] if identifier else [name]
        return base + "/".join(quote(part, safe="") for part in own)

    def time(self, segment: Segment, at: int, text: str) -> str:
        """Return a time stamp as a FHIR dateTime of the same precision, down to minutes.

        A time needs an offset: its own, that of MSH-7, or that of the time zone in the settings.
        """
        try:
            return self._time(segment, at, text) if text else ""
        except (ValueError, OverflowError):
            self.report(segment, "must be a time such as 20260302081500+0100", at)
            return ""

    def _time(self, segment: Segment, at: int, text: str) -> str:
        moment, parts, offset = _parsed(text)
        if len(parts) < 5:  # hours alone are no precision of FHIR
            return "-".join(parts[:3])
        zone = self._zone(offset)
        if zone is None:
            self.report(segment, "has no offset: set [message] time_zone", at, Code.REQUIRED)
            return ""
        there = moment.replace(tzinfo=zone)
        if (there.utcoffset() or timedelta()).seconds % 60:  # local mean time, before time zones
            raise ValueError
        return there.isoformat()

    def _zone(self, offset: str | None) -> Any:
        if text := (offset or self.offset).replace(":", "").replace("Z", "+0000"):
            minutes = int(text[1:3]) * 60 + int(text[3:])
            return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
        return self.settings.zone

    def offset_of(self, text: str) -> None:
        """Take the offset of MSH-7 as that of times without one (HL7 v2.5.1, 2.15.9.7)."""
        found = _TIME.fullmatch(text)
        self.offset = (found[7] or "") if found else ""


def is_time(text: str) -> bool:
    """Return whether a text can be read as a time stamp, with an offset or without one."""
    try:
        _parsed(text)
    except (ValueError, OverflowError):
        return False
    return True


def _parsed(text: str) -> tuple[datetime, list[str], str | None]:
    """Return a moment, what is known of it from the year on, and its offset; raises ValueError."""
    found = _TIME.fullmatch(text) or _WRITTEN_OTHERWISE.fullmatch(text)
    if found is None:
        raise ValueError
    *groups, offset = found.groups()
    parts = [part for part in groups if part]
    given = [int(part) for part in parts]
    moment = datetime(*(given + [1, 1][len(given) - 1 :])[:6])  # type: ignore[arg-type]  # noqa: DTZ001
    return moment, parts, offset


def text_of(value: Value) -> str:
    """Return the text of a coded value: the original, a display, or else the code."""
    return next((text for at in (9, 2, 5, 1, 4) if (text := value.whole(at))), "")


def authority_of(value: Value) -> Value:
    """Return the assigning authority of an entity identifier (EI).

    It is the components from the second, which some senders write as parts of the second.
    """
    if len(value.parts(2).components) > 1:
        return value.parts(2)
    return Value(value.components[1:], value.delimiters)


def key_of(value: Value) -> str:
    """Return what a coded value is known by: its code, that of the sender, or else its text."""
    return value.whole(1) or value.whole(4) or text_of(value)


def codings(system: str, code: str, **more: str) -> Mapping[str, Any]:
    """Return a CodeableConcept of one code."""
    return {"coding": [present(system=system, code=code, **more)]}
