"""``fhirpub endpoint``: what it asks for, and what it prints of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import endpoints
from fhirpub.cli.webhooks.endpoint import endpoint
from tests.unit.cli.bureau import Bureau

SHOWN: dict[str, Any] = {
    "id": "e-1",
    "tenant": "t-1",
    "url": "https://receiver.example/hooks",
    "event_types": ["*"],
    "state": "active",
    "why": "",
    "description": "lis",
}
ADDED = {**SHOWN, "signing_secret": "whsec_x", "token": "y"}
WORDS = ("add", "--tenant", "t-1", "--url", SHOWN["url"])
FIELDS = {"tenant": "t-1", "url": SHOWN["url"]}


def test_an_endpoint_is_added_with_what_is_given_alone(bureau: Bureau) -> None:
    bureau.answer(endpoints.ADD, ADDED)

    assert bureau.json(endpoint, *WORDS) == ADDED
    assert bureau.only() == ("endpoint add", FIELDS)


def test_all_settings_of_an_endpoint_are_sent(bureau: Bureau) -> None:
    bureau.answer(endpoints.ADD, ADDED)

    bureau.json(
        endpoint,
        *(*WORDS, "--description", "lis", "--ordering", "strict", "--payload", "id-only"),
        *("--event", "a.created", "--event", "b.*"),
    )

    assert bureau.only()[1] == {
        **FIELDS,
        "description": "lis",
        "ordering": "strict",
        "payload": "id-only",
        "event_types": ["a.created", "b.*"],
    }


def test_a_new_endpoint_is_shown_with_its_secrets_and_the_next_step(bureau: Bureau) -> None:
    bureau.answer(endpoints.ADD, ADDED)

    shown = bureau.run(endpoint, *WORDS).stdout

    assert shown.startswith("Endpoint added.\n")
    assert "whsec_x" in shown
    assert "The secret and the token are shown only once: store them in a safe place.\n" in shown
    assert "Next, send a test event: fhirpub endpoint ping e-1\n" in shown


def test_an_endpoint_with_a_key_that_is_known_keeps_its_secrets(bureau: Bureau) -> None:
    bureau.answer(endpoints.PUT, SHOWN)

    shown = bureau.run(endpoint, *WORDS, "--key", "lis").stdout

    assert shown.startswith("Endpoint saved.\n")
    assert "Its secret and token stay as they are.\n" in shown
    assert "shown only once" not in shown
    assert bureau.only()[1] == {**FIELDS, "key": "lis"}


def test_a_list_has_what_identifies_an_endpoint_and_its_state(bureau: Bureau) -> None:
    bureau.answer(endpoints.LIST, [{**SHOWN, "state": "disabled", "why": "gone"}])

    heading, row = bureau.run(endpoint, "list", "--tenant", "t-1").stdout.splitlines()

    assert heading.split() == ["id", "tenant", "url", "event", "types", "state", "why"]
    assert row.split() == ["e-1", "t-1", SHOWN["url"], "*", "disabled", "gone"]
    assert bureau.only()[1] == {"tenant": "t-1"}


def test_a_list_without_endpoints_names_the_next_step(bureau: Bureau) -> None:
    bureau.answer(endpoints.LIST, [])

    assert bureau.run(endpoint, "list").stdout == (
        "No endpoints yet: fhirpub endpoint add --tenant ID --url URL\n"
    )


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("--url", "https://b.example"), {"url": "https://b.example"}),
        (("--event", "a", "--event", "b"), {"event_types": ["a", "b"]}),
        (("--description", ""), {"description": ""}),
    ],
)
def test_only_what_is_named_is_changed(
    bureau: Bureau, words: tuple[str, ...], fields: dict[str, Any]
) -> None:
    bureau.answer(endpoints.SET, SHOWN)

    assert bureau.run(endpoint, "set", "e-1", *words).stdout.startswith("Endpoint changed.\n")
    assert bureau.only() == ("endpoint set", {"endpoint": "e-1", **fields})


def test_a_change_of_nothing_is_wrong_usage(bureau: Bureau) -> None:
    assert bureau.run(endpoint, "set", "e-1").exit_code == 2
    assert bureau.asked == []


def test_a_secret_and_a_token_that_exist_may_both_be_imported(bureau: Bureau) -> None:
    bureau.answer(endpoints.ADD, ADDED)
    variables = {"FHIRPUB_SIGNING_SECRET": "whsec_a", "FHIRPUB_ENDPOINT_TOKEN": "t" * 40}

    bureau.json(endpoint, *WORDS, "--import-secret", "--import-token", **variables)

    assert bureau.only()[1] == {
        **FIELDS,
        "signing_secret": "whsec_a",
        "bearer_token": "t" * 40,
    }
