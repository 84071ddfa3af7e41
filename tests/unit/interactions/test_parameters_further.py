"""Search values of elements beside others: of parts, of pairs, and of what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import TooLarge
from fhirpub.interactions.indexing import limits
from fhirpub.plugin_api import SearchParameter, r4_composite, r4_parameter
from fhirpub.storage.criteria import decode, encode
from tests.unit.interactions.test_parameters_parts import (
    CODE,
    CONCEPT,
    ID,
    SUBJECT,
    TENANT,
    UPPER,
    person,
    resource,
    searched,
)

DATE = r4_parameter("Observation-value-date", "date", "valueDateTime", "valuePeriod")
OF_DATE = r4_composite("Observation-code-value-date", "code", "value-date")
A = {"coding": [{"system": "s", "code": "a"}]}


@pytest.mark.parametrize(("version_id", "code"), [("1", ""), ("another.1", "p1")])
def test_only_a_part_of_the_resource_alone_stands_without_its_id(
    version_id: str, code: str
) -> None:
    it = searched(SUBJECT)

    values = it.values(
        resource(subject={"reference": "Patient/p1"}), {"patient": person(version_id)}
    )

    assert ("subject", code, "Patient") in decode(values)


@pytest.mark.parametrize(("length", "is_refused"), [(10, False), (300, True)])
def test_a_later_version_must_not_have_longer_values_than_a_resource_may(
    monkeypatch: pytest.MonkeyPatch, length: int, *, is_refused: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCH_BYTES", 200)
    it = searched(search=(CODE,))
    before = encode([("code", "a", "s")])
    later = resource(2, code={"coding": [{"system": "s", "code": "a" * length}]})

    if is_refused:
        with pytest.raises(TooLarge):
            it.next_values(later, before, TENANT)
    else:
        assert len(decode(it.next_values(later, before, TENANT))) == 1


def test_a_later_version_may_have_values_as_long_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCH_BYTES", 200)
    it = searched(search=(CODE,))
    code = {"coding": [{"system": "s", "code": "a" * 300}]}
    before = it.values(resource(code=code), {}, limited=False)

    assert it.next_values(resource(2, code=code), before, TENANT) == before


@pytest.mark.parametrize(
    "value",
    [
        {"valueDateTime": "2026-11-20"},
        {"valuePeriod": {"start": "2026-11-20", "end": "2026-11-21"}},
    ],
)
def test_a_pair_is_made_of_whichever_form_a_value_has(value: dict[str, Any]) -> None:
    it = searched(search=(CODE, DATE, OF_DATE))

    names = [name for name, *_ in decode(it.values(resource(code=A, **value), {}))]

    assert len([name for name in names if name.startswith("$")]) == 1


def test_an_element_without_a_value_is_told_from_none_beside_others() -> None:
    it = searched(search=(CODE, CONCEPT))
    words = {"text": "grey"}

    with_words = decode(it.values(resource(code=A, valueCodeableConcept=words), {}))

    assert with_words == [("code", "a", "s"), ("valueCodeableConcept", None, None)]
    assert decode(it.values(resource(code=A), {})) == [("code", "a", "s")]


def test_only_identifiers_that_can_be_the_key_stand_in_the_form_of_keys() -> None:
    label = SearchParameter(name="accession", type="token", paths=("accessionIdentifier",))
    it = searched(search=(label,), identifier=UPPER, type_name="Specimen")
    one = {"system": "s", "value": "a"}

    found = it.values(resource(status="final", identifier=[one], accessionIdentifier=one), {})

    values = decode(found)
    assert ("identifiers", "A", "s") in values
    assert ("accessionIdentifier", "a", "s") in values
    assert [one[1] for one in values if one[0] == "status"] == ["final"]


def test_the_only_part_of_its_type_leads_to_its_resource_beside_members_of_that_type() -> None:
    relative = replace(SUBJECT, name="relative", referred_by="focus", repeats=True)
    it = searched(SUBJECT, relative)

    assert it.own_part("Patient", ID, TENANT) == TENANT.part_id(ID, "patient")
    assert [*it.owners("Patient", ID, TENANT)] == [
        *searched(SUBJECT).owners("Patient", ID, TENANT)
    ]
