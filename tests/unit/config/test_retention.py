"""Policies of retention are read, and those that cannot be read are named."""

from __future__ import annotations

import dataclasses

import pytest

from fhirpub.config.retention import Policy, RetentionConfig, policies_of, wrong_policies


def test_nothing_is_erased_unless_set() -> None:
    assert dataclasses.asdict(RetentionConfig()) == {
        "policies": [],
        "erase": False,
        "erasures_per_minute": 60,
    }


@pytest.mark.parametrize(
    ("text", "type_name", "statuses", "days"),
    [
        ("Patient after 1 days", "Patient", (), 1),
        ("Patient after 999999 days", "Patient", (), 999_999),
        ("Patient?status=final after 10 days", "Patient", ("final",), 10),
        ("Patient?status=final,in-error after 10 days", "Patient", ("final", "in-error"), 10),
        ("Patient?status=final,,a, after 10 days", "Patient", ("final", "a"), 10),
        ("Patient?status=final, after 1 days", "Patient", ("final",), 1),
        (
            "DiagnosticReport?status=entered-in-error,final after 90 days",
            "DiagnosticReport",
            ("entered-in-error", "final"),
            90,
        ),
    ],
)
def test_a_policy_is_a_type_statuses_and_days(
    text: str, type_name: str, statuses: tuple[str, ...], days: int
) -> None:
    policies = policies_of(RetentionConfig(policies=[text]))

    assert policies == [Policy(text, type_name, statuses, days)]


def test_policies_keep_their_order() -> None:
    texts = ["Bb after 2 days", "Aa after 1 days"]

    assert [one.text for one in policies_of(RetentionConfig(policies=texts))] == texts


def test_only_policies_that_cannot_be_read_are_named() -> None:
    texts = ["Patient after 1 days", "Patient after 0 days", "Patient after 1000000 days", "P"]

    assert [line.split(" must be like")[0] for line in wrong_policies(texts)] == [
        "[retention] policies: 'Patient after 0 days'",
        "[retention] policies: 'Patient after 1000000 days'",
        "[retention] policies: 'P'",
    ]
    assert policies_of(RetentionConfig(policies=texts[1:])) == []
