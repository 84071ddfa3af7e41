"""What quotas limit, and what is returned about them (D-292 to D-298); pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Literal, NamedTuple

from fhirpub.config.quotas import QuotasConfig
from fhirpub.runtime.clock import DAY_MS

MINUTE, DAY = 60_000, DAY_MS
"""The periods in milliseconds; both begin at full minutes and days of UTC."""
Kind = Literal["tenant", "client"]
"""The kinds of owners of quotas: names of quotas begin with them."""
_LARGEST_INTEGER = 999_999_999_999_999
"""The largest Integer of a structured field (RFC 9651, 3.3.1)."""


class Limits(NamedTuple):
    """The limits of one tenant or client; 0 means no limit."""

    requests_per_minute: int = 0
    requests_at_a_time: int = 0
    bytes_per_day: int = 0
    registrations_per_day: int = 0
    stored_bytes: int = 0


PERIODS: Mapping[str, int] = {
    "requests_per_minute": MINUTE,
    "bytes_per_day": DAY,
    "registrations_per_day": DAY,
}
"""The period of each limit that has one."""


class Policy(NamedTuple):
    """A quota of requests per minute, and how much of it is used."""

    name: str
    limit: int
    used: int


def quota_name(kind: Kind, limit: str) -> str:
    """Return the name of a quota, as in the settings."""
    return f"{kind}_{limit}"


def quota_names(kind: Kind) -> dict[str, str]:
    """Return the names of the quotas that owners of this kind have, by their limits."""
    names = {limit: quota_name(kind, limit) for limit in Limits._fields}
    known = asdict(QuotasConfig())
    return {limit: name for limit, name in names.items() if name in known}


def limits_of(
    kind: Kind, owner: str, config: QuotasConfig, overrides: Mapping[tuple[str, str], int]
) -> Limits:
    """Return the limits of a tenant or client; ``overrides`` are by owner and quota."""
    settings = asdict(config)
    names = quota_names(kind)
    return Limits(
        **{limit: overrides.get((owner, name), settings[name]) for limit, name in names.items()}
    )


def is_exceeded(limit: int, used: int, more: int = 1) -> bool:
    """Return whether ``more`` would be beyond a limit."""
    return bool(limit) and used + more > limit


def period_start(now: int, length: int) -> int:
    """Return when the current period began."""
    return now - now % length


def seconds_left(now: int, length: int) -> int:
    """Return the seconds until the next period, rounded up, at least 1."""
    return -(-(length - now % length) // 1000)


def rate_limit_fields(policies: Iterable[Policy], now: int) -> dict[str, str]:
    """Return the fields RateLimit-Policy and RateLimit, or none without a policy.

    Their form is that of draft-ietf-httpapi-ratelimit-headers-11: Lists of Strings with
    parameters (RFC 9651), ``q`` the quota, ``w`` the window in seconds, ``r`` what remains of the
    quota, and ``t`` the seconds until it is complete again.
    """
    known = [*policies]
    if not known:
        return {}
    left = seconds_left(now, MINUTE)
    limits = [f'"{item.name}";q={_integer(item.limit)};w=60' for item in known]
    rest = [f'"{item.name}";r={_integer(item.limit - item.used)};t={left}' for item in known]
    return {"RateLimit-Policy": _join(limits), "RateLimit": _join(rest)}


def _integer(number: int) -> int:
    return max(0, min(number, _LARGEST_INTEGER))


def _join(members: Sequence[str]) -> str:
    return ", ".join(members)
