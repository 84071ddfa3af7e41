"""What the versions of a SQLite store are found by in its index."""

from __future__ import annotations

import pytest

from fhirpub.storage.criteria import EARLIEST, LATEST, SearchValue, encode, field_number
from fhirpub.storage.sqlite import entries
from fhirpub.storage.sqlite.entries import fields_of, index_entries
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, new_id, new_member_id


def numbers(*names: str, tenant: str = LAB, type_name: str = REPORT) -> list[int]:
    """Return the numbers of fields."""
    return [field_number(tenant, type_name, name) for name in names]


def entries_of(*values: SearchValue, tenant: str = LAB, **changes: object) -> list[entries.Entry]:
    """Return the entries of a report with values."""
    return index_entries(tenant, a_version(search=encode(values), **changes))


def test_a_text_is_found_by_itself() -> None:
    (code,) = numbers("code")

    assert entries_of(("code", "1-8", "http://loinc.org")) == [(code, "1-8")]


def test_a_range_is_found_by_its_end() -> None:
    (date,) = numbers("date")

    assert entries_of(("date", 10, 20)) == [(date, 20)]


def test_a_range_that_begins_at_0_or_before_is_found_too() -> None:
    (date,) = numbers("date")

    found = entries_of(("date", 0, 7), ("date", -5, -1), ("date", EARLIEST, 0))

    assert found == [(date, 7), (date, -1), (date, 0)]


def test_a_range_without_an_end_is_found_by_the_latest_moment() -> None:
    (date,) = numbers("date")

    assert entries_of(("date", 1, LATEST)) == [(date, LATEST)]


def test_a_value_of_a_system_alone_has_no_entry() -> None:
    assert entries_of(("code", "", "http://loinc.org")) == []


def test_a_value_without_its_second_half_has_no_entry() -> None:
    (code,) = numbers("code")

    found = entries_of(("code", "a", None), ("code", "b", ""))

    assert found == [(code, "b")]


def test_entries_stand_in_the_order_of_their_values() -> None:
    code, name = numbers("code", "name")

    found = entries_of(("name", "b", ""), ("code", "a", ""), ("name", "a", ""))

    assert found == [(name, "b"), (code, "a"), (name, "a")]


def test_entries_are_those_of_the_tenant_and_of_the_type() -> None:
    value = ("code", "a", "")

    ((ours, _),) = entries_of(value)
    ((theirs, _),) = entries_of(value, tenant=OTHER)
    ((other, _),) = entries_of(value, type="Observation")

    assert [ours] == numbers("code")
    assert [theirs] == numbers("code", tenant=OTHER)
    assert [other] == numbers("code", type_name="Observation")


def _with_member(*values: SearchValue, member_id: str) -> list[entries.Entry]:
    member = a_version(id=member_id, type="Observation", system="", value="")
    return entries_of(*values, members=(member,))


def test_a_version_is_not_found_by_the_members_that_it_brings() -> None:
    member_id = new_member_id()

    assert _with_member(("result", member_id, "Observation"), member_id=member_id) == []


@pytest.mark.parametrize("kind", ["Patient", ""])
def test_a_version_is_found_by_what_has_the_id_of_a_member_and_another_type(kind: str) -> None:
    member_id = new_member_id()

    found = _with_member(("result", member_id, kind), member_id=member_id)

    assert found == [(*numbers("result"), member_id)]


def test_a_version_is_found_by_members_that_it_does_not_bring() -> None:
    other = new_member_id()

    found = _with_member(("result", other, "Observation"), member_id=new_member_id())

    assert found == [(*numbers("result"), other)]


def test_a_version_is_found_by_what_comes_with_it_under_an_id_of_its_own() -> None:
    alone = new_id()

    found = _with_member(("subject", alone, "Observation"), member_id=alone)

    assert found == [(*numbers("subject"), alone)]


def test_the_number_of_a_field_is_found_once() -> None:
    fields = fields_of(new_id(), REPORT)

    assert fields["code"] == fields["code"]
    assert [*fields] == ["code"]


def test_the_names_that_are_remembered_of_a_type_are_bounded() -> None:
    tenant = new_id()
    fields = fields_of(tenant, REPORT)
    names = [f"value-{number}" for number in range(2_005)]

    found = [fields[name] for name in names]

    assert found == numbers(*names, tenant=tenant)
    assert len(fields) == 2_000


def test_fields_of_a_tenants_type_are_remembered_together() -> None:
    tenant = new_id()

    assert fields_of(tenant, REPORT) is fields_of(tenant, REPORT)
    assert fields_of(tenant, REPORT) is not fields_of(tenant, "Observation")
