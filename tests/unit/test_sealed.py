"""Encrypted values are recognized."""

from __future__ import annotations

import os

from fhirpub.sealed import MARK, is_sealed


def test_a_value_is_recognized_by_its_mark() -> None:
    assert is_sealed(MARK + b"x")
    others = (b"", os.urandom(32), b"x" + MARK, b"-----BEGIN PRIVATE KEY-----")
    assert not any(map(is_sealed, others))


def test_the_mark_is_the_one_that_stored_values_have() -> None:
    assert is_sealed(b"fhirpub-sealed:1:x")
