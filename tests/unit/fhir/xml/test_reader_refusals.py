"""What XML can say and JSON cannot, and bodies that are no resource in XML: all are refused."""

from __future__ import annotations

import pytest

from tests.unit.fhir.xml.reading import words, xml

ORDER = "the order is fixed in XML"
REFUSED = {
    "an element that R4 does not have": (
        '<nickname value="a"/>',
        [("Patient", "has elements that FHIR R4 does not have here: nickname")],
    ),
    "an element with a name of no FHIR": (
        "<ñ/>",
        [("Patient", "has unknown elements")],
    ),
    "the wrong order": (
        '<gender value="male"/><active value="true"/>',
        [("Patient.active", f"must stand before gender: {ORDER}")],
    ),
    "the wrong order twice": (
        '<birthDate value="1980"/><active value="true"/><gender value="male"/>',
        [
            ("Patient.active", f"must stand before birthDate: {ORDER}"),
            ("Patient.gender", f"must stand before birthDate: {ORDER}"),
        ],
    ),
    "a list that is interrupted": (
        '<name><given value="a"/></name><gender value="male"/><name><text value="b"/></name>',
        [("Patient.name[1]", f"must stand before gender: {ORDER}")],
    ),
    "an extension after the value's own": (
        '<maritalStatus><text value="a"/><extension url="u:a"/></maritalStatus>',
        [("Patient.maritalStatus.extension[0]", f"must stand before text: {ORDER}")],
    ),
    "a repetition": (
        '<birthDate value="1980"/><birthDate value="1980"/>',
        [("Patient.birthDate", "must not repeat")],
    ),
    "a primitive without a value": (
        "<active/>",
        [("Patient.active", "needs a value or an extension")],
    ),
    "an attribute that R4 does not have": (
        '<active value="true" xml:lang="es"/>',
        [("Patient.active", "has unknown attributes")],
    ),
    "an attribute that calls for another type": (
        '<active value="true" type="x"/>',
        [("Patient.active", "has attributes that FHIR R4 does not have here: type")],
    ),
    "an id of a resource as an attribute": (
        "<contained><Patient id='a'/></contained>",
        [("Patient.contained[0]", "has attributes that FHIR R4 does not have here: id")],
    ),
    "text": (
        "<name>Ana</name>",
        [("Patient.name[0]", "must not hold text: FHIR's XML has values in attributes")],
    ),
    "text between elements": (
        '<active value="true"/>a',
        [("Patient", "must not hold text: FHIR's XML has values in attributes")],
    ),
    "text in a section": (
        "<active value='true'><![CDATA[a]]></active>",
        [("Patient.active", "must not hold text: FHIR's XML has values in attributes")],
    ),
    "text in a primitive": (
        "<active value='true'>a</active>",
        [("Patient.active", "must not hold text: FHIR's XML has values in attributes")],
    ),
    "text beside an extension of a primitive": (
        '<active value="true"><extension url="u:a"/>a</active>',
        [("Patient.active", "must not hold text: FHIR's XML has values in attributes")],
    ),
    "another namespace": (
        '<active xmlns="urn:x" value="true"/>',
        [("Patient.active", "must be in the namespace http://hl7.org/fhir")],
    ),
    "a narrative in no namespace of its own": (
        '<text><status value="generated"/><div>a</div></text>',
        [("Patient.text.div", "must be a div in the namespace http://www.w3.org/1999/xhtml")],
    ),
    "an empty wrapper": (
        "<contained/>",
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "two in a wrapper": (
        "<contained><Patient/><Patient/></contained>",
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "two of different types in a wrapper": (
        "<contained><Patient/><Device/></contained>",
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "no resource in a wrapper": (
        "<contained><HumanName/></contained>",
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "a name of no type in a wrapper": (
        "<contained><Nothing/></contained>",
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "another namespace in a wrapper": (
        '<contained><Organization xmlns="urn:a"/></contained>',
        [("Patient.contained[0]", "must hold one resource of FHIR R4")],
    ),
    "several problems, in one of several forms": (
        '<deceasedBoolean value="true"><a/></deceasedBoolean><b/><link><other/>c</link>',
        [
            ("Patient.deceased", "has elements that FHIR R4 does not have here: a"),
            ("Patient.link[0]", "must not hold text: FHIR's XML has values in attributes"),
            ("Patient", "has elements that FHIR R4 does not have here: b"),
        ],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_json_could_not_say_is_refused_with_its_place(case: str) -> None:
    inside, expected = REFUSED[case]

    assert words(xml(inside)) == expected


NOT_WELL_FORMED = "the body is not well-formed XML"
WHOLE = {
    "nothing": (b"", "the body is empty"),
    "JSON": (b'{"resourceType":"Patient"}', "the body is JSON, whose Content-Type is"),
    "an end that is missing": (b'<Patient xmlns="http://hl7.org/fhir">', NOT_WELL_FORMED),
    "two roots": (xml("") * 2, NOT_WELL_FORMED),
    "an attribute twice": (xml('<active value="true" value="true"/>'), NOT_WELL_FORMED),
    "a prefix that is not declared": (xml("<x:active/>"), NOT_WELL_FORMED),
    "a control character": (xml('<language value="&#1;"/>'), NOT_WELL_FORMED),
    "bytes that are no UTF-8": (xml("").replace(b"><", b">\xff<"), "the body is not UTF-8: byte"),
    "UTF-16": (xml("").decode().encode("utf-16"), "the body is UTF-16"),
    "another encoding": (
        xml("", head='<?xml version="1.0" encoding="ISO-8859-1"?>'),
        "the body must be UTF-8",
    ),
    "another encoding far behind": (
        xml("", head=f'<?xml version="1.0"{" " * 300}encoding="ISO-8859-1"?>'),
        "the body must be UTF-8",
    ),
    "another encoding behind a byte order mark": (
        xml("", head='\ufeff<?xml version="1.0" encoding="ISO-8859-1"?>'),
        "the body must be UTF-8",
    ),
    "a document type": (
        xml("", head="<!DOCTYPE Patient>"),
        "the body must not have a document type (DTD)",
    ),
    "a document type behind a comment": (
        xml("", head="<!-- <a> --><?b?>\n<!DOCTYPE Patient>"),
        "the body must not have a document type (DTD)",
    ),
    "a document type behind what only looks like a comment": (
        xml('<language value="-->"/>', head="<?b <!-- ?><!DOCTYPE a [<!ENTITY e 'f'>]>"),
        "the body must not have a document type (DTD)",
    ),
    "a document type in the root": (xml("<!DOCTYPE Patient>"), NOT_WELL_FORMED),
    "a document type behind the root": (xml("") + b"<!DOCTYPE Patient>", NOT_WELL_FORMED),
    "an entity that is a file": (
        xml(
            '<language value="&e;"/>',
            head='<!DOCTYPE Patient [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
        ),
        "the body must not have a document type (DTD)",
    ),
    "an entity that grows": (
        xml('<language value="&e;"/>', head='<!DOCTYPE a [<!ENTITY e "&f;&f;"><!ENTITY f "f">]>'),
        "the body must not have a document type (DTD)",
    ),
    "an entity of HTML": (
        xml('<language value="&nbsp;"/>'),
        "the body uses an entity that XML does not have",
    ),
    "no namespace": (b"<Patient/>", "the body must be a resource of FHIR R4"),
    "another namespace": (
        xml("").replace(b"hl7.org/fhir", b"hl7.org/v3"),
        "the body must be a resource of FHIR R4",
    ),
    "no resource": (xml("", name="HumanName"), "the body must be a resource of FHIR R4"),
    "an abstract type": (xml("", name="DomainResource"), "the body must be a resource of FHIR R4"),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_body_that_is_no_resource_in_xml_is_refused_without_its_text(case: str) -> None:
    raw, expected = WHOLE[case]

    [(place, message)] = words(raw)

    assert place == ""
    assert message.startswith(expected)
