"""A load is patient as long as the service answers something."""

from __future__ import annotations

from itertools import islice

from fhirpub.cli.publish.bulk.sender import Patience
from fhirpub.cli.publish.retries import PAUSES


def test_a_service_that_answers_others_is_waited_for_without_an_end() -> None:
    pauses = Patience(60).pauses()

    assert list(islice(pauses, 100))[-90:] == [PAUSES[-1]] * 90


def test_a_service_that_answers_nothing_is_given_up() -> None:
    assert list(Patience(-1).pauses()) == []


def test_patience_begins_again_with_each_answer() -> None:
    patience = Patience(0.0)
    patience.renew()
    patience.seconds = 60

    assert next(patience.pauses()) == PAUSES[0]


def test_patience_ends_when_nothing_was_answered_for_its_seconds() -> None:
    patience = Patience(60)
    pauses = patience.pauses()
    first = next(pauses)

    patience._since -= 61

    assert (first, list(pauses)) == (PAUSES[0], [])
