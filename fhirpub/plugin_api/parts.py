"""Parts that many types share: patient, organization and practitioner, and their rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.elements import items_of
from fhirpub.fhir.explanation.advice import suggest_code
from fhirpub.fhir.web_address import split_web_address
from fhirpub.plugin_api.resource_type import Entry, Part, RuleContext
from fhirpub.problems import ContentProblem

_PASSPORT = re.compile(r"http://hl7\.org/fhir/sid/([a-z]{2}|[A-Z]{2})")
_COUNTRIES = frozenset(
    "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br"
    " bs bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz"
    " ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw"
    " gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky"
    " kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv"
    " mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py"
    " qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg"
    " th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm"
    " zw".split()
)
_FULL_DATE = 10
_GENDERS = ("male", "female", "other")
_TELECOM_SYSTEMS = ("email", "phone")
_TELECOM_USES = ("home", "work", "mobile")

# Examples for the OpenAPI description.
_PATIENT = {
    "resourceType": "Patient",
    "id": "patient-1",
    "identifier": [{"system": "https://registry.example/persons", "value": "30111222"}],
    "name": [{"family": "Ashdown", "given": ["Juniper"]}],
    "gender": "female",
    "birthDate": "1984-03-09",
}
_ORGANIZATION = {
    "resourceType": "Organization",
    "id": "organization-1",
    "identifier": [{"system": "https://registry.example/laboratories", "value": "0042"}],
    "name": "North Quay Laboratory",
}
_PRACTITIONER = {
    "resourceType": "Practitioner",
    "id": "practitioner-1",
    "identifier": [{"system": "https://registry.example/practitioners", "value": "5177"}],
    "name": [{"family": "Tillery", "given": ["Rowan"]}],
}


def patient(*, referred_by: str, required: bool = True) -> Part:
    """Declare the part ``patient`` (D-49 to D-54).

    Args:
        referred_by: The element of the registered resource that must refer to it.
        required: Whether the part must be sent.

    Returns:
        The part, with the rules for patients.
    """
    return Part(
        name="patient",
        type="Patient",
        referred_by=referred_by,
        required=required,
        rules=patient_rules,
        example=_PATIENT,
    )


def organization(*, referred_by: str, required: bool = True) -> Part:
    """Declare the part ``organization`` (D-46 to D-49).

    Args:
        referred_by: The element of the registered resource that must refer to it.
        required: Whether the part must be sent.

    Returns:
        The part, with the rules for organizations.
    """
    return Part(
        name="organization",
        type="Organization",
        referred_by=referred_by,
        required=required,
        rules=organization_rules,
        example=_ORGANIZATION,
    )


def practitioner(*, referred_by: str) -> Part:
    """Declare the optional part ``practitioner``, the author in events (D-228, D-229).

    Args:
        referred_by: The element of the registered resource that must refer to it, if it is sent.

    Returns:
        The part, with the rules for practitioners. Events include it.
    """
    return Part(
        name="practitioner",
        type="Practitioner",
        referred_by=referred_by,
        required=False,
        rules=practitioner_rules,
        include_in_events=True,
        example=_PRACTITIONER,
    )


def patient_rules(entry: Entry, context: RuleContext) -> Iterator[Issue]:
    """Check the published rules for patients that FHIR does not have (D-49 to D-54).

    Args:
        entry: The Patient.
        context: Settings and terminology.

    Yields:
        A warning for each missing identifier, name or birth date, and an issue for each broken
        rule.
    """
    it, at = entry.resource, entry.at
    yield from _missing(entry, "identifier", "name", "birthDate")
    if it.get("gender") not in _GENDERS:
        genders = (*_GENDERS, "unknown") if context.allow_gender_unknown else _GENDERS
        yield from _code(it, "gender", genders, at)
    birth_date = it.get("birthDate")
    if birth_date is not None and len(birth_date) != _FULL_DATE:
        rule = "must be a whole date, YYYY-MM-DD"
        yield Issue.error(ContentProblem.TIME_INVALID, rule, f"{at}.birthDate")
    elif birth_date is not None and birth_date > context.today:
        rule = "lies in the future: check the year"
        yield Issue.warning(ContentProblem.DATE_IN_FUTURE, rule, f"{at}.birthDate")
    for place, telecom in items_of(it, "telecom"):
        yield from _telecom(telecom, f"{at}.{place}")
    for place, identifier in items_of(it, "identifier"):
        yield from _identifier_type(identifier, context, f"{at}.{place}")


def organization_rules(entry: Entry, context: RuleContext) -> Iterator[Issue]:
    """Check the published rules for organizations that FHIR does not have (D-46 to D-49).

    Args:
        entry: The Organization.
        context: The tenant, settings and terminology.

    Yields:
        A warning for a missing identifier or name, and an issue for each broken rule.
    """
    it, at = entry.resource, entry.at
    yield from _missing(entry, "identifier", "name")
    own = {_as_compared(namespace) for namespace in context.organization_namespaces}
    for place, identifier in items_of(it, "identifier"):
        yield from _identifier_type(identifier, context, f"{at}.{place}")
        ours = bool(own) and _as_compared(identifier.get("system", "")) in own
        if ours and identifier.get("value", context.tenant_id).lower() != context.tenant_id:
            rule = "is not the organization that this access token stands for"
            yield Issue.error(ContentProblem.ORGANIZATION_MISMATCH, rule, f"{at}.{place}.value")


def practitioner_rules(entry: Entry, context: RuleContext) -> Iterator[Issue]:
    """Check what the author in events needs, and the types of identifiers.

    Args:
        entry: The Practitioner.
        context: Settings and terminology.

    Yields:
        A warning for a missing identifier or name, and the issues of identifier types.
    """
    yield from _missing(entry, "identifier", "name")
    for place, identifier in items_of(entry.resource, "identifier"):
        yield from _identifier_type(identifier, context, f"{entry.at}.{place}")


def _missing(entry: Entry, *names: str) -> Iterator[Issue]:
    for name in names:
        if name not in entry.resource:
            rule = f"{name} is missing"
            yield Issue.warning(ContentProblem.ELEMENT_RECOMMENDED, rule, entry.at)


def _telecom(telecom: Mapping[str, Any], at: str) -> Iterator[Issue]:
    if "value" in telecom and "system" not in telecom:
        yield _not_allowed("", _TELECOM_SYSTEMS, f"{at}.system")
    for name, allowed in (("system", _TELECOM_SYSTEMS), ("use", _TELECOM_USES)):
        if telecom.get(name) not in allowed:
            yield from _code(telecom, name, allowed, at)


def _code(
    element: Mapping[str, Any], name: str, allowed: Sequence[str], at: str
) -> Iterator[Issue]:
    """Check a code, also one that FHIR does not have: these lists are shorter than FHIR's."""
    code = element.get(name)
    if isinstance(code, str) and code not in allowed:
        yield _not_allowed(code, allowed, f"{at}.{name}")


def _not_allowed(code: str, allowed: Sequence[str], at: str) -> Issue:
    rule = f"must be one of {', '.join(allowed)}{suggest_code(code, allowed)}"
    return Issue.error(ContentProblem.CODE_NOT_ALLOWED, rule, at)


def _identifier_type(
    identifier: Mapping[str, Any], context: RuleContext, at: str
) -> Iterator[Issue]:
    if "type" not in identifier:
        return
    for index, coding in enumerate(identifier["type"].get("coding", ())):
        place = f"{at}.type.coding[{index}]"
        yield from context.terminology.identifier_type_issues(coding, place)
        if coding.get("code") == "PPN":
            match = _PASSPORT.fullmatch(identifier.get("system", ""))
            if match is None or match[1].lower() not in _COUNTRIES:
                rule = "a passport's system is http://hl7.org/fhir/sid/ with a country's alpha-2"
                yield Issue.warning(ContentProblem.IDENTIFIER_QUESTIONABLE, rule, f"{at}.system")


def _as_compared(uri: str) -> str:
    """Return a URI as D-48 compares it: http is https, the host in lower case, no last slash."""
    parts = split_web_address(uri)
    if parts is None:
        return uri
    return f"{parts.netloc.lower()}{parts.path}?{parts.query}#{parts.fragment}".replace("/?", "?")
