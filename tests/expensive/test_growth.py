"""A longer request of a kind does not cost more for each of its bytes than a shorter one.

On the event loop only 64 KiB are at stake, but what grows faster than its length takes hours if
the body has all the megabytes that it may have.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tests.bodies import register_body
from tests.expensive import targets
from tests.expensive.json_bodies import Shape, bodies_of_few_values, put
from tests.expensive.measure import Work, count_calls, grows_faster
from tests.expensive.test_search import searched
from tests.expensive.texts import XHTML
from tests.expensive.xml_bodies import registration_of, xml_bodies

_PATIENT, _ORGANIZATION, _REPORT = range(3)
_SMALL, _TIMES, _SLACK = 60_000, 12, 3
_FEW, _MANY = 150, 600
_COUNTED_ONCE = 30_000
"""Calls that a larger body may take once, such as to explain what is wrong."""

KINDS: dict[str, tuple[int, str, Any]] = {
    "extensions": (_REPORT, "extension", {"url": "a:b", "valueCode": "a"}),
    "extensions without a value": (_REPORT, "extension", {"url": "a:b"}),
    "modifiers": (_REPORT, "modifierExtension", {"url": "a:b", "valueCode": "a"}),
    "codings": (_REPORT, "code.coding", {"system": "a:b", "code": "a"}),
    "codings without a code": (_REPORT, "code.coding", {"system": "a:b"}),
    "categories": (_REPORT, "category", {"coding": [{"system": "a:b", "code": "a"}]}),
    "references to nothing": (_REPORT, "performer", {"reference": "Patient/x", "type": "Group"}),
    "references to what may be held": (
        _REPORT,
        "performer",
        {"reference": "Patient/5e0b4f7a-8a38-4d07-9a6c-0d1e4c0f7a11"},
    ),
    "references to what is not contained": (_REPORT, "performer", {"reference": "#a"}),
    "contained resources": (
        _REPORT,
        "contained",
        {"resourceType": "Basic", "id": "a", "code": {}, "subject": {"reference": "#a"}},
    ),
    "contained resources of no type": (_REPORT, "contained", {"resourceType": "Nonsense"}),
    "contained patients": (
        _REPORT,
        "contained",
        {"resourceType": "Patient", "id": "a", "link": [{"other": {"reference": "#"}}]},
    ),
    "narratives": (
        _REPORT,
        "contained",
        {
            "resourceType": "Patient",
            "id": "a",
            "text": {
                "status": "additional",
                "div": f'<div xmlns="{XHTML}"><p style="position:fixed">a</p></div>',
            },
        },
    ),
    "documents without a hash": (_REPORT, "presentedForm", {"data": "QQ=="}),
    "documents by URL": (_REPORT, "presentedForm", {"url": "http://a/b", "contentType": "a"}),
    "times without an offset": (
        _REPORT,
        "presentedForm",
        {"url": "http://a/b", "creation": "2026-01-01T00:00:00+01:00"},
    ),
    "periods": (_PATIENT, "identifier", {"period": {"start": "2026-02", "end": "2026-01"}}),
    "identifiers of a type": (
        _PATIENT,
        "identifier",
        {"type": {"coding": [{"code": "PPN"}]}, "value": "a"},
    ),
    "identifiers of an organization": (_ORGANIZATION, "identifier", {"system": "http://a/b"}),
    "names": (_PATIENT, "name", {"given": ["a"], "use": "old"}),
    "telecoms": (_PATIENT, "telecom", {"system": "fax", "value": "a"}),
    "contacts": (_PATIENT, "contact", {"gender": "male"}),
    "links": (_PATIENT, "link", {"other": {"reference": "a:b"}, "type": "seealso"}),
    "unknown members": (_REPORT, "extension", {"url": "a:b", "unknown": 1}),
    "nulls": (_REPORT, "extension", None),
}


@pytest.mark.parametrize(("entry", "path", "item"), KINDS.values(), ids=KINDS)
def test_an_item_takes_as_many_calls_among_many_as_among_few(
    entry: int, path: str, item: Any
) -> None:
    def calls(count: int) -> int:
        body = register_body("A-1")
        resource = body["parameter"][entry]["resource"]
        numbered = [item | {"id": f"a{n}"} if item else item for n in range(count)]
        put(resource, path, numbered)
        work = targets.registration(json.dumps(body).encode())
        count_calls(work)
        return count_calls(work)[0]

    assert calls(_MANY) < _MANY / _FEW * 1.25 * calls(_FEW) + _COUNTED_ONCE


@given(shape=bodies_of_few_values())
@searched(8)
def test_a_body_of_few_values_takes_no_longer_for_each_byte_if_it_has_more(shape: Shape) -> None:
    assert not _is_steep(lambda size: targets.registration(shape(size)))


@given(shape=xml_bodies())
@searched(8)
def test_a_body_of_xml_takes_no_longer_for_each_byte_if_it_has_more(shape: Shape) -> None:
    assert not _is_steep(lambda size: targets.registration(shape(size), is_xml=True))


def marked(size: int) -> Work:
    """Return a registration with combining marks in the order that takes longest to sort."""
    marks = f"{chr(0x315) * (size // 4)}{chr(0x334) * (size // 4)}"
    body = register_body("A-1")
    body["parameter"][_ORGANIZATION]["resource"]["identifier"] = [{"system": f"http://{marks}"}]
    return targets.registration(json.dumps(body, ensure_ascii=False).encode())


def test_marks_in_the_system_of_an_identifier_take_no_longer_if_there_are_more() -> None:
    assert not grows_faster(marked, small=5_000, times=_TIMES, slack=_SLACK)


def namespaced(size: int) -> Work:
    """Return a registration in XML whose elements are in a namespace of a long name."""
    elements = "<q:a/>" * (size // 12)
    body = registration_of(f'<text xmlns:q="{"u" * (size // 2)}">{elements}</text>')
    return targets.registration(body, is_xml=True)


def test_the_name_of_a_namespace_is_not_read_for_each_element() -> None:
    assert not grows_faster(namespaced, small=10_000, times=_TIMES, slack=_SLACK)


def _is_steep(of_size: Any) -> bool:
    return grows_faster(of_size, small=_SMALL, times=_TIMES, slack=_SLACK)
