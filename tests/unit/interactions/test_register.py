"""A registration: stored once, answered again, and refused without leaving anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import InvalidContent, Refused, StoreUnavailable
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import (
    Candidate,
    Rejected,
    find_first,
    register,
    repeats,
    reserve_nothing,
)
from fhirpub.storage.sqlite.store import SqliteStore
from tests.bodies import document, register_body
from tests.unit.interactions.patients.people import OTHER, START, TENANT, context_of
from tests.unit.interactions.registering import (
    KEY,
    Quota,
    candidate,
    found,
    prepared,
    rejected,
)


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


async def test_a_new_identifier_is_registered(context: Context) -> None:
    added: list[int] = []
    context = replace(context, added=lambda: added.append(1))
    quota = Quota()
    one = candidate(context)

    made = await register(one, None, tenant=TENANT, context=context, reserve=quota)

    assert (made.created, made.same, made.repeated) == (True, None, None)
    assert made.first.id == one.id == TENANT.resource_id(*KEY)
    assert (quota.sizes, quota.outcomes) == ([one.size], [True])
    assert added == [1]
    stored = await found(context)
    assert stored is not None
    assert (stored.body, stored.created, stored.updated) == (one.version.body, START, START)


async def test_the_size_is_that_of_the_version_and_its_documents(context: Context) -> None:
    one = candidate(context)

    documents = sum(len(blob.data) for blob in one.blobs)
    assert one.size == one.version.size + documents


async def test_a_document_beside_the_version_counts_for_its_size(context: Context) -> None:
    data = b"%PDF-1.4" + bytes(range(256)) * 400

    one = candidate(context, presentedForm=[document(data)])

    assert [len(blob.data) for blob in one.blobs] == [len(data)]
    assert one.size == one.version.size + len(data)


async def test_a_repetition_is_answered_without_a_reservation(context: Context) -> None:
    one, quota = candidate(context), Quota()
    await register(one, None, tenant=TENANT, context=context)
    first = await found(context)

    again = await register(
        candidate(context), first, tenant=TENANT, context=context, reserve=quota
    )

    assert (again.created, again.same, again.repeated) == (False, True, None)
    assert again.first == first
    assert quota.sizes == []


async def test_another_content_under_the_identifier_is_answered_with_the_first(
    context: Context,
) -> None:
    await register(candidate(context), None, tenant=TENANT, context=context)
    first, quota = await found(context), Quota()
    other = candidate(context, conclusion="other")

    again = await register(other, first, tenant=TENANT, context=context, reserve=quota)

    assert (again.created, again.same, again.first) == (False, False, first)
    assert again.repeated == other.version
    assert quota.sizes == []
    assert (await found(context)) == first


async def test_who_comes_second_gets_what_the_first_one_stored(context: Context) -> None:
    quota = Quota()
    added: list[int] = []
    context = replace(context, added=lambda: added.append(1))
    await register(candidate(context), None, tenant=TENANT, context=context)

    same = await register(candidate(context), None, tenant=TENANT, context=context, reserve=quota)
    other = await register(
        candidate(context, conclusion="x"), None, tenant=TENANT, context=context, reserve=quota
    )

    assert (same.created, same.same) == (False, True)
    assert (other.created, other.same) == (False, False)
    assert quota.outcomes == [False, False]
    assert added == [1]


async def test_a_reservation_that_is_refused_leaves_nothing(context: Context) -> None:
    def refuse(_size: int) -> Callable[..., None]:
        raise InvalidContent([])

    with pytest.raises(InvalidContent):
        await register(candidate(context), None, tenant=TENANT, context=context, reserve=refuse)

    assert await found(context) is None


async def test_a_store_that_fails_gives_the_reservation_back(context: Context) -> None:
    class Failing:
        async def add(self, *_arguments: Any) -> bool:
            raise StoreUnavailable("test")

    quota = Quota()
    failing: Any = Failing()
    with pytest.raises(StoreUnavailable):
        await register(
            candidate(context),
            None,
            tenant=TENANT,
            context=replace(context, resources=failing),
            reserve=quota,
        )

    assert quota.outcomes == [False]


async def test_each_tenant_has_resources_of_its_own(context: Context) -> None:
    await register(candidate(context), None, tenant=TENANT, context=context)

    assert await find_first(KEY, tenant=OTHER, context=context) is None
    theirs = prepared(context, register_body("R-1"), tenant=OTHER)
    assert isinstance(theirs, Candidate)
    made = await register(theirs, None, tenant=OTHER, context=context)
    assert made.created
    assert made.first.id != TENANT.resource_id(*KEY)


async def test_without_an_identifier_nothing_is_registered_under_it(context: Context) -> None:
    assert await find_first(None, tenant=TENANT, context=context) is None


async def test_what_is_refused_is_answered_if_it_repeats_what_is_stored(context: Context) -> None:
    wrong = rejected(context, status="nonsense")
    first = replace(candidate(context).version, digest=wrong.digest)

    again = await register(wrong, first, tenant=TENANT, context=context)

    assert (again.created, again.same, again.first) == (False, True, first)


async def test_what_is_refused_is_not_stored(context: Context) -> None:
    wrong = rejected(context, status="nonsense")
    first = candidate(context).version

    for known in (None, first):
        with pytest.raises(Refused):
            await register(wrong, known, tenant=TENANT, context=context)
    assert await found(context) is None


async def test_a_refusal_is_raised_each_time_as_a_copy(context: Context) -> None:
    wrong = rejected(context, status="nonsense")

    one, other = wrong.error(), wrong.error()

    assert type(one) is type(wrong.refusal)
    assert one is not other
    assert [*one.issues] == [*wrong.refusal.issues]
    assert wrong.id == TENANT.resource_id(*KEY)


async def test_a_patient_that_is_not_held_is_named_at_its_reference(context: Context) -> None:
    body = register_body("R-1", subject={"reference": f"Patient/{TENANT.id}"})
    del body["parameter"][0]
    wrong = prepared(context, body)
    assert isinstance(wrong, Rejected)
    assert wrong.held is not None

    *_others, issue = wrong.with_unknown_patient().refusal.issues

    assert issue.expression == "Parameters.parameter[1].resource.subject.reference"
    assert issue.diagnostics == (
        f"refers to Patient/{TENANT.id}, which is not held here: send the patient"
    )


async def test_a_patient_that_is_not_held_is_named_behind_all_that_is_wrong(
    context: Context,
) -> None:
    body = register_body("R-1", subject={"reference": f"Patient/{TENANT.id}"}, status="nonsense")
    del body["parameter"][0]
    wrong = prepared(context, body)
    assert isinstance(wrong, Rejected)

    found = wrong.with_unknown_patient().refusal.issues

    assert [*found][:-1] == [*wrong.refusal.issues]
    assert "Parameters.parameter[1].resource.status" in [one.expression for one in found]


async def test_what_lacks_no_patient_is_refused_as_before(context: Context) -> None:
    wrong = rejected(context, status="nonsense")

    assert wrong.held is None
    assert wrong.with_unknown_patient() is wrong


def test_without_an_identifier_a_refusal_is_raised_at_once(context: Context) -> None:
    with pytest.raises(Refused):
        prepared(context, register_body("R-1", identifier=None))


def test_only_the_same_digest_is_a_repetition(context: Context) -> None:
    one, other = candidate(context), candidate(context, conclusion="other")

    assert repeats(one.version, one.digest) is True
    assert repeats(one.version, other.digest) is False
    assert repeats(replace(one.version, digest=b""), one.digest) is False
    assert repeats(None, one.digest) is False


def test_nothing_is_reserved_without_a_quota() -> None:
    reserve_nothing(7)(created=True)


async def test_what_was_stored_before_there_were_digests_is_answered_as_it_is(
    context: Context,
) -> None:
    first = replace(candidate(context).version, digest=b"")

    again = await register(
        candidate(context, conclusion="other"), first, tenant=TENANT, context=context
    )

    assert (again.created, again.same, again.repeated) == (False, None, None)
