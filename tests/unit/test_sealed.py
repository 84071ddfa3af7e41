"""Encrypted values are recognized."""

from __future__ import annotations

import os

from fhirpub.sealed import MARK, is_sealed


def test_a_value_is_recognized_by_its_mark() -> None:
    assert is_sealed(MARK + b"x")
    assert not any(map(is_sealed, (b"", os.urandom(32), b"-----BEGIN PRIVATE KEY-----")))


def test_the_mark_is_the_one_that_stored_values_have() -> None:
    assert is_sealed(b"fhirpub-sealed:1:x")
