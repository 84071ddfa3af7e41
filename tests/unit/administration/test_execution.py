"""What does not exist is recorded if it was to be changed, and not if it was to be seen."""

from __future__ import annotations

import pytest

from fhirpub.administration import clients, endpoints, keys, quotas, tenants
from fhirpub.administration.operation import Operation
from fhirpub.audit.record import BEGUN
from fhirpub.errors import InvalidContent, NoSuchRecord, NotPossible
from tests.unit.administration.office import URL, Office

ACTS: list[tuple[Operation, dict[str, str], str, str]] = [
    (tenants.DISABLE, {"tenant": "guess"}, "tenant.disable", "Tenant/guess"),
    (clients.DISABLE, {"client": "guess"}, "client.disable", "Client/guess"),
    (clients.ADD, {"tenant": "guess"}, "client.add", "Tenant/guess"),
    (clients.PUT, {"tenant": "guess", "key": "x"}, "client.add", "Tenant/guess"),
    (endpoints.REMOVE, {"endpoint": "guess"}, "endpoint.delete", "Endpoint/guess"),
    (endpoints.ADD, {"tenant": "guess", "url": URL}, "endpoint.create", "Tenant/guess"),
    (quotas.SET_OF_CLIENT, {"client": "guess"}, "quota.set", "Client/guess"),
    (keys.REVOKE, {"client": "guess", "jti": "x"}, "token.revoke", "Client/guess"),
]


@pytest.mark.parametrize(
    ("operation", "given", "action", "named"), ACTS, ids=[one.command for one, *_ in ACTS]
)
async def test_a_guess_is_recorded_with_its_name_in_the_chain_of_the_service(
    office: Office, operation: Operation, given: dict[str, str], action: str, named: str
) -> None:
    with pytest.raises(NoSuchRecord):
        await office.run(operation, **given)

    assert await office.records() == [
        ("", action, BEGUN, [named]),
        ("", action, 400, [named]),
    ]


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        (tenants.SHOW, {"tenant": "guess"}),
        (clients.SHOW, {"client": "guess"}),
        (clients.LIST, {"tenant": "guess"}),
        (endpoints.SHOW, {"endpoint": "guess"}),
        (quotas.SHOW, {"tenant": "guess"}),
    ],
)
async def test_a_look_at_a_guess_is_not_recorded(
    office: Office, operation: Operation, given: dict[str, str]
) -> None:
    with pytest.raises(NoSuchRecord):
        await office.run(operation, **given)

    assert await office.records() == []


async def test_what_is_not_given_stands_for_the_default(office: Office, lab: str) -> None:
    listed = await office.run(clients.LIST, tenant=None)

    assert listed == []


async def test_arguments_are_checked_before_anything_is_done(office: Office) -> None:
    with pytest.raises(InvalidContent, match="nonsense: is not a parameter here"):
        await office.run(tenants.ADD, name="Lab", nonsense=1)

    assert await office.store.tenants() == []


async def test_another_refusal_is_recorded_by_the_operation_alone(
    office: Office, lab: str
) -> None:
    before = await office.records()

    with pytest.raises(NotPossible):
        await office.run(keys.REVOKE, token="x")

    assert (await office.records())[len(before) :] == [
        ("", "token.revoke", BEGUN, []),
        ("", "token.revoke", 400, []),
    ]
