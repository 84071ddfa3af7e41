"""How pages write the names of members."""

from __future__ import annotations

import pytest

from fhirpub.console.operators.words import label_of


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("last_used", "Last used"),
        ("valid_until", "Valid until"),
        ("tenant", "Tenant"),
        ("allows_reuse", "Allows reuse"),
        ("", ""),
    ],
)
def test_a_member_is_called_by_its_words_with_one_capital(name: str, label: str) -> None:
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("at", "When"),
        ("client_id", "Client"),
        ("disabled", "State"),
        ("failures", "Failures in a row"),
        ("jti", "Id of the token"),
        ("query", "Searched by"),
        ("url", "URL"),
        ("why", "Reason"),
    ],
)
def test_a_member_whose_name_says_little_has_a_label_of_its_own(name: str, label: str) -> None:
    assert label_of(name) == label
