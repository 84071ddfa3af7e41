"""A revision under the condition of a version, and one that is repeated."""

from __future__ import annotations

import hashlib

import pytest

from fhirpub.errors import BrokenRule, VersionReplaced
from fhirpub.interactions.revision.comparison import Revision, Stored, compare
from fhirpub.interactions.revision.revise import revise
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import successor
from tests.bodies import document
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.revision.revising import (
    accept_any,
    body_of,
    candidate_of,
    numbered,
    registered,
    revised,
)


@pytest.fixture
async def report(ward: Ward) -> Version:
    return await registered(ward, numbered(1))


class Replaced(VersionReplaced):
    """The condition of a client, as the service raises it."""

    def __init__(self) -> None:
        Exception.__init__(self, "replaced")


def only_first(newest: Version) -> None:
    if newest.version != 1:
        raise Replaced


async def test_the_version_of_the_condition_is_revised(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), check=only_first)

    assert changed.created


async def test_a_later_version_than_that_of_the_condition_is_not_revised(
    ward: Ward, report: Version
) -> None:
    await revised(ward, report, numbered(1, 7.5))

    with pytest.raises(VersionReplaced):
        await revised(ward, report, numbered(1, 8.5), check=only_first)
    assert await ward.store.version(ward.tenant.id, report.id, 3) is None


async def test_a_repetition_under_the_condition_that_was_met_is_answered(
    ward: Ward, report: Version
) -> None:
    await revised(ward, report, numbered(1, 7.5), check=only_first)

    again = await revised(ward, report, numbered(1, 7.5), check=only_first)

    assert (again.created, again.version.version) == (False, 2)


async def test_the_condition_is_named_before_what_is_wrong(ward: Ward, report: Version) -> None:
    await revised(ward, report, numbered(1, 7.5))

    with pytest.raises(VersionReplaced):
        await revised(ward, report, numbered(1, 7.5), code={"text": "x"}, check=only_first)
    with pytest.raises(BrokenRule):
        await revised(ward, report, numbered(1, 7.5), code={"text": "x"})


async def test_what_is_revised_is_stored(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1, 7.5))

    stored = await ward.store.latest(ward.tenant.id, report.id)
    assert stored is not None
    assert (stored.version, stored.body) == (2, changed.version.body)
    member = await ward.store.latest(ward.tenant.id, report.members[0].id)
    assert member is not None
    assert (member.version, b"7.5" in member.body) == (2, True)


async def test_the_documents_of_a_revision_are_stored(ward: Ward, report: Version) -> None:
    data = b"%PDF-1.4" + bytes(range(256)) * 400

    changed = await revised(ward, report, numbered(1), presentedForm=[document(data)])

    (name,) = changed.version.documents
    assert name == hashlib.sha256(data).hexdigest()
    assert {*await ward.store.blobs(ward.tenant.id, {name})} == {name}


async def test_a_revision_that_loses_a_race_is_compared_with_what_the_other_call_stored(
    ward: Ward, report: Version
) -> None:
    candidate = candidate_of(ward, body_of(numbered(1, 7.5), status="preliminary"))
    compared: list[int] = []

    async def newest_of() -> Version:
        found = await ward.store.latest(ward.tenant.id, report.id)
        assert found is not None
        return found

    async def compare_late(given: Version, stored: Stored) -> Revision:
        compared.append(stored.latest.version)
        if len(compared) == 1:
            assert await ward.store.add(ward.tenant.id, successor(report, members=()))
        return compare(ward.context, given, stored)

    changed = await revise(
        candidate, newest_of=newest_of, check=accept_any, compare=compare_late, **ward.named
    )

    assert compared == [1, 2]
    assert (changed.created, changed.version.version) == (True, 3)
