"""``fhirpub webhooks`` has the tools of those who write a receiver."""

from __future__ import annotations

from fhirpub.cli.webhooks.command import webhooks


def test_it_listens_and_triggers() -> None:
    assert sorted(webhooks.commands) == ["listen", "trigger"]
