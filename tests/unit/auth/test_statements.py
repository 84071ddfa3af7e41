"""Statements of the service: of one type, for one purpose, for a time, and once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.auth.statements import (
    VALID_SECONDS,
    OneTimeStatements,
    Purpose,
    StatementReader,
    read_statement,
    sign_statement,
)
from fhirpub.config.settings import ENVIRONMENTS
from fhirpub.errors import NotAuthenticated
from tests.unit.auth.conftest import World

PURPOSES = ("sign-in", "invitation", "challenge", "provider")


def once_of(world: World) -> OneTimeStatements:
    return OneTimeStatements(world.tokens.ring, world.access, clock=world.clock)


async def signed(world: World, number: int = 1) -> str:
    return await sign_statement(world.tokens.ring, {"a": number}, type_="x+jwt")


async def test_a_signed_statement_is_read(world: World) -> None:
    statement = await signed(world)

    assert await read_statement(world.tokens.ring, statement, type_="x+jwt") == {"a": 1}


async def test_a_statement_of_another_type_is_refused(world: World) -> None:
    statement = await signed(world)

    with pytest.raises(NotAuthenticated):
        await read_statement(world.tokens.ring, statement, type_="y+jwt")


async def test_a_changed_statement_is_refused(world: World) -> None:
    head, _, end = (await signed(world)).split(".")
    other = (await signed(world, 2)).split(".")[1]

    with pytest.raises(NotAuthenticated):
        await read_statement(world.tokens.ring, f"{head}.{other}.{end}", type_="x+jwt")


def test_each_purpose_has_its_time() -> None:
    assert VALID_SECONDS == {
        "sign-in": 120,
        "invitation": 604_800,
        "challenge": 300,
        "provider": 600,
    }


@pytest.mark.parametrize("purpose", PURPOSES)
async def test_a_one_time_statement_is_valid_for_its_time(world: World, purpose: Purpose) -> None:
    once = once_of(world)
    statement = await once.sign(purpose, {"sub": "c"})
    world.clock.pass_seconds(VALID_SECONDS[purpose] - 1)

    assert (await once.read(purpose, statement))["sub"] == "c"


@pytest.mark.parametrize("purpose", PURPOSES)
async def test_a_one_time_statement_ends_with_its_time(world: World, purpose: Purpose) -> None:
    once = once_of(world)
    statement = await once.sign(purpose, {"sub": "c"})
    world.clock.pass_seconds(VALID_SECONDS[purpose])

    with pytest.raises(NotAuthenticated):
        await once.read(purpose, statement)


async def test_claims_cannot_take_the_place_of_the_purpose_and_the_end(world: World) -> None:
    claims = {"purpose": "invitation", "exp": 9_999_999_999, "jti": "x"}

    read = await once_of(world).read("sign-in", await once_of(world).sign("sign-in", claims))

    assert read["purpose"] == "sign-in"
    assert read["exp"] == world.clock() // 1000 + 120
    assert read["jti"] != "x"


async def test_two_statements_are_used_each_once(world: World) -> None:
    for _ in range(2):
        statement = await once_of(world).sign("sign-in", {"sub": "c"})
        assert (await once_of(world).use("sign-in", statement))["sub"] == "c"


async def test_a_statement_for_another_purpose_is_not_used_up(world: World) -> None:
    statement = await once_of(world).sign("sign-in", {"sub": "c"})

    with pytest.raises(NotAuthenticated):
        await once_of(world).use("invitation", statement)

    assert await once_of(world).use("sign-in", statement)


async def test_a_statement_is_read_by_any_key_of_the_store(world: World) -> None:
    statement = await signed(world)

    assert await StatementReader(world.access, type_="x+jwt").read(statement) == {"a": 1}


@pytest.mark.parametrize(
    ("type_", "length", "reason"),
    [("x+jwt", -2, "signature"), ("y+jwt", None, "header")],
    ids=["a signature that is cut short", "another type"],
)
async def test_what_no_key_of_the_store_has_signed_is_a_value_error(
    world: World, type_: str, length: int | None, reason: str
) -> None:
    statement = await signed(world)

    with pytest.raises(ValueError, match=f"^{reason}$"):
        await StatementReader(world.access, type_=type_).read(statement[:length])


async def test_what_a_key_of_another_store_has_signed_is_a_value_error(
    world: World, make_world: Callable[..., Any]
) -> None:
    other: World = await make_world()

    with pytest.raises(ValueError, match=r"^kid$"):
        await StatementReader(other.access, type_="x+jwt").read(await signed(world))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
async def test_a_statement_is_read_by_a_key_of_any_environment(
    make_world: Callable[..., Any], environment: str
) -> None:
    world: World = await make_world(environment=environment)

    assert await StatementReader(world.access, type_="x+jwt").read(await signed(world)) == {"a": 1}
