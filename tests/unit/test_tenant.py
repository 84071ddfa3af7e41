"""Ids are derived from a tenant's salt: a store keeps them, so no release may change them."""

from __future__ import annotations

import pytest

from fhirpub.sealed import MARK, SaltUnavailable
from fhirpub.tenant import Tenant, is_member_id

TENANT = Tenant("t", "Lab", bytes(range(32)), 1)
REPORT = "ba0bfdd8-6ed4-4655-a465-b7ed5e2804e8"


def test_an_identifier_has_the_id_that_it_had_in_every_release() -> None:
    system = "https://lab.example/reports"

    assert TENANT.resource_id("DiagnosticReport", system, "A-1") == REPORT
    beyond_ascii = TENANT.resource_id("DiagnosticReport", system, 'A "é"/1')
    assert beyond_ascii == "18b2a695-9591-4bea-9848-3583d97a8f9c"


def test_a_part_has_the_id_that_it_had_in_every_release() -> None:
    assert TENANT.part_id(REPORT, "patient") == "57a873a0-c292-4380-8d6e-b0bbf382e03f"


def test_a_person_has_the_id_that_it_had_in_every_release() -> None:
    assert (
        TENANT.person_id("https://registry.example/persons", "30111222")
        == "096313b8-7fb3-868a-8ff5-f1994a19cc96"
    )


@pytest.mark.parametrize(
    ("part", "key", "expected"),
    [
        ("observation", ["a", "1"], "6f0bc276-c221-8f98-b630-a1e0c8425d51"),
        ("specimen", ["a", "1"], "945aa440-562c-8ec9-a679-1302d7d8e8b9"),
        ("observation", ["1", "a"], "b2fdf36e-4f54-806e-9f8f-5a847e7dca37"),
    ],
)
def test_a_member_has_the_id_that_it_had_in_every_release(
    part: str, key: list[str], expected: str
) -> None:
    found = TENANT.member_id(REPORT, part, key)

    assert found == expected
    assert is_member_id(found)
    assert not is_member_id(REPORT)


def test_a_patient_apart_and_the_trail_have_the_ids_that_they_had_in_every_release() -> None:
    assert TENANT.apart_id(REPORT) == "d660980a-4ab2-8991-98f4-3768d33667a3"
    assert TENANT.audit_prefix == "0547ef6ed83d"


def test_the_resource_of_a_part_follows_from_the_part() -> None:
    parts = {name: TENANT.part_id(REPORT, name) for name in ("patient", "organization")}

    assert parts["organization"] == "cc4a9faa-3d1b-4513-9664-f8ce109eb5f0"
    assert {TENANT.part_id(part, name) for name, part in parts.items()} == {REPORT}


def test_a_salt_that_could_not_be_decrypted_is_never_used() -> None:
    unread = Tenant("t", "Lab", MARK + b"x", 1)

    for use in (
        lambda: unread.resource_id("DiagnosticReport", "https://lab.example", "A-1"),
        lambda: unread.part_id(REPORT, "patient"),
        lambda: unread.member_id(REPORT, "observation", ["1"]),
        lambda: unread.person_id("https://registry.example", "1"),
        lambda: unread.apart_id(REPORT),
        lambda: unread.signature(b"cursor"),
    ):
        with pytest.raises(SaltUnavailable):
            use()


def test_a_salt_is_not_in_the_repr_of_a_tenant() -> None:
    assert repr(TENANT.salt) not in repr(TENANT)
