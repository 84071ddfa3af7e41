"""``fhirpub keys``: what it asks for, and what it prints."""

from __future__ import annotations

from fhirpub.administration import keys as operations
from fhirpub.cli.keys import keys
from tests.unit.cli.bureau import Bureau


def test_keys_are_listed(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, [{"kid": "k-1"}])

    assert bureau.json(keys, "list") == [{"kid": "k-1"}]
    assert bureau.only() == ("keys list", {})


def test_a_list_of_no_keys_names_what_creates_one(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, [])

    result = bureau.run(keys, "list")

    assert result.stdout == (
        "No keys yet: the first `fhirpub check` or `fhirpub serve` creates one\n"
    )


def test_a_rotation_shows_the_new_key(bureau: Bureau) -> None:
    bureau.answer(operations.ROTATE, {"kid": "k-2"})

    assert bureau.run(keys, "rotate").stdout == "Key rotated.\n  kid  k-2\n"
    assert bureau.json(keys, "rotate") == {"kid": "k-2"}
    assert [one.command for one in bureau.asked] == ["keys rotate"] * 2
