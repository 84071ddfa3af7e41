from __future__ import annotations

import pytest

from fhirpub.audit.identity import id_of, place_of

PREFIX = "0123456789ab"


def test_an_id_leads_back_to_its_block_and_place() -> None:
    assert place_of(id_of(PREFIX, 7, 12), PREFIX) == (7, 12)


def test_the_id_of_another_tenant_leads_nowhere() -> None:
    assert place_of("ba9876543210-7-12", PREFIX) is None


@pytest.mark.parametrize(
    ("event_id", "place"),
    [
        (f"{PREFIX}-1-0", (1, 0)),
        (f"{PREFIX}-{'9' * 18}-{'9' * 9}", (10**18 - 1, 10**9 - 1)),
        (f"{PREFIX}-{'9' * 19}-0", None),
        (f"{PREFIX}-1-{'9' * 10}", None),
        (f"{PREFIX}-0-1", None),
        (f"{PREFIX}-01-1", None),
        (f"{PREFIX}-1-00", None),
        (f"{PREFIX}-1-0\n", None),
        (f"{PREFIX}-1", None),
        (f"{PREFIX}-1-0-0", None),
        (f"{PREFIX.upper()}-1-0", None),
        ("", None),
    ],
)
def test_an_id_that_was_never_given_leads_nowhere(
    event_id: str, place: tuple[int, int] | None
) -> None:
    assert place_of(event_id, PREFIX) == place
