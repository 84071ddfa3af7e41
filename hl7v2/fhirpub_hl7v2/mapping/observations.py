"""Results (OBX) as Observations, and specimens (SPM, or OBR-15) as Specimens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fhirpub_hl7v2.mapping.context import Context, JsonObject, authority_of, key_of, present
from fhirpub_hl7v2.mapping.documents import is_document
from fhirpub_hl7v2.mapping.groups import TEXTS, Group, Noted
from fhirpub_hl7v2.mapping.values import interpretation, reference_range, unit_of, value_of
from fhirpub_hl7v2.message import Segment

PATIENT = {"reference": "Patient/patient"}
_STATUSES = {
    "A": "amended",
    "C": "corrected",
    "D": "entered-in-error",
    "F": "final",
    "I": "registered",
    "N": "final",
    "O": "registered",
    "P": "preliminary",
    "R": "preliminary",
    "S": "preliminary",
    "U": "final",
    "W": "entered-in-error",
    "X": "cancelled",
}
"""HL7 table 0085."""

_STATUSES_OF_ALL = {
    "A": "preliminary",
    "C": "final",
    "F": "final",
    "I": "registered",
    "O": "registered",
    "P": "preliminary",
    "R": "preliminary",
    "S": "registered",
    "X": "cancelled",
}
"""What HL7 table 0123 says about results that have no status of their own."""

_NOT_ASKED = {
    "coding": [
        {
            "system": "http://terminology.hl7.org/CodeSystem/data-absent-reason",
            "code": "not-asked",
        }
    ]
}


def observations(
    context: Context, group: Group, identifier: JsonObject, specimen: str
) -> list[JsonObject]:
    """Return the Observation of each result that is no document.

    ``identifier`` is that of the report, and ``specimen`` the local id of its only specimen.
    """
    occurrences: Counter[str] = Counter()
    made: list[JsonObject] = []
    for each in group.results:
        if is_document(each.segment):
            continue
        name = _name_of(each.segment, group.request.segment)
        occurrences[name] += 1
        number = f"#{occurrences[name]}" if occurrences[name] > 1 else ""
        made.append(
            {
                "resourceType": "Observation",
                "id": f"result-{len(made) + 1}",
                "identifier": [{**identifier, "value": f"{identifier['value']}/{name}{number}"}],
                **_observation(context, each, group.request.segment),
                **present(specimen={"reference": f"Specimen/{specimen}"} if specimen else {}),
            }
        )
    return made


def _name_of(segment: Segment, request: Segment) -> str:
    """Return what distinguishes a result from the others of its report: OBX-3 and OBX-4."""
    sub_id = segment.text(4)
    return key_of(segment.value(3) or request.value(4)) + (f"/{sub_id}" if sub_id else "")


def _observation(context: Context, noted: Noted, request: Segment) -> JsonObject:
    segment = noted.segment
    sent = segment.text(11).upper()
    own = context.time(segment, 14, segment.text(14))
    return present(
        status=_status(context, segment, request),
        code=_code(context, segment, request),
        subject=PATIENT,
        effectiveDateTime=own or context.time(request, 7, request.text(7)),
        **_value(context, noted),
        dataAbsentReason=_NOT_ASKED if sent == "N" and not segment.values(5) else {},
        interpretation=interpretation(segment),
        note=[{"text": noted.comments}] if noted.comments else [],
        method=context.concept(segment.value(17)),
        referenceRange=reference_range(segment, unit_of(context, segment)),
    )


def _status(context: Context, segment: Segment, request: Segment) -> str:
    """Return the status of OBX-11, else what OBR-25 means for all results."""
    sent = segment.text(11).upper()
    if not sent:
        return _STATUSES_OF_ALL.get(request.text(25).upper(), "unknown")
    if sent not in _STATUSES:
        context.report(segment, f"must be one of {', '.join(_STATUSES)}", 11)
    return _STATUSES.get(sent, "unknown")


def _code(context: Context, segment: Segment, request: Segment) -> JsonObject:
    """Return OBX-3; a text without a code has that of the report."""
    if not segment.value(3) and segment.text(2) in TEXTS:
        return context.concept(request.value(4))
    context.require(segment.value(3), segment, "is required: the code of the result", 3)
    return context.concept(segment.value(3))


def _value(context: Context, noted: Noted) -> JsonObject:
    """Return OBX-5 as the element ``value[x]``, with the lines that continue it."""
    value = value_of(context, noted.segment)
    if not noted.lines:
        return value
    lines = (value_of(context, line).get("valueString", "") for line in noted.lines)
    return present(valueString="\n".join([value.get("valueString", ""), *lines]).strip("\n"))


def specimens(context: Context, group: Group, system: str) -> list[JsonObject]:
    """Return the Specimens; ``system`` is that of numbers without an assigning authority."""
    if group.specimens:
        return [
            _specimen(context, noted, system, at) for at, noted in enumerate(group.specimens, 1)
        ]
    return _source_of(context, group.request.segment)


def _specimen(context: Context, noted: Noted, system: str, at: int) -> JsonObject:
    segment = noted.segment
    collected, end = segment.text(17, 1), segment.text(17, 2)
    return present(
        resourceType="Specimen",
        id=f"specimen-{at}",
        identifier=_numbers(context, segment, system),
        type=context.concept(segment.value(4)),
        subject=PATIENT,
        receivedTime=context.time(segment, 18, segment.text(18)),
        collection=_collection(context, segment, (collected, end), 17),
        note=[{"text": noted.comments}] if noted.comments else [],
    )


def _numbers(context: Context, segment: Segment, system: str) -> list[JsonObject]:
    """Return the number of the laboratory (SPM-2.2), else that of the placer (SPM-2.1)."""
    value = segment.value(2)
    for component in (2, 1):
        if number := value.text(component):
            authority = authority_of(value.parts(component))
            found = context.known_authority(authority) or ("" if authority else system)
            return [present(system=found, value=number)]
    return []


def _source_of(context: Context, request: Segment) -> list[JsonObject]:
    """Return the Specimen of OBR-15, as before v2.5."""
    source = request.value(15)
    kind = context.concept(source.parts(1))
    if not kind:
        return []
    made = present(
        resourceType="Specimen",
        id="specimen-1",
        type=kind,
        subject=PATIENT,
        receivedTime=context.time(request, 14, request.text(14)),
        collection=_collection(context, request, (request.text(7), request.text(8)), 7),
    )
    return [made]


def _collection(
    context: Context, segment: Segment, period: Sequence[str], field: int
) -> JsonObject:
    start, end = (context.time(segment, field, text) for text in period)
    if start and end and start != end:
        return {"collectedPeriod": {"start": start, "end": end}}
    return present(collectedDateTime=start)
