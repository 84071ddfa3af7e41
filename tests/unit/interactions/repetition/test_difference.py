"""The names of the elements in which a repetition differs from what is registered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.repetition.difference import differing_elements, differing_names
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import a_version
from tests.bodies import patient, report

META = {"versionId": "1", "lastUpdated": "2026-11-20T10:00:00.000Z"}


def stored(of_patient: dict[str, Any] | None = None, **changes: Any) -> Version:
    resource = report("R-1", **{"meta": META, **changes})
    person = patient(**{"meta": META, **(of_patient or {})})
    return a_version(body=dumps(resource), parts=dumps({"patient": person}))


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (stored(), ()),
        (stored(meta={**META, "lastUpdated": "2026-11-21T10:00:00.000Z"}), ()),
        (stored(meta={**META, "tag": [{"code": "x"}]}), ("meta",)),
        (stored(conclusion="MALIGNANT"), ("conclusion",)),
        (stored(conclusion=None), ("conclusion",)),
        (stored(_conclusion={"id": "c"}, conclusion="x"), ("conclusion",)),
        (stored(effectiveDateTime="2026-11-20T11:00:00+01:00"), ()),
        (stored({"birthDate": "1951-01-01"}), ("patient.birthDate",)),
        (stored({"deceasedDateTime": "2026-11-20T11:00:00+01:00"}), ("patient.deceasedDateTime",)),
        (stored({"meta": {**META, "lastUpdated": "2026-11-21T10:00:00.000Z"}}), ()),
        (
            a_version(body=stored(status="partial").body, parts=b"{}"),
            ("patient", "status"),
        ),
    ],
)
def test_the_elements_that_differ_are_named(other: Version, names: tuple[str, ...]) -> None:
    assert differing_elements(stored(), other) == names
    assert differing_elements(other, stored()) == names


def test_what_the_digest_does_not_count_is_not_named() -> None:
    first = stored({"deceasedDateTime": "2026-11-20T10:00:00Z"})
    second = stored({"deceasedDateTime": "2026-11-20T11:00:00+01:00"})

    assert differing_elements(first, second) == ()


def member(id_: str, **changes: Any) -> Version:
    resource = {"resourceType": "Observation", "id": id_, "meta": META, "status": "final"}
    return a_version(id=id_, type="Observation", body=dumps({**resource, **changes}))


def with_members(*members: Version) -> Version:
    return replace(stored(), members=members)


def test_what_differs_in_a_member_is_named_with_its_type() -> None:
    first = with_members(member("a"), member("b"))
    second = with_members(member("b", valueString="x", status="amended"), member("a"))

    names = ("Observation.status", "Observation.valueString")
    assert differing_elements(first, second) == names


def test_what_differs_in_several_members_is_named_once() -> None:
    first = with_members(member("a"), member("b"))
    second = with_members(member("a", status="amended"), member("b", status="amended"))

    assert differing_elements(first, second) == ("Observation.status",)


def test_a_member_that_only_one_of_them_has_is_not_compared() -> None:
    first, second = with_members(member("a")), with_members(member("b", status="amended"))

    assert differing_elements(first, second) == ()
    assert differing_elements(stored(), second) == ()


def test_the_ids_versions_and_times_of_the_server_are_no_difference() -> None:
    meta = {"versionId": "2", "lastUpdated": "2026-11-21T10:00:00.000Z", "source": "a"}
    first = {"id": "a", "meta": {**META, "source": "a"}}

    assert [*differing_names(first, {"id": "b", "meta": meta})] == []
    assert [*differing_names(first, {"id": "b", "meta": {**meta, "source": "b"}})] == ["meta"]


def test_the_extensions_of_an_element_have_its_name() -> None:
    first, second = {"meta": {}, "_status": {"id": "x"}}, {"meta": {}, "status": "final"}

    assert [*differing_names(first, second)] == ["status", "status"]


def test_names_are_in_alphabetical_order() -> None:
    second = stored({"gender": "male"}, status="amended", conclusion="x", category=None)

    assert differing_elements(stored(), second) == (
        "category",
        "conclusion",
        "patient.gender",
        "status",
    )
