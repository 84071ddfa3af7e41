"""Rotations of an endpoint's secret: each earlier one has an end of its own."""

from __future__ import annotations

from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.webhooks.management.endpoint_secrets import with_new_secret

NOW, HOUR, DAY = 1_800_000_000_000, 3_600_000, 86_400_000
ENDPOINT = Endpoint(
    id="e",
    tenant="t",
    url="https://receiver.example.org",
    created=NOW,
    secrets=(EndpointSecret(b"1"),),
)


def test_a_second_rotation_leaves_the_grace_of_the_first() -> None:
    first = with_new_secret(ENDPOINT, EndpointSecret(b"2"), now=NOW, end=NOW + DAY)

    later = NOW + 1
    second = with_new_secret(first, EndpointSecret(b"3"), now=later, end=later + HOUR)

    ends = {secret.sealed: secret.expires for secret in second.secrets}
    assert ends == {b"3": None, b"2": later + HOUR, b"1": NOW + DAY}


def test_a_rotation_without_grace_ends_all_before_it() -> None:
    first = with_new_secret(ENDPOINT, EndpointSecret(b"2"), now=NOW, end=NOW + DAY)

    second = with_new_secret(first, EndpointSecret(b"3"), now=NOW + 1, end=NOW + 1)

    assert second.secrets == (EndpointSecret(b"3"),)
