"""How many connections a process may have, by its limit of open files."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from fhirpub.runtime.descriptors import (
    RESERVED_DESCRIPTORS,
    raise_descriptor_limit,
    usable_connections,
)


@pytest.fixture(autouse=True)
def limits() -> Iterator[tuple[int, int]]:
    """The limits as they are, restored at the end."""
    found = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield found
    resource.setrlimit(resource.RLIMIT_NOFILE, found)


@pytest.mark.parametrize(
    ("soft", "wanted", "usable"),
    [
        (1_000, 744, 744),
        (1_000, 745, 744),
        (1_000, 10, 10),
        (320, 1_000, 64),
        (321, 1_000, 65),
        (300, 1_000, 64),
    ],
)
def test_some_descriptors_are_kept_for_all_else(
    limits: tuple[int, int], soft: int, wanted: int, usable: int
) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, limits[1]))

    assert usable_connections(wanted) == usable
    assert RESERVED_DESCRIPTORS == 256


def test_the_soft_limit_is_raised_to_the_hard_one(limits: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, limits[1]))

    assert raise_descriptor_limit() == limits[1]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])


def test_without_a_limit_a_process_has_all_connections_that_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endless = resource.RLIM_INFINITY
    with monkeypatch.context() as patched:
        patched.setattr(resource, "getrlimit", lambda _which: (endless, endless))

        assert usable_connections(5_000) == 5_000


@pytest.mark.parametrize("problem", [OSError("too many"), ValueError("too many")])
def test_a_limit_that_the_system_does_not_raise_stays_as_it_is(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, limits[1]))

    def refuse(_which: int, _limits: tuple[int, int]) -> None:
        raise problem

    with monkeypatch.context() as patched:
        patched.setattr(resource, "setrlimit", refuse)

        assert raise_descriptor_limit() == 500
