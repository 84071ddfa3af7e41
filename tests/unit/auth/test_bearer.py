"""The one form of the header Authorization that is accepted, and why others are refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fhirpub.auth import refusals
from fhirpub.auth.bearer import bearer_token
from fhirpub.errors import NotAuthenticated


@pytest.mark.parametrize("header", ["Bearer a.b-c_d~e+f/g=", "bearer a.b-c_d~e+f/g="])
def test_a_token_is_read_whatever_the_case_of_its_scheme(header: str) -> None:
    assert bearer_token([header]) == "a.b-c_d~e+f/g="


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([], refusals.no_token()),
        (["Bearer a", "Bearer a"], refusals.several_headers()),
        (["Basic abc"], refusals.basic()),
        ([" basic "], refusals.basic()),
        (["Bearer a b"], refusals.malformed("not one Bearer token", token_sent=True)),
        (["Bearer  a"], refusals.malformed("not one Bearer token", token_sent=True)),
        (["Bearer a,b"], refusals.malformed("not one Bearer token", token_sent=True)),
        (["Basics abc"], refusals.malformed("not one Bearer token", token_sent=True)),
        (["a"], refusals.malformed("not one Bearer token", token_sent=True)),
        (["Bearer "], refusals.malformed("not one Bearer token", token_sent=False)),
        (["bearer"], refusals.malformed("not one Bearer token", token_sent=False)),
        ([""], refusals.malformed("not one Bearer token", token_sent=False)),
    ],
)
def test_another_header_is_refused_for_its_reason(
    headers: Sequence[str], refusal: NotAuthenticated
) -> None:
    with pytest.raises(NotAuthenticated) as raised:
        bearer_token(headers)

    assert vars(raised.value) == vars(refusal)
    assert raised.value.args == refusal.args
