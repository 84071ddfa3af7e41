"""The name to use is a current one, if there is one."""

from __future__ import annotations

import pytest

from fhirpub.fhir.human_name import name_to_use


@pytest.mark.parametrize("former", ["old", "maiden"])
def test_a_former_name_is_used_only_without_another(former: str) -> None:
    before, now = {"use": former, "family": "Before"}, {"family": "Now"}

    assert name_to_use([before, now]) == now
    assert name_to_use([before]) == before
