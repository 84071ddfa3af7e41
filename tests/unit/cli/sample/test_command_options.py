"""Which options ``fhirpub sample`` takes, and whose reports they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from fhirpub.cli.sample import command
from fhirpub.cli.sample.command import _day, _seed
from fhirpub.cli.sample.reports import LABORATORY

CONTEXT = click.Context(click.Command("sample"))
OPTION = click.Option(["--x"])
NOON = 1_795_262_400_000
"""21 November 2026, in UTC."""


@pytest.mark.parametrize("text", ["a", "A1", "0", "x" * 40])
def test_a_seed_is_a_word_of_letters_and_digits(text: str) -> None:
    assert _seed(CONTEXT, OPTION, text) == text


@pytest.mark.parametrize("text", ["", "a-b", "a b", "é", "x" * 41])
def test_what_could_be_no_part_of_an_identifier_is_no_seed(text: str) -> None:
    with pytest.raises(click.BadParameter, match="must be letters and digits, 40 at most"):
        _seed(CONTEXT, OPTION, text)


@pytest.mark.parametrize(("days", "is_taken"), [(365, True), (400, True), (363, False)])
def test_the_first_day_is_a_year_ago_or_earlier(
    monkeypatch: pytest.MonkeyPatch, days: int, *, is_taken: bool
) -> None:
    monkeypatch.setattr(command, "now_ms", lambda: NOON)
    day = datetime.fromtimestamp(NOON / 1000, UTC) - timedelta(days=days)

    if is_taken:
        assert _day(CONTEXT, OPTION, day) == day.date()
    else:
        with pytest.raises(click.BadParameter, match="no report is of tomorrow"):
            _day(CONTEXT, OPTION, day)


def test_in_production_it_refuses_whichever_tenant_is_named(run: Any) -> None:
    words = ("sample", "--reports", "1", "--tenant", "lab")

    done = run(*words, FHIRPUB_AUTH__ENVIRONMENT="production")

    assert done.returncode == 1
    assert "invented reports do not belong there" in done.stderr


def test_a_tenant_that_is_disabled_gets_no_reports(run: Any) -> None:
    disabled = json.loads(run("tenant", "add", LABORATORY, "--json").stdout)["id"]
    run("tenant", "disable", disabled)

    usual = json.loads(run("sample", "--reports", "1", "--json").stdout)
    named = run("sample", "--reports", "1", "--tenant", disabled)

    assert usual["registered"] == 1
    assert usual["tenant"] != disabled
    assert named.returncode == 1
