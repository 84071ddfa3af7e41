"""What the store keeps of a one-time statement that was used, and how many it keeps."""

from __future__ import annotations

import pytest

from fhirpub.auth import statements
from fhirpub.auth.keys import rotate
from fhirpub.auth.statements import VALID_SECONDS, StatementReader, sign_statement
from fhirpub.errors import NotAuthenticated
from tests.unit.auth.conftest import World
from tests.unit.auth.test_statements import once_of


async def test_a_used_statement_is_remembered_until_it_ends(world: World) -> None:
    once = once_of(world)
    await once.use("invitation", await once.sign("invitation", {"sub": "c"}))

    (used,) = world.access.used.values()
    assert used.until == world.clock() + VALID_SECONDS["invitation"] * 1000


async def test_a_statement_is_used_once(world: World) -> None:
    statement = await once_of(world).sign("sign-in", {"sub": "c"})
    await once_of(world).use("sign-in", statement)

    with pytest.raises(NotAuthenticated) as refused:
        await once_of(world).use("sign-in", statement)

    assert refused.value.reason == "used before"


async def test_more_statements_than_are_kept_are_not_used(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_MAX_LIVE", 1)
    once = once_of(world)
    first, second = [await once.sign("challenge", {}) for _ in range(2)]
    await once.use("challenge", first)

    with pytest.raises(NotAuthenticated):
        await once.use("challenge", second)


async def test_many_statements_for_one_purpose_keep_no_other_from_being_used(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_MAX_LIVE", 1)
    once = once_of(world)
    await once.use("challenge", await once.sign("challenge", {}))

    assert await once.use("invitation", await once.sign("invitation", {}))


async def test_a_statement_is_read_by_the_key_that_signed_it_once_that_is_retired(
    world: World,
) -> None:
    statement = await sign_statement(world.tokens.ring, {"a": 1}, type_="x+jwt")
    await rotate(world.access, world.config, clock=world.clock)
    world.clock.pass_seconds(365 * 86_400)

    assert await StatementReader(world.access, type_="x+jwt").read(statement) == {"a": 1}
