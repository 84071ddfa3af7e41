"""What the log has of a client that calls from a place where it may not."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.clients import edit_client
from fhirpub.errors import TokenRefused
from tests.unit.auth.conftest import World


async def test_a_call_from_another_address_is_logged_with_the_client_and_the_address(
    world: World,
) -> None:
    await edit_client(world.access, world.client.id, networks=["198.51.100.0/24"])

    with capture_logs() as lines, pytest.raises(TokenRefused) as refused:
        await world.token()

    (line,) = [one for one in lines if one["event"] == "address not permitted"]
    assert (line["log_level"], line["client_id"]) == ("warning", world.client.id)
    assert line["address"]
    assert refused.value.client == world.client.id
    assert refused.value.error == "unauthorized_client"
