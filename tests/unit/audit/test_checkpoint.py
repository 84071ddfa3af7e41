"""The claims of a checkpoint say what was signed, and claims that do not are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.audit.checkpoint import TYPE, Checkpoint, checkpoint_of

CHECKPOINT = Checkpoint(tenant="t", number=7, hash=b"\x01\xff" * 16, at=1_795_000_000_999)


def test_claims_name_the_chain_the_block_its_hash_and_the_second() -> None:
    assert CHECKPOINT.claims() == {
        "tenant": "t",
        "block": 7,
        "hash": "01ff" * 16,
        "iat": 1_795_000_000,
        "deleted": False,
    }


@pytest.mark.parametrize("tenant", ["t", ""])
@pytest.mark.parametrize("deleted", [True, False])
def test_a_checkpoint_is_read_as_it_was_signed(tenant: str, *, deleted: bool) -> None:
    signed = replace(CHECKPOINT, tenant=tenant, deleted=deleted)

    assert checkpoint_of(signed.claims()) == replace(signed, at=1_795_000_000_000)


@pytest.mark.parametrize("name", CHECKPOINT.claims())
def test_claims_without_one_of_them_are_no_checkpoint(name: str) -> None:
    claims = CHECKPOINT.claims()
    del claims[name]

    with pytest.raises(ValueError, match=r"^not the claims of a checkpoint$"):
        checkpoint_of(claims)


@pytest.mark.parametrize(
    "wrong", [{"hash": None}, {"hash": "x"}, {"block": None}, {"block": "x"}, {"iat": [1]}]
)
def test_claims_of_another_type_are_no_checkpoint(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        checkpoint_of(CHECKPOINT.claims() | wrong)


def test_a_checkpoint_has_a_type_of_its_own() -> None:
    assert TYPE == "fhirpub-audit+jwt"
