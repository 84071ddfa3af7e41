"""``fhirpub hold``: what it asks for, and what it prints."""

from __future__ import annotations

import click
import pytest

from fhirpub.administration.erasure import holds
from fhirpub.cli.erasure.hold import ResourceNameType, hold
from tests.unit.cli.bureau import Bureau

ID = "00000000-0000-4000-8000-000000000001"
RESOURCE = f"DiagnosticReport/{ID}"
HELD = {
    "tenant": "t-1",
    "type": "DiagnosticReport",
    "id": ID,
    "since": 1_700_000_000_000,
    "operator": "ana",
    "reason": "why",
}
ROW = {
    "resource": RESOURCE,
    "since": "2023-11-14T22:13:20.000Z",
    "operator": "ana",
    "reason": "why",
}
NOTE = ("--reason", "why", "--operator", "ana")
NAMED = {"tenant": "t-1", "type": "DiagnosticReport", "id": ID}


def test_a_resource_of_a_tenant_is_put_on_hold(bureau: Bureau) -> None:
    bureau.answer(holds.ADD, HELD)

    shown = bureau.json(hold, "add", RESOURCE, "--tenant", "t-1", *NOTE)

    assert bureau.only() == ("hold add", {**NAMED, "reason": "why", "operator": "ana"})
    assert shown == ROW


def test_a_hold_of_a_tenant_ends(bureau: Bureau) -> None:
    bureau.answer(holds.RELEASE, {"released": True})

    result = bureau.run(hold, "release", RESOURCE, "--tenant", "t-1")

    assert bureau.only() == ("hold release", NAMED)
    assert result.stdout.startswith(f"{RESOURCE} is no longer on hold\n")


def test_what_is_on_hold_is_listed_for_a_tenant(bureau: Bureau) -> None:
    bureau.answer(holds.LIST, [HELD])

    assert bureau.json(hold, "list", "--tenant", "t-1") == [ROW]
    assert bureau.only() == ("hold list", {"tenant": "t-1"})


def test_an_empty_list_is_one_sentence(bureau: Bureau) -> None:
    bureau.answer(holds.LIST, [])

    assert bureau.run(hold, "list", "--tenant", "t-1").stdout == "Nothing is on hold.\n"


def test_what_is_on_hold_is_named_above_the_record(bureau: Bureau) -> None:
    bureau.answer(holds.ADD, HELD)

    result = bureau.run(hold, "add", RESOURCE, "--tenant", "t-1", *NOTE)

    assert result.stdout.splitlines()[0] == f"{RESOURCE} is on hold"


@pytest.mark.parametrize("text", ["", "DiagnosticReport", f"/{ID}", "DiagnosticReport/", "a/b/c"])
def test_what_names_no_resource_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not TYPE/ID, such as DiagnosticReport/7d1a"):
        ResourceNameType().convert(text, None, None)


def test_what_was_read_stays_as_it_is() -> None:
    assert ResourceNameType().convert(("Patient", ID), None, None) == ("Patient", ID)


@pytest.mark.parametrize("words", [("add", RESOURCE, *NOTE), ("release", RESOURCE), ("list",)])
def test_the_tenant_must_be_named(bureau: Bureau, words: tuple[str, ...]) -> None:
    assert bureau.run(hold, *words).exit_code == 2
    assert bureau.asked == []
