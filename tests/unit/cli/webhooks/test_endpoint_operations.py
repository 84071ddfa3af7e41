"""Acts on an endpoint: what the commands ask for, print and return."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import endpoint_acts, endpoints
from fhirpub.administration.operation import Operation
from fhirpub.cli.webhooks.endpoint import endpoint
from tests.unit.cli.bureau import Bureau

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ROTATED = {"id": "e-1", "signing_secret": "s"}


@pytest.mark.parametrize(
    ("words", "operation", "answer", "heading"),
    [
        (("enable", "e-1"), endpoint_acts.ENABLE, {"state": "active"}, "Endpoint enabled."),
        (
            ("enable", "e-1"),
            endpoint_acts.ENABLE,
            {"state": "unverified"},
            "No longer disabled, but not yet verified.",
        ),
        (("pause", "e-1"), endpoint_acts.PAUSE, {"state": "paused"}, "Endpoint paused."),
        (("disable", "e-1"), endpoint_acts.DISABLE, {"state": "off"}, "Endpoint disabled."),
        (("rm", "e-1", "--yes"), endpoints.REMOVE, {"id": "e-1"}, "Endpoint removed."),
    ],
)
def test_an_act_names_its_endpoint_and_what_came_of_it(
    bureau: Bureau,
    words: tuple[str, ...],
    operation: Operation,
    answer: dict[str, Any],
    heading: str,
) -> None:
    bureau.answer(operation, answer)

    result = bureau.run(endpoint, *words)

    assert result.stdout.splitlines()[0] == heading
    assert bureau.only() == (operation.command, {"endpoint": "e-1"})
    assert bureau.json(endpoint, *words) == answer


@pytest.mark.parametrize(
    ("command", "operation"),
    [("ping", endpoint_acts.PING), ("verify-endpoint", endpoint_acts.VERIFY)],
)
@pytest.mark.parametrize("passed", [True, False])
def test_a_trial_that_was_not_accepted_fails(
    bureau: Bureau, command: str, operation: Operation, *, passed: bool
) -> None:
    bureau.answer(operation, {"passed": passed})

    result = bureau.run(endpoint, command, "e-1")
    as_json = bureau.run(endpoint, command, "e-1", "--json")

    words = "accepted" if passed else "did not accept"
    assert result.stdout.splitlines()[0] == f"The endpoint {words} it."
    assert as_json.stdout == f'{{"passed": {str(passed).lower()}}}\n'
    assert [result.exit_code, as_json.exit_code] == [not passed] * 2
    assert bureau.asked[0].command == operation.command


@pytest.mark.parametrize(
    ("words", "seconds", "end"),
    [
        ((), 86_400, "signs for another 86400 seconds"),
        (("--grace", "0s"), 0, "no longer signs"),
        (("--grace", "7d"), 604_800, "signs for another 604800 seconds"),
    ],
)
def test_the_old_secret_signs_for_a_day_unless_given(
    bureau: Bureau, words: tuple[str, ...], seconds: int, end: str
) -> None:
    bureau.answer(endpoint_acts.ROTATE, ROTATED)

    result = bureau.run(endpoint, "rotate", "e-1", *words)

    assert bureau.only()[1] == {"endpoint": "e-1", "grace_seconds": seconds}
    assert result.stdout.splitlines()[0] == "Secret rotated."
    assert result.stdout.splitlines()[-1] == (
        f"The secret is shown only once. The old secret {end}."
    )


def test_a_grace_beyond_the_longest_is_refused(bureau: Bureau) -> None:
    result = bureau.run(endpoint, "rotate", "e-1", "--grace", "604801s")

    assert (result.exit_code, bureau.asked) == (2, [])
    assert "--grace must be at most 7d" in result.stderr


def test_a_secret_that_exists_is_sent_only_if_asked(bureau: Bureau) -> None:
    bureau.answer(endpoint_acts.ROTATE, ROTATED)
    variables = {"FHIRPUB_SIGNING_SECRET": SECRET}

    bureau.json(endpoint, "rotate", "e-1", **variables)
    bureau.json(endpoint, "rotate", "e-1", "--import-secret", **variables)

    assert [one.arguments.get("signing_secret") for one in bureau.asked] == [None, SECRET]


def test_a_token_that_exists_is_sent_only_if_asked(bureau: Bureau) -> None:
    bureau.answer(endpoint_acts.ROTATE_TOKEN, {"bearer_token": "t"})
    variables = {"FHIRPUB_ENDPOINT_TOKEN": "x" * 40}

    first = bureau.run(endpoint, "rotate-token", "e-1", **variables)
    bureau.json(endpoint, "rotate-token", "e-1", "--import-token", **variables)

    assert [one.arguments for one in bureau.asked] == [
        {"endpoint": "e-1"},
        {"endpoint": "e-1", "bearer_token": "x" * 40},
    ]
    assert first.stdout.startswith("Token rotated.\n")
    assert first.stdout.endswith("The token is shown only once.\n")


def stats(**given: Any) -> dict[str, Any]:
    return {"attempts": 3, "deliveries": {}, "by_hour": [], "by_day": [], **given}


def test_attempts_are_tables_by_hour_and_by_day(bureau: Bureau) -> None:
    hours = [
        {"since": "2026-11-28T19:00:00.000Z", "succeeded": 0, "failed": 0},
        {"since": "2026-11-28T20:00:00.000Z", "succeeded": 12, "failed": 1},
    ]
    bureau.answer(endpoint_acts.STATS, stats(by_hour=hours))

    text = bureau.run(endpoint, "stats", "e-1").stdout

    assert text.partition("\n\n")[2].splitlines() == [
        "Attempts by hour; hours without any are left out.",
        "since                     succeeded  failed",
        "2026-11-28T20:00:00.000Z  12         1",
        "",
        "Attempts by day; days without any are left out.",
        "None.",
    ]


def test_counts_of_deliveries_are_one_line_for_people(bureau: Bureau) -> None:
    record = stats(deliveries={"pending": 1, "dead": 2})
    bureau.answer(endpoint_acts.STATS, record)

    text = bureau.run(endpoint, "stats", "e-1").stdout

    assert text.startswith("Delivery statistics.\n")
    assert "  deliveries  1 pending, 2 dead\n" in text
    assert bureau.json(endpoint, "stats", "e-1") == record
    assert bureau.asked[0].arguments == {"endpoint": "e-1"}


def test_all_secrets_are_encrypted_again(bureau: Bureau) -> None:
    bureau.answer(endpoint_acts.RESEAL, {"resealed": 2})

    assert bureau.run(endpoint, "reseal").stdout == "Done.\n  resealed  2\n"
    assert bureau.only() == (endpoint_acts.RESEAL.command, {})


QUESTION = "Remove the endpoint e-1 for good? This cannot be undone."


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_an_endpoint_stays_unless_its_removal_is_confirmed(bureau: Bureau, answer: str) -> None:
    result = bureau.run(endpoint, "rm", "e-1", stdin=answer)

    assert (result.exit_code, bureau.asked, result.stdout) == (1, [], "")
    assert QUESTION in result.stderr


@pytest.mark.usefixtures("terminal")
def test_an_endpoint_is_removed_after_the_question(bureau: Bureau) -> None:
    bureau.answer(endpoints.REMOVE, {"id": "e-1"})

    result = bureau.run(endpoint, "rm", "e-1", "--json", stdin="y\n")

    assert (result.exit_code, result.stdout) == (0, '{"id": "e-1"}\n')
    assert QUESTION in result.stderr


@pytest.mark.usefixtures("terminal")
def test_nothing_is_asked_with_yes(bureau: Bureau) -> None:
    bureau.answer(endpoints.REMOVE, {"id": "e-1"})

    result = bureau.run(endpoint, "rm", "e-1", "--yes")

    assert (result.exit_code, result.stderr) == (0, "")


def test_nothing_is_asked_where_no_person_can_answer(bureau: Bureau) -> None:
    bureau.answer(endpoints.REMOVE, {"id": "e-1"})

    result = bureau.run(endpoint, "rm", "e-1")

    assert (result.exit_code, result.stderr) == (0, "")
