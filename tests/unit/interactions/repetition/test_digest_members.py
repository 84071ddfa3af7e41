"""The digest of a registration with members: their order and their local ids do not count."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from fhirpub.fhir.document import extract_attachments
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.repetition.digest import digest_of, is_same
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.panels import RESULTS, panel, result, specimen

LOW, HIGH = (
    result(name, value, code={"text": "-"}) for name, value in (("low", 1.5), ("high", 99.5))
)

GOLDEN = "0358509f0a7d22cd109c21335b0e4ea693294890959a5f1619f6168c62434dab56"


def digest(body: dict[str, Any]) -> bytes:
    submission = from_parameters(loads(dumps(body)), DIAGNOSTIC_REPORT)
    extract_attachments(submission.entry.resource, DIAGNOSTIC_REPORT.attachments)
    return digest_of(submission)


def named(local_id: str, value: str, **changes: Any) -> dict[str, Any]:
    return result(local_id, identifier=[{"system": RESULTS, "value": value}], **changes)


def renamed(body: dict[str, Any], **names: str) -> dict[str, Any]:
    """Return a body in which local ids are others, also where they are referred to."""
    text = json.dumps(body)
    for before, after in names.items():
        text = text.replace(f'"{before}"', f'"{after}"').replace(f"/{before}", f"/{after}")
    changed: dict[str, Any] = json.loads(text)
    return changed


def moved(body: dict[str, Any], *order: int) -> dict[str, Any]:
    """Return a body with its entries in another order."""
    return {**body, "parameter": [body["parameter"][number] for number in order]}


def test_the_order_of_members_does_not_count() -> None:
    body = panel("R-1", LOW, HIGH, result=None)

    assert digest(moved(body, 0, 1, 2, 4, 3)) == digest(body)


def test_the_order_of_members_with_identifiers_does_not_count() -> None:
    body = panel("R-1", named("a", "1"), named("b", "2"))

    assert digest(moved(body, 4, 0, 3, 2, 1)) == digest(body)


def test_members_with_one_value_in_two_systems_have_one_order() -> None:
    first = result("a", identifier=[{"system": "urn:s:1", "value": "1"}])
    second = result("b", identifier=[{"system": "urn:s:2", "value": "1"}])
    body = panel("R-1", first, second)

    assert digest(moved(body, 0, 1, 2, 4, 3)) == digest(body)


def test_local_ids_of_members_do_not_count() -> None:
    body = panel("R-1", LOW, HIGH, specimen())

    assert digest(renamed(body, low="z", high="a", blood="m")) == digest(body)


def test_local_ids_of_equal_members_do_not_count_in_their_order() -> None:
    first = {**result("a"), "code": {"text": "x"}}
    body = panel("R-1", first, {**first, "id": "b"})

    assert digest(renamed(body, a="c", b="d")) == digest(body)


def test_the_local_id_of_the_report_does_not_count_in_its_members() -> None:
    part_of = {"reference": "DiagnosticReport/r1"}
    body = panel("R-1", result("a", derivedFrom=[part_of]))

    assert digest(renamed(body, r1="r9")) == digest(body)


def test_a_reference_to_another_member_is_different() -> None:
    one, other = named("a", "1"), named("b", "2")
    to_one = panel("R-1", one, other, result=[{"reference": "Observation/a"}])
    to_other = panel("R-1", one, other, result=[{"reference": "Observation/b"}])

    assert digest(to_one) != digest(to_other)


def test_a_reference_between_members_is_part_of_the_content() -> None:
    one, other = named("a", "1"), named("b", "2")
    member = [{"reference": "Observation/b"}]

    with_it = panel("R-1", {**one, "hasMember": member}, other)
    other_way = panel("R-1", one, {**other, "hasMember": [{"reference": "Observation/a"}]})

    assert len({digest(body) for body in (panel("R-1", one, other), with_it, other_way)}) == 3


def test_another_value_of_a_member_is_different() -> None:
    assert digest(panel("R-1", LOW)) != digest(panel("R-1", {**LOW, "status": "amended"}))


def test_another_identifier_of_a_member_is_different() -> None:
    assert digest(panel("R-1", named("a", "1"))) != digest(panel("R-1", named("a", "2")))


def test_one_member_more_is_different() -> None:
    assert digest(panel("R-1", LOW)) != digest(panel("R-1", LOW, HIGH))


def test_the_same_member_twice_is_different_from_once() -> None:
    twice = panel("R-1", LOW, {**LOW, "id": "again"}, result=None)

    assert digest(panel("R-1", LOW, result=None)) != digest(twice)


def test_a_reference_that_leads_to_no_entry_is_part_of_the_content() -> None:
    bodies = [
        panel("R-1", LOW, basedOn=[{"reference": f"ServiceRequest/{id_}"}]) for id_ in ("1", "2")
    ]

    assert digest(bodies[0]) != digest(bodies[1])


def test_a_reference_by_what_is_escaped_is_one_to_the_same_entry() -> None:
    body = panel("R-1", LOW)
    text = json.dumps(body).replace('"Observation/low"', '"Observation\\/low"')

    assert digest(json.loads(text)) == digest(body)


def test_an_entry_without_a_resource_stands_in_the_digest() -> None:
    body = panel("R-1", LOW)
    more = copy.deepcopy(body)
    more["parameter"].append({"name": "note", "valueString": "x"})

    assert digest(more) != digest(body)


def test_a_digest_is_33_bytes_and_begins_with_its_form() -> None:
    found = digest(panel("R-1", LOW))

    assert (len(found), found[:1]) == (33, b"\x03")


@pytest.mark.parametrize(
    ("first", "second"), [(b"", b""), (b"\x03a", b""), (b"\x03a", b"\x02a"), (b"", b"\x03a")]
)
def test_what_has_no_digest_of_the_same_form_cannot_be_compared(
    first: bytes, second: bytes
) -> None:
    assert is_same(first, second) is None


def test_a_digest_is_the_one_that_earlier_releases_stored() -> None:
    outside = {"reference": "Organization/elsewhere"}
    body = panel("R-1", LOW, HIGH, named("a", "1", performer=[outside]), specimen())
    body["parameter"][-1]["resource"]["extension"] = [
        {"url": "urn:x", "valueReference": {"reference": "Observation/high"}}
    ]

    assert digest(body).hex() == GOLDEN
