"""A cursor serves one tenant, one type and one question, and no other."""

from __future__ import annotations

import base64
import string

import pytest

from fhirpub.interactions.cursors import Parameters, link_to, seal, unseal
from fhirpub.storage.criteria import SortKey
from fhirpub.tenant import Tenant

TENANT = Tenant.new("Lab", created=0)
ASKED = (("code", "a"), ("date", "ge2026"))
PLACE: SortKey = (1_800_000_000_000, None, "é", "34926f96-0f76-4bf8-8d32-a6b9ec2f8936")
CURSOR = seal(PLACE, TENANT, "Observation", ASKED)


def opened(
    cursor: str = CURSOR,
    *,
    tenant: Tenant = TENANT,
    type_name: str = "Observation",
    asked: Parameters = ASKED,
) -> SortKey | None:
    return unseal(cursor, tenant, type_name, asked)


@pytest.mark.parametrize("place", [PLACE, ("id",), (None, "id"), (0, "", "id")])
def test_a_cursor_leads_to_its_place(place: SortKey) -> None:
    assert opened(seal(place, TENANT, "Observation", ASKED)) == place


def test_a_cursor_is_the_same_each_time() -> None:
    assert seal(PLACE, TENANT, "Observation", ASKED) == CURSOR


def test_a_cursor_has_characters_of_urls_alone() -> None:
    cursors = [seal((number, "?" * number), TENANT, "X", ()) for number in range(64)]

    assert set("".join(cursors)) <= {*string.ascii_letters, *string.digits, "-", "_"}
    assert [opened(one, type_name="X", asked=()) for one in cursors] == [
        (number, "?" * number) for number in range(64)
    ]


def test_a_cursor_of_another_tenant_is_none() -> None:
    assert opened(tenant=Tenant.new("Lab", created=0)) is None


def test_a_cursor_of_another_type_is_none() -> None:
    assert opened(type_name="Patient") is None


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ASKED[:1],
        (("code", "b"), ASKED[1]),
        (("code:not", "a"), ASKED[1]),
        (*ASKED, ("status", "final")),
        (*ASKED, ASKED[0]),
    ],
)
def test_a_cursor_of_another_question_is_none(asked: Parameters) -> None:
    assert opened(asked=asked) is None


def test_parameters_of_other_names_may_change_their_order() -> None:
    assert opened(asked=ASKED[::-1]) == PLACE


def test_parameters_of_one_name_may_not_change_their_order() -> None:
    asked = (("_sort", "date"), ("_sort", "code"))
    cursor = seal(PLACE, TENANT, "Observation", asked)

    assert opened(cursor, asked=asked) == PLACE
    assert opened(cursor, asked=asked[::-1]) is None


def test_the_size_of_a_page_may_change() -> None:
    assert opened(asked=(*ASKED, ("_count", "5"))) == PLACE
    cursor = seal(PLACE, TENANT, "Observation", (("_count", "3"), *ASKED))
    assert opened(cursor) == PLACE


@pytest.mark.parametrize("number", range(0, 16, 5))
def test_a_cursor_with_another_byte_of_its_signature_is_none(number: int) -> None:
    raw = bytearray(base64.urlsafe_b64decode(CURSOR + "=" * (-len(CURSOR) % 4)))
    raw[number] ^= 1

    assert opened(base64.urlsafe_b64encode(raw).decode()) is None


def test_a_cursor_with_another_place_is_none() -> None:
    raw = base64.urlsafe_b64decode(CURSOR + "=" * (-len(CURSOR) % 4))
    forged = raw[:16] + raw[16:].replace(b"1800000000000", b"1800000000001")

    assert opened(base64.urlsafe_b64encode(forged).decode()) is None


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "xx", CURSOR[:20], CURSOR[:-1], f"{CURSOR}A", "*" * 40, "é", "a b", "A" * 21],
    ids=range(10),  # the tenant has another key in each process of the tests
)
def test_what_is_no_cursor_is_none(cursor: str) -> None:
    assert opened(cursor) is None


def test_characters_that_stand_for_nothing_are_not_passed_over() -> None:
    assert opened(f"{CURSOR[:8]}****{CURSOR[8:]}") is None


def test_the_signature_of_a_cursor_has_16_bytes() -> None:
    raw = base64.urlsafe_b64decode(CURSOR + "=" * (-len(CURSOR) % 4))

    assert raw[16:].startswith(b"[1800000000000, null, ")


def test_an_address_without_parameters_stays_as_it_is() -> None:
    assert link_to("https://x.example/fhir", ()) == "https://x.example/fhir"


def test_parameters_of_a_link_are_escaped_with_percent_signs() -> None:
    link = link_to("https://x.example/fhir", [("a:b", "c d+e&f=/é"), ("a:b", "")])

    assert link == "https://x.example/fhir?a%3Ab=c%20d%2Be%26f%3D%2F%C3%A9&a%3Ab="
