"""XML on its way out: order, escapes, indents, and what stands beside a value."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import NotExpressible
from fhirpub.fhir.document import marker
from fhirpub.fhir.xml.writer import write_xml

HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def inside(**members: Any) -> str:
    written = write_xml({"resourceType": "Patient", **members}).decode()
    assert written.startswith(f'{HEAD}<Patient xmlns="http://hl7.org/fhir">')
    assert written.endswith("</Patient>")
    return written.removeprefix(f'{HEAD}<Patient xmlns="http://hl7.org/fhir">')[
        : -len("</Patient>")
    ]


def test_elements_stand_in_the_order_of_r4() -> None:
    assert inside(gender="male", active=True) == '<active value="true"/><gender value="male"/>'


def test_what_could_be_markup_is_escaped_once() -> None:
    written = inside(language="&<>\"'\t\n\r&amp;")

    assert written == '<language value="&amp;&lt;&gt;&quot;\'&#9;&#10;&#13;&amp;amp;"/>'


def test_an_id_is_an_attribute_but_of_a_resource() -> None:
    written = inside(id="a", name=[{"id": 'b"', "text": "c"}])

    assert written == '<id value="a"/><name id="b&quot;"><text value="c"/></name>'


def test_the_url_of_an_extension_is_an_attribute() -> None:
    written = inside(extension=[{"url": "u:a", "valueBoolean": False}])

    assert written == '<extension url="u:a"><valueBoolean value="false"/></extension>'


def test_the_id_and_the_url_of_an_extension_are_both_attributes() -> None:
    written = inside(extension=[{"id": "e", "url": "u:a", "valueCode": "b"}])

    assert written == '<extension id="e" url="u:a"><valueCode value="b"/></extension>'


def test_siblings_behind_the_last_value_are_written() -> None:
    beside = {"extension": [{"url": "u:a"}]}

    assert inside(name=[{"given": ["A"], "_given": [None, beside]}]) == (
        '<name><given value="A"/><given><extension url="u:a"/></given></name>'
    )


def test_what_stands_beside_a_value_is_below_its_element() -> None:
    written = inside(gender="male", _gender={"id": "a", "extension": [{"url": "u:a"}]})

    assert written == '<gender id="a" value="male"><extension url="u:a"/></gender>'


def test_values_of_a_list_keep_their_own_siblings() -> None:
    beside = {"extension": [{"url": "u:a"}]}
    name = {"given": ["A", None, "B"], "_given": [None, beside]}

    assert inside(name=[name]) == (
        '<name><given value="A"/><given><extension url="u:a"/></given><given value="B"/></name>'
    )


def test_a_contained_resource_is_wrapped_without_a_namespace_of_its_own() -> None:
    written = inside(contained=[{"resourceType": "Device", "id": "d"}])

    assert written == '<contained><Device><id value="d"/></Device></contained>'


def test_the_marker_of_a_document_comes_out_as_it_is() -> None:
    stands = marker("a" * 64, 5)

    assert inside(photo=[{"data": stands}]) == f'<photo><data value="{stands}"/></photo>'


def test_indented_xml_has_two_blanks_a_level_and_an_end_of_line() -> None:
    resource = {"resourceType": "Patient", "name": [{"text": "a"}]}

    assert write_xml(resource, pretty=True).decode().splitlines() == [
        HEAD,
        '<Patient xmlns="http://hl7.org/fhir">',
        "  <name>",
        '    <text value="a"/>',
        "  </name>",
        "</Patient>",
    ]
    assert write_xml(resource, pretty=True).endswith(b">\n")


def test_an_empty_object_is_not_written() -> None:
    nothings: list[Any] = [{}, None]
    for nothing in nothings:
        with pytest.raises(NotExpressible) as caught:
            inside(name=[nothing])
        assert caught.value.place == "name[0]"


@pytest.mark.parametrize("character", ["\ufffe", "\uffff"])
def test_a_character_that_xml_does_not_have_is_not_written(character: str) -> None:
    with pytest.raises(NotExpressible):
        inside(language=f"a{character}")


def test_a_whole_number_is_not_written_as_a_decimal() -> None:
    assert inside(multipleBirthInteger=2) == '<multipleBirthInteger value="2"/>'
    for wrong in (2.0, True, "2"):
        with pytest.raises(NotExpressible):
            inside(multipleBirthInteger=wrong)


def test_a_narrative_is_written_as_the_markup_that_it_is() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml"><p>a &amp; b</p></div>'

    written = inside(text={"status": "generated", "div": div})

    assert written == f'<text><status value="generated"/>{div}</text>'
