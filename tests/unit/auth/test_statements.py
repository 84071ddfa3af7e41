"""Statements of the service: of one type, for one purpose, for a time, and once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from fhirpub.auth.statements import (
    VALID_SECONDS,
    OneTimeStatements,
    StatementReader,
    read_statement,
    sign_statement,
)
from fhirpub.errors import NotAuthenticated
from tests.unit.console.test_sessions import World, world

__all__ = ["world"]


@dataclass
class Desk:
    """What signs statements, on a store."""

    world: World

    @property
    def ring(self) -> Any:
        return self.world.sessions._tokens.ring

    @property
    def once(self) -> OneTimeStatements:
        return OneTimeStatements(self.ring, self.world.store, clock=self.world.clock)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


async def test_a_signed_statement_is_read(desk: Desk) -> None:
    statement = await sign_statement(desk.ring, {"a": 1}, type_="x+jwt")

    assert await read_statement(desk.ring, statement, type_="x+jwt") == {"a": 1}


async def test_a_statement_of_another_type_is_refused(desk: Desk) -> None:
    statement = await sign_statement(desk.ring, {"a": 1}, type_="x+jwt")

    with pytest.raises(NotAuthenticated):
        await read_statement(desk.ring, statement, type_="y+jwt")


async def test_a_changed_statement_is_refused(desk: Desk) -> None:
    head, _, end = (await sign_statement(desk.ring, {"a": 1}, type_="x+jwt")).split(".")
    other = (await sign_statement(desk.ring, {"a": 2}, type_="x+jwt")).split(".")[1]

    with pytest.raises(NotAuthenticated):
        await read_statement(desk.ring, f"{head}.{other}.{end}", type_="x+jwt")


def test_each_purpose_has_its_time() -> None:
    assert VALID_SECONDS == {
        "sign-in": 120,
        "invitation": 604_800,
        "challenge": 300,
        "provider": 600,
    }


@pytest.mark.parametrize("purpose", ["sign-in", "invitation", "challenge", "provider"])
@pytest.mark.parametrize(("late", "valid"), [(-1, True), (0, False)])
async def test_a_one_time_statement_ends_with_its_time(
    desk: Desk, purpose: Any, late: int, *, valid: bool
) -> None:
    statement = await desk.once.sign(purpose, {"sub": "c"})
    desk.world.clock.forward(seconds=VALID_SECONDS[cast("Any", purpose)] + late)

    if valid:
        assert (await desk.once.read(purpose, statement))["sub"] == "c"
    else:
        with pytest.raises(NotAuthenticated):
            await desk.once.read(purpose, statement)


async def test_claims_cannot_take_the_place_of_the_purpose_and_the_end(desk: Desk) -> None:
    claims = {"purpose": "invitation", "exp": 9_999_999_999, "jti": "x"}

    read = await desk.once.read("sign-in", await desk.once.sign("sign-in", claims))

    assert read["purpose"] == "sign-in"
    assert read["exp"] == desk.world.clock() // 1000 + 120
    assert read["jti"] != "x"


async def test_a_statement_is_used_once_by_all_processes(desk: Desk) -> None:
    statement = await desk.once.sign("sign-in", {"sub": "c"})
    other = desk.once

    await desk.once.use("sign-in", statement)

    with pytest.raises(NotAuthenticated) as refusal:
        await other.use("sign-in", statement)
    assert "used before" in refusal.value.reason


async def test_two_statements_are_used_each_once(desk: Desk) -> None:
    for _ in range(2):
        statement = await desk.once.sign("sign-in", {"sub": "c"})
        assert (await desk.once.use("sign-in", statement))["sub"] == "c"


async def test_a_statement_for_another_purpose_is_not_used_up(desk: Desk) -> None:
    statement = await desk.once.sign("sign-in", {"sub": "c"})

    with pytest.raises(NotAuthenticated):
        await desk.once.use("invitation", statement)

    assert await desk.once.use("sign-in", statement)


async def test_a_statement_is_read_by_any_key_of_the_store(desk: Desk) -> None:
    statement = await sign_statement(desk.ring, {"a": 1}, type_="x+jwt")

    assert await StatementReader(desk.world.store, type_="x+jwt").read(statement) == {"a": 1}


@pytest.mark.parametrize("type_", ["x+jwt", "y+jwt"])
async def test_what_no_key_of_the_store_has_signed_is_a_value_error(
    desk: Desk, type_: str
) -> None:
    statement = await sign_statement(desk.ring, {"a": 1}, type_="x+jwt")
    wrong = statement if type_ == "y+jwt" else statement[:-4]

    with pytest.raises(ValueError, match=r"."):
        await StatementReader(desk.world.store, type_=type_).read(wrong)
