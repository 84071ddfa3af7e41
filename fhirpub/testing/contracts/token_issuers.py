"""The promises of an issuer of tokens as tests."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from fhirpub.plugin_api import TokenHolder, TokenIssuer, TokenRejected

_CALLS = 1_000
_MAX_CALL_SECONDS = 0.001
_CLIENT = re.compile(r"[\x21-\x7e]{1,128}")
_STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1.5, "", " ", "*", "\u0000", "é\U0001f600", "x" * 8_000),
    *([], [[]], [None, 1, "x"], {}, {"x": {}}, ["x" * 100] * 80),
)


class TokenIssuerContract:
    """A test for every promise of `fhirpub.plugin_api.TokenIssuer.identify`; inherit it.

    The fixture ``issuer`` to provide is the issuer.

    Attributes:
        claims: The claims of a token that the issuer gives to a client of it.
        holder: The client that holds that token.
    """

    claims: ClassVar[Mapping[str, Any]]
    holder: TokenHolder

    def identified(self, issuer: TokenIssuer, claims: Mapping[str, Any]) -> TokenHolder | None:
        """Return the holder of a token, if it is a client that the issuer may have."""
        if self.rejection(issuer, claims):
            return None
        found: Any = issuer.identify(claims)
        assert isinstance(found, TokenHolder)
        assert found.tenant in issuer.tenants
        assert isinstance(found.scopes, tuple)
        return found

    def rejection(self, issuer: TokenIssuer, claims: Mapping[str, Any]) -> str:
        """Return why claims are rejected; empty if they are not."""
        try:
            issuer.identify(claims)
        except TokenRejected as problem:
            return problem.reason or "no reason"
        return ""

    def test_it_identifies_the_holder_of_a_token(self, issuer: TokenIssuer) -> None:
        assert self.identified(issuer, self.claims) == self.holder
        assert _CLIENT.fullmatch(self.holder.client)

    def test_the_same_claims_are_those_of_the_same_holder(self, issuer: TokenIssuer) -> None:
        claims = copy.deepcopy(dict(self.claims))

        assert self.identified(issuer, claims) == self.identified(issuer, claims)
        assert claims == self.claims

    def test_claims_without_a_client_are_rejected(self, issuer: TokenIssuer) -> None:
        assert self.identified(issuer, {"iss": issuer.url, "aud": issuer.audience}) is None

    @pytest.mark.parametrize("value", _STRANGE, ids=lambda value: repr(value)[:20])
    def test_it_takes_claims_of_every_kind(self, issuer: TokenIssuer, value: object) -> None:
        for name in self.claims:
            self.identified(issuer, {**self.claims, name: value})
        self.identified(issuer, dict.fromkeys(self.claims, value))

    def test_a_reason_has_no_value_of_a_claim(self, issuer: TokenIssuer) -> None:
        secret = "v4lue-0f-a-cla1m"
        reasons = [self.rejection(issuer, {**self.claims, name: secret}) for name in self.claims]

        assert secret not in " ".join(reasons)

    def test_it_answers_at_once(self, issuer: TokenIssuer) -> None:
        begun = time.perf_counter()
        for _ in range(_CALLS):
            issuer.identify(self.claims)
        took = time.perf_counter() - begun

        assert took < _CALLS * _MAX_CALL_SECONDS
