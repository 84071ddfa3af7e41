"""URLs of endpoints that are read."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.webhooks.transport.pull_url import check_pull, is_pull


@pytest.mark.parametrize("url", ["pull:a", "pull:laptop-2", f"pull:{'x' * 64}"])
def test_a_name_is_accepted(url: str) -> None:
    assert check_pull(url) == url
    assert is_pull(url)


@pytest.mark.parametrize("url", ["pull:", "pull:A", "pull:-a", "pull:a b", f"pull:{'x' * 65}"])
def test_what_is_no_name_is_refused(url: str) -> None:
    with pytest.raises(InvalidContent, match="pull:NAME"):
        check_pull(url)
