"""Holders and rejections of tokens of other issuers."""

from __future__ import annotations

from fhirpub.plugin_api.issuers import TokenHolder, TokenRejected


def test_a_holder_has_no_scopes_unless_its_issuer_gives_them() -> None:
    assert TokenHolder(client="c", tenant="t").scopes == ()


def test_a_rejected_token_has_its_reason_for_the_log() -> None:
    assert TokenRejected("no group").reason == str(TokenRejected("no group")) == "no group"
