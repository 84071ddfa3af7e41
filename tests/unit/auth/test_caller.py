"""From where a caller may send requests."""

from __future__ import annotations

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.auth.networks import parse_networks
from fhirpub.tenant import Tenant

TENANT = Tenant.new("Lab", created=5)


def test_a_caller_without_networks_may_call_from_anywhere() -> None:
    assert Caller(TENANT, "c").may_call_from("203.0.113.7")


@pytest.mark.parametrize(
    ("address", "permitted"), [("192.0.2.7", True), ("192.0.3.7", False), ("", False)]
)
def test_a_caller_with_networks_may_call_from_these(address: str, *, permitted: bool) -> None:
    caller = Caller(TENANT, "c", networks=parse_networks(("192.0.2.0/24",)))

    assert caller.may_call_from(address) is permitted


def test_a_caller_has_no_rights_by_default() -> None:
    caller = Caller(TENANT, "c")

    assert (caller.scopes, caller.certificate, caller.scopes_count) == ((), "", False)
