"""Patients whose references stand where a long resource is cut into parts, for ``record.py``."""

from __future__ import annotations

import pytest

from fhirpub.audit.record import patients_in

_PART = 64 * 1024
FIRST = b'"reference":"Patient/first"'
LONGEST = b"p" * 64


def body_with(reference: bytes, *, behind: int) -> bytes:
    """Return a body with a reference that begins so many bytes behind the first one."""
    gap = behind - len(FIRST) - len(b',"a":"",')
    return b'{%b,"a":"%b",%b,"z":"%b"}' % (FIRST, b"x" * gap, reference, b"x" * 200)


@pytest.mark.parametrize("before", range(-100, 100))
def test_a_reference_across_two_parts_is_found(before: int) -> None:
    reference = b'"reference":"Patient/%b"' % LONGEST

    body = body_with(reference, behind=_PART - before)

    assert patients_in([body]) == ("Patient/first", "Patient/" + "p" * 64)


@pytest.mark.parametrize("parts", [2, 3])
def test_references_in_later_parts_are_found(parts: int) -> None:
    body = body_with(b'"reference":"Patient/later"', behind=parts * _PART + 5)

    assert patients_in([body]) == ("Patient/first", "Patient/later")


def test_a_patient_on_both_sides_of_a_cut_is_named_once() -> None:
    body = body_with(FIRST, behind=_PART - 5)

    assert patients_in([body, body]) == ("Patient/first",)


def test_patients_of_a_resource_before_one_with_several_are_kept() -> None:
    one = b'{"subject":{"reference":"Patient/one"}}'
    several = b'[{"reference":"Patient/two"},{"reference":"Patient/three"}]'

    assert patients_in([one, several]) == ("Patient/one", "Patient/two", "Patient/three")
