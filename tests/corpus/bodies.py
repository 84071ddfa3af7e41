"""Turns third-party reports into ``$register`` bodies, and predicts the verdict on them.

The prediction shares no code with the service: it follows ``docs/behaviour/``. It covers the
service's own rules and the most common faults; the independent validators (``validator.py``) check
whether a resource is R4 in every detail.
"""

from __future__ import annotations

import base64
import binascii
import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

JsonObject = dict[str, Any]
Variant = Literal["as_is", "completed"]
Faults = dict[str, int]
"""Elements that a refusal may name, each with the status of that refusal."""

LOCAL_PATIENT = "patient-1"
LOCAL_ORGANIZATION = "organization-1"

PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\n"
    b"xref\n0 4\n0000000000 65535 f \n0000000009 00000 n \n0000000052 00000 n \n"
    b"0000000101 00000 n \ntrailer<</Size 4/Root 1 0 R>>\nstartxref\n164\n%%EOF\n"
)

# --- making bodies ------------------------------------------------------------------------


def register_body(entry: JsonObject, variant: Variant = "as_is") -> JsonObject:
    """Return the body that a well-behaved client would send for a corpus entry."""
    report = copy.deepcopy(entry["report"])
    patient = copy.deepcopy(entry["patient"])
    organization = copy.deepcopy(entry["organization"])
    if variant == "completed":
        patient = patient or {"resourceType": "Patient", "name": [{"family": "Unnamed"}]}
        organization = organization or {"resourceType": "Organization", "name": "Unnamed"}
        complete(report)
    force_identifier(report, entry["source"])
    lift(report, patient, organization)
    point_at_entries(report, patient, organization, add=variant == "completed")
    parts = {"patient": patient, "organization": organization, "diagnosticReport": report}
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": k, "resource": v} for k, v in parts.items() if v is not None],
    }


def force_identifier(report: JsonObject, source: str) -> None:
    """Keep one identifier: its own when that is usable, else one derived from the source."""
    own = report.get("identifier")
    if isinstance(own, list) and len(own) == 1 and usable(own[0]):
        return
    # Several reports of one file need several values, the same in every run.
    digest = hashlib.sha256(f"{source}\n{sorted(report.items(), key=str)}".encode()).hexdigest()
    report["identifier"] = [{"system": "https://corpus.example/reports", "value": digest[:32]}]
    report.pop("_identifier", None)


def usable(identifier: Any) -> bool:
    """Return whether an identifier has a system and a value."""
    return (
        isinstance(identifier, dict)
        and is_text(identifier.get("system"))
        and is_text(identifier.get("value"))
    )


def lift(report: JsonObject, *entries: JsonObject | None) -> None:
    """Remove from ``contained`` the resources that the request has as separate entries."""
    if not isinstance(report.get("contained"), list):
        return
    lifted = [entry for entry in entries if entry is not None]
    report["contained"] = [
        contained_resource
        for contained_resource in report["contained"]
        if contained_resource not in lifted
    ]
    if not report["contained"]:
        del report["contained"]


def point_at_entries(
    report: JsonObject,
    patient: JsonObject | None,
    organization: JsonObject | None,
    *,
    add: bool,
) -> None:
    """Rename the patient and the organization, and let the report refer to them."""
    if patient is not None:
        old, patient["id"] = f"Patient/{patient.get('id')}", LOCAL_PATIENT
        if add or "subject" in report:
            report["subject"] = {"reference": f"Patient/{LOCAL_PATIENT}"}
        rename(report, old, f"Patient/{LOCAL_PATIENT}")
    if organization is not None:
        old, organization["id"] = f"Organization/{organization.get('id')}", LOCAL_ORGANIZATION
        new = f"Organization/{LOCAL_ORGANIZATION}"
        performers = report.get("performer", [])
        if isinstance(performers, list) and (add or performers):
            others = [
                performer for performer in performers if not means_organization(performer, old)
            ]
            report["performer"] = [{"reference": new}, *others]


def means_organization(reference: Any, old: str) -> bool:
    """Return whether a performer is the organization that now has an entry of its own."""
    text = reference.get("reference") if isinstance(reference, dict) else None
    if not isinstance(text, str):
        return False
    return text.startswith(("urn:", "#", "Organization")) or text.endswith(old)


def rename(node: Any, old: str, new: str) -> None:
    """Let every reference to the old name use the new one."""
    if isinstance(node, dict):
        if node.get("reference") == old:
            node["reference"] = new
        for item in node.values():
            rename(item, old, new)
    elif isinstance(node, list):
        for item in node:
            rename(item, old, new)


def complete(report: JsonObject) -> None:
    """Add what the service wants and FHIR does not."""
    code = report.get("code")
    if isinstance(code, dict) and not is_text(code.get("text")):
        codings = code.get("coding") or [{}]
        code["text"] = codings[0].get("display") or codings[0].get("code") or "Report"
    if not report.get("category"):
        system = "http://terminology.hl7.org/CodeSystem/v2-0074"
        report["category"] = [{"coding": [{"system": system, "code": "LAB"}]}]
    forms = report.get("presentedForm")
    if not isinstance(forms, list) or not forms:
        report["presentedForm"] = [pdf_form()]
        return
    for form in forms:
        if isinstance(form, dict):
            complete_form(form)


def pdf_form() -> JsonObject:
    """Return a small real document."""
    return {
        "contentType": "application/pdf",
        "title": "Report",
        "data": base64.b64encode(PDF).decode(),
        "hash": hashlib.sha256(PDF).hexdigest(),
    }


def complete_form(form: JsonObject) -> None:
    """Add a document or a hash where one is missing."""
    if "data" not in form and not is_fetchable(form.get("url")):
        form.pop("url", None)
        form.update(pdf_form())
    content = decoded(form.get("data"))
    if content is not None and "hash" not in form:
        form["hash"] = hashlib.sha256(content).hexdigest()


# --- prediction ----------------------------------------------------------------------------

REPORT_ELEMENTS = frozenset(
    "resourceType id meta implicitRules language text contained extension modifierExtension"
    " identifier basedOn status category code subject encounter effectiveDateTime"
    " effectivePeriod issued performer resultsInterpreter specimen result imagingStudy media"
    " conclusion conclusionCode presentedForm".split()
)
CREATION_STATUSES = frozenset({"registered", "partial", "preliminary", "final", "unknown"})
DATE = r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?"
DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
TIME = r"T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-](0\d|1[0-4]):[0-5]\d)?"
TIMED = re.compile(DAY + TIME)
DATE_OR_TIMED = re.compile(f"{DATE}|{DAY}{TIME}")
MAX_BYTES = 5 * 1024 * 1024


def expected(body: JsonObject) -> Literal["accepted"] | frozenset[str]:
    """Return what the service must do: accept, or refuse and name some of these elements.

    Elements of the report go by their FHIRPath; those of the other entries begin with
    ``patient`` or ``organization``; ``parameter`` is a missing entry.
    """
    return frozenset(faults_of(body)) or "accepted"


def expected_statuses(body: JsonObject) -> set[int]:
    """Return the statuses of the stage that fails first: 400 comes before 413 and 422."""
    statuses = set(faults_of(body).values())
    if not statuses:
        return {201}
    return {400} if 400 in statuses else statuses


def faults_of(body: JsonObject) -> Faults:
    """Return every fault that this prediction can detect."""
    parts = {parameter["name"]: parameter["resource"] for parameter in body["parameter"]}
    faults: Faults = {}
    if missing := {"patient", "organization", "diagnosticReport"} - set(parts):  # D-30
        faults["parameter"] = 400
    if "diagnosticReport" in parts:
        check_report(parts["diagnosticReport"], missing, faults)
    if "patient" in parts:
        check_patient(parts["patient"], faults)
    if "organization" in parts:
        check_organization(parts["organization"], faults)
    for name, resource in parts.items():
        prefix = "" if name == "diagnosticReport" else f"{name}."
        for element in modifiers(resource):  # D-38
            faults.setdefault(f"{prefix}{element}", 422)
    return faults


def check_report(report: JsonObject, missing: set[str], faults: Faults) -> None:
    """Check the report: D-33 to D-44, D-56 to D-68."""
    for name in report:  # D-37
        if name.removeprefix("_") not in REPORT_ELEMENTS:
            faults[name] = 400
    rules: dict[str, Callable[[JsonObject], bool]] = {
        "identifier": identifier_is_right,
        "status": lambda each: each.get("status") in CREATION_STATUSES,
        "category": category_is_right,
        "code.text": lambda each: is_text((each.get("code") or {}).get("text")),
        "issued": lambda each: matches(TIMED, each.get("issued")),
        "effectiveDateTime": lambda each: matches(DATE_OR_TIMED, each.get("effectiveDateTime")),
        "text": lambda each: narrative_is_safe(each.get("text")),
        "contained": containment_is_right,
    }
    faults.update({name: 400 for name, holds in rules.items() if not holds(report)})
    check_forms(report.get("presentedForm"), faults)
    check_references(report, missing, faults)


def identifier_is_right(report: JsonObject) -> bool:
    """D-44."""
    found = report.get("identifier")
    if not isinstance(found, list) or len(found) != 1 or not usable(found[0]):
        return False
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", found[0]["system"]) is not None


def category_is_right(report: JsonObject) -> bool:
    """D-40."""
    found = report.get("category")
    return (
        isinstance(found, list)
        and bool(found)
        and all(
            isinstance(item, dict)
            and bool(item.get("coding"))
            and all(is_text(x.get("system")) and is_text(x.get("code")) for x in item["coding"])
            for item in found
        )
    )


def containment_is_right(report: JsonObject) -> bool:
    """D-36: dom-2 to dom-5 and ref-1 hold."""
    inside = report.get("contained", [])
    used = {
        reference.removeprefix("#")
        for reference in references(report)
        if reference.startswith("#")
    } - {""}
    ids = {item.get("id") for item in inside}
    return (
        used <= ids
        and ids <= used | points_back(inside)
        and not any(
            "contained" in item
            or {"versionId", "lastUpdated", "security"} & set(item.get("meta", {}))
            for item in inside
        )
    )


def points_back(inside: list[JsonObject]) -> set[str]:
    """Return the contained resources that refer to their container, which dom-3 allows."""
    return {str(record.get("id")) for record in inside if "#" in references(record)}


def check_forms(forms: Any, faults: Faults) -> None:
    """D-56 to D-62."""
    if not isinstance(forms, list) or not forms or not all(map(form_is_right, forms)):
        faults["presentedForm"] = 400
    elif any(len(decoded(form.get("data")) or b"") > MAX_BYTES for form in forms):
        faults["presentedForm"] = 413


def form_is_right(form: Any) -> bool:
    """Return whether an item has data and hash, or a url, each well-formed."""
    if not isinstance(form, dict):
        return False
    has_data, has_url = "data" in form, "url" in form
    return (
        (has_data or has_url)
        and (not has_data or (decoded(form["data"]) is not None and "hash" in form))
        and (not has_data or is_text(form.get("contentType")))
        and (not has_url or is_fetchable(form["url"]))
        and matches(DATE_OR_TIMED, form.get("creation"))
    )


def check_references(report: JsonObject, missing: set[str], faults: Faults) -> None:
    """D-33 to D-35."""
    if not report.get("subject"):
        faults["subject"] = 400
    elif report["subject"].get("reference") != f"Patient/{LOCAL_PATIENT}" or "patient" in missing:
        faults["subject"] = 422
    performers = report.get("performer")
    if not performers:
        faults["performer"] = 400
    elif (
        not any(x.get("reference") == f"Organization/{LOCAL_ORGANIZATION}" for x in performers)
        or "organization" in missing
    ):
        faults["performer"] = 422


def check_patient(patient: JsonObject, faults: Faults) -> None:
    """D-50 to D-52, D-68."""
    if patient.get("gender", "other") not in {"male", "female", "other"}:
        faults["patient.gender"] = 400
    if not all(map(contact_is_right, patient.get("telecom", []))):
        faults["patient.telecom"] = 400
    if not matches(re.compile(DAY), patient.get("birthDate")):
        faults["patient.birthDate"] = 400
    if not narrative_is_safe(patient.get("text")):
        faults["patient.text"] = 400


def contact_is_right(contact: JsonObject) -> bool:
    """D-51; a value without a system breaks cpt-2."""
    return (
        contact.get("system", "phone") in {"phone", "email"}
        and contact.get("use", "home") in {"home", "work", "mobile"}
        and ("system" in contact or "value" not in contact)
    )


def check_organization(organization: JsonObject, faults: Faults) -> None:
    """D-49: org-1 to org-3; D-68."""
    if not organization.get("name") and not organization.get("identifier"):
        faults["organization"] = 400
    for element in ("telecom", "address"):
        if any(item.get("use") == "home" for item in organization.get(element, [])):
            faults[f"organization.{element}"] = 400
    if not narrative_is_safe(organization.get("text")):
        faults["organization.text"] = 400


def modifiers(resource: JsonObject) -> set[str]:
    """Return the elements of a resource that hold a modifier extension or implicit rules."""
    return {
        key
        for key, value in resource.items()
        if key in {"modifierExtension", "implicitRules"} or "modifierExtension" in keys(value)
    }


# --- where docs/behaviour leaves room -----------------------------------------------------


def arguable(body: JsonObject) -> set[str]:
    """Return elements on which a refusal, or none, can both be defended."""
    patients = [
        parameter["resource"] for parameter in body["parameter"] if parameter["name"] == "patient"
    ]
    contacts = [contact for patient in patients for contact in patient.get("telecom", [])]
    # D-51 names two systems, but does not say whether there must be one.
    return {"patient.telecom"} if any("system" not in item for item in contacts) else set()


# --- small helpers -------------------------------------------------------------------------


def is_text(value: Any) -> bool:
    """Return whether a value is a string that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def matches(pattern: re.Pattern[str], value: Any) -> bool:
    """Return whether a value is absent or of this form."""
    return value is None or (isinstance(value, str) and pattern.fullmatch(value) is not None)


def decoded(data: Any) -> bytes | None:
    """Return the bytes of strict Base64, white space aside (D-62)."""
    if not isinstance(data, str):
        return None
    try:
        return base64.b64decode(re.sub(r"\s", "", data), validate=True)
    except binascii.Error:
        return None


def is_fetchable(url: Any) -> bool:
    """Return whether a url is of the accepted shape (D-57)."""
    if not isinstance(url, str) or len(url) > 2048:
        return False
    parts = urlsplit(url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


ENTITY = re.compile(r"&(?!(amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);)\w+;")
FORBIDDEN_TAGS = frozenset(
    "head body script style link meta base form input button select textarea label frame"
    " frameset iframe object embed applet param area".split()
)


def narrative_is_safe(text: Any) -> bool:
    """Return whether a narrative is one XHTML div without active content (D-68)."""
    if text is None:
        return True
    div = text.get("div") if isinstance(text, dict) else None
    if not isinstance(div, str):
        return False
    try:
        # Named entities of HTML are allowed; an XML parser without a DTD does not know them.
        root = ET.fromstring(ENTITY.sub("x", div))  # published packages
    except ET.ParseError:
        return False
    return root.tag == "{http://www.w3.org/1999/xhtml}div" and all(
        element.tag.split("}")[-1] not in FORBIDDEN_TAGS
        and not any(x.startswith("on") for x in element.attrib)
        for element in root.iter()
    )


def references(node: Any) -> Iterator[str]:
    """Return every literal reference below a node."""
    if isinstance(node, dict):
        if isinstance(node.get("reference"), str):
            yield node["reference"]
        for item in node.values():
            yield from references(item)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def keys(node: Any) -> Iterator[str]:
    """Return every property name below a node."""
    if isinstance(node, dict):
        yield from node
        for item in node.values():
            yield from keys(item)
    elif isinstance(node, list):
        for item in node:
            yield from keys(item)
