"""Elements of XML on their way in: their order, what they hold, and what may stand before them."""

from __future__ import annotations

import pytest

from fhirpub.fhir import strict_json
from fhirpub.fhir.strict_json import loads
from fhirpub.fhir.xml import reader
from fhirpub.fhir.xml.reader import read_xml
from tests.unit.fhir.xml.reading import refused, words, xml

MARK = "\ufeff"
PRIMITIVE = '<birthDate value="2000-01-01"'
QUOTED = "<!-- <!DOCTYPE a> -->"


def codes(raw: bytes) -> list[str]:
    return [str(issue.details) for issue in refused(raw)]


@pytest.mark.parametrize(
    "head",
    ["", MARK, "<!-- a -->", f"{MARK}<!-- a -->", "<?xml version='1.0'?>\n", " <?a b?>\t"],
)
def test_words_about_a_document_type_inside_of_the_root_are_none(head: str) -> None:
    assert read_xml(xml(QUOTED, head=head)) == {"resourceType": "Patient"}


@pytest.mark.parametrize("head", ["", MARK, "<!-- a -->"])
def test_a_document_type_before_the_root_is_refused(head: str) -> None:
    said = words(xml("", head=f"{head}<!DOCTYPE Patient>"))

    assert said == [("", "the body must not have a document type (DTD)")]


@pytest.mark.parametrize("text", ["1.50", "-0.0", "1E3", "100000000000000000000.1"])
def test_a_decimal_is_the_number_that_json_reads(text: str) -> None:
    raw = xml(f'<valueQuantity><value value="{text}"/></valueQuantity>', name="Observation")

    assert read_xml(raw)["valueQuantity"] == {"value": loads(text.encode())}


@pytest.mark.parametrize("name", ["Organization", "Practitioner"])
def test_a_contained_resource_is_read_with_its_type(name: str) -> None:
    raw = xml(f'<contained><{name}><id value="a"/></{name}></contained>')

    assert read_xml(raw)["contained"] == [{"resourceType": name, "id": "a"}]


def test_an_element_that_there_may_be_several_of_is_named_by_its_number() -> None:
    said = words(xml('<name><family value="a"/></name><name>b</name>'))

    assert [place for place, _rule in said] == ["Patient.name[1]"]


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("<birthDate/>", "value-empty"),
        ("<nothing/>", "element-unknown"),
        ('<active value="true" nothing="1"/>', "element-unknown"),
        ("<text><status value='empty'/><div xmlns='urn:a'/></text>", "narrative-invalid"),
        ("text", "element-malformed"),
    ],
)
def test_each_problem_has_its_code(inside: str, code: str) -> None:
    assert codes(xml(inside)) == [code]


@pytest.mark.parametrize("body", [b'<Nothing xmlns="http://hl7.org/fhir"/>', b"<Patient/>"])
def test_what_is_no_resource_of_fhir_is_malformed(body: bytes) -> None:
    assert codes(body) == ["xml-malformed"]


def test_an_attribute_that_only_extensions_have_is_refused_elsewhere() -> None:
    extension = '<extension url="urn:a"><valueString value="b"/></extension>'
    [(place, rule)] = words(xml(f'<name url="urn:a" id="n">{extension}</name>'))

    assert (place, rule.partition(" that")[0]) == ("Patient.name[0]", "has attributes")


def test_an_id_and_a_url_of_an_extension_are_read() -> None:
    extension = '<extension id="e" url="urn:a"><valueString value="b"/></extension>'

    assert read_xml(xml(extension))["extension"] == [
        {"id": "e", "url": "urn:a", "valueString": "b"}
    ]


def test_where_schemas_are_is_no_attribute_of_the_resource() -> None:
    where = (
        ' xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:schemaLocation="a b"'
        ' x:noNamespaceSchemaLocation="c"'
    )

    assert read_xml(xml("", more=where)) == {"resourceType": "Patient"}


def test_blanks_between_elements_are_no_text() -> None:
    assert read_xml(xml(f" \t\r\n{PRIMITIVE}/>\n")) == {
        "resourceType": "Patient",
        "birthDate": "2000-01-01",
    }


@pytest.mark.parametrize("inside", ["a", f"a{PRIMITIVE}/>", "\u00a0"])
def test_text_beside_elements_is_refused(inside: str) -> None:
    said = words(xml(inside))

    assert said == [("Patient", "must not hold text: FHIR's XML has values in attributes")]


def test_elements_are_not_read_as_deep_as_a_body_can_nest_them() -> None:
    deep = '<extension url="urn:a">' * 2_000 + "</extension>" * 2_000

    assert codes(xml(deep)) == ["body-too-complex"]


def test_contained_resources_are_not_read_as_deep_as_a_body_can_nest_them() -> None:
    deep = "<contained><Patient>" * 900 + "</Patient></contained>" * 900

    assert codes(xml(deep)) == ["body-too-complex"]


def test_a_type_by_xml_schema_is_an_attribute_that_no_element_has() -> None:
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

    assert words(xml(f'<active {xsi} value="true" xsi:type="x"/>')) == [
        ("Patient.active", "has unknown attributes")
    ]


def test_json_is_named_as_what_it_is() -> None:
    [(_place, rule)] = words(b' {"resourceType": "Patient"}')

    assert rule.startswith("the body is JSON, whose Content-Type is application/fhir+json")


def test_an_entity_that_xml_does_not_have_is_named_with_its_line() -> None:
    [(_place, rule)] = words(xml("\n&nbsp;"))

    assert rule.startswith("the body uses an entity that XML does not have (line 2, ")


def test_a_body_may_not_have_more_values_than_one_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    body = xml('<name><given value="a"/><given value="b"/></name>')
    monkeypatch.setattr(strict_json, "MAX_NODES", 6)
    assert read_xml(body)["name"] == [{"given": ["a", "b"]}]

    monkeypatch.setattr(strict_json, "MAX_NODES", 5)
    assert codes(body) == ["body-too-complex"]


@pytest.mark.parametrize("allowed", [7, 6])
def test_a_body_with_too_many_signs_of_markup_is_not_parsed(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MAX_MARKUP_TOKENS", allowed)
    body = xml("<name><given/><given/><given/></name>")  # seven signs

    assert codes(body) == (["body-too-complex"] if allowed < 7 else ["value-empty"] * 3)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (xml('<active value="true"/>', more=' id="a"'), "Patient"),
        (xml('<contained><Device id="a"/></contained>'), "Patient.contained[0]"),
        (xml('<contained id="a"><Device/></contained>'), "Patient.contained[0]"),
    ],
)
def test_a_resource_has_no_attributes(body: bytes, place: str) -> None:
    assert [(one.expression, str(one.details)) for one in refused(body)] == [
        (place, "element-unknown")
    ]


@pytest.mark.parametrize(
    ("levels", "problems"),
    [(15, []), (40, ["body-too-complex"]), (900, ["body-too-complex"])],
)
def test_extensions_of_values_nest_no_deeper_than_other_elements(
    levels: int, problems: list[str]
) -> None:
    opening, end = '<extension url="u:a"><valueString>', "</valueString></extension>"
    inner = '<extension url="u:a"><valueString value="b"/></extension>'
    body = xml(f"{opening * levels}{inner}{end * levels}")

    if problems:
        assert codes(body) == problems
    else:
        assert read_xml(body)["extension"]


def test_of_many_problems_a_hundred_are_reported() -> None:
    assert len(words(xml("<name><a/></name>" * 101))) == 100
