"""Limits come from the settings or an override, and the RateLimit fields have the draft's form."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fhirpub.config.quotas import QuotasConfig
from fhirpub.web.admission.quota_policy import (
    DAY,
    MINUTE,
    Limits,
    Policy,
    is_exceeded,
    limits_of,
    quota_names,
    rate_limit_fields,
    seconds_left,
)

# A List of Strings with Integer parameters: RFC 9651, 3.1, 3.1.2, 3.3.1 and 3.3.3.
STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
PARAMETER = r"; *[a-z*][a-z0-9_.*-]*=-?[0-9]{1,15}"
ITEM = rf"{STRING}(?:{PARAMETER})*"
LIST = re.compile(rf"{ITEM}(?:[ \t]*,[ \t]*{ITEM})*")

NUMBERS = st.integers(0, 2**53)
POLICIES = st.lists(
    st.builds(
        Policy,
        st.sampled_from([*quota_names("tenant").values(), *quota_names("client").values()]),
        NUMBERS.filter(bool),
        NUMBERS,
    ),
    max_size=3,
)
TIMES = st.integers(0, 2**45)


def parsed(field: str) -> list[tuple[str, dict[str, int]]]:
    """Return the members of a List with their parameters."""
    assert LIST.fullmatch(field)
    members = []
    for member in re.findall(ITEM, field):
        name, *parameters = member.split(";")
        pairs = (parameter.split("=") for parameter in parameters)
        members.append((name.strip('"'), {key.strip(): int(number) for key, number in pairs}))
    return members


@given(policies=POLICIES, now=TIMES)
def test_the_fields_are_lists_of_the_policies_and_of_what_remains(
    policies: list[Policy], now: int
) -> None:
    found = rate_limit_fields(policies, now)

    if not policies:
        assert found == {}
        return
    assert found.keys() == {"RateLimit-Policy", "RateLimit"}
    known, rest = parsed(found["RateLimit-Policy"]), parsed(found["RateLimit"])
    assert [name for name, _ in known] == [name for name, _ in rest]
    for policy, (name, limit), (_name, left) in zip(policies, known, rest, strict=True):
        assert name == policy.name
        assert limit == {"q": min(policy.limit, 999_999_999_999_999), "w": 60}
        assert left.keys() == {"r", "t"}
        assert 0 <= left["r"] <= limit["q"]
        assert (left["r"] == 0) == (policy.used >= policy.limit)
        assert 1 <= left["t"] <= 60


@given(now=TIMES, length=st.sampled_from([MINUTE, DAY]))
def test_the_next_period_has_begun_after_the_seconds_that_are_left(now: int, length: int) -> None:
    left = seconds_left(now, length)

    assert now // length < (now + left * 1000) // length
    assert now // length == (now + (left - 1) * 1000) // length


@given(limit=NUMBERS, used=NUMBERS, more=NUMBERS)
@example(limit=0, used=10**9, more=1)
@example(limit=5, used=4, more=1)
@example(limit=5, used=5, more=1)
@example(limit=5, used=3, more=3)
@example(limit=5, used=5, more=0)
def test_a_limit_is_exceeded_by_the_first_that_is_beyond(limit: int, used: int, more: int) -> None:
    assert is_exceeded(limit, used, more) == (limit > 0 and used + more > limit)


def test_every_setting_is_the_quota_of_a_kind() -> None:
    names = {*quota_names("tenant").values(), *quota_names("client").values()}

    assert names == {field.name for field in fields(QuotasConfig)}


@pytest.mark.parametrize("limit", Limits._fields)
def test_an_override_replaces_a_setting_of_one_owner(limit: str) -> None:
    name = f"tenant_{limit}"
    config = QuotasConfig(**{name: 5})
    overrides = {("a", name): 7, ("b", name): 0}

    found = [getattr(limits_of("tenant", owner, config, overrides), limit) for owner in "abc"]

    assert found == [7, 0, 5]


def test_a_client_has_its_own_settings() -> None:
    config = QuotasConfig(tenant_bytes_per_day=5, client_requests_per_minute=6)

    assert limits_of("client", "a", config, {}) == Limits(requests_per_minute=6)
    assert limits_of("tenant", "a", config, {}) == Limits(bytes_per_day=5)
