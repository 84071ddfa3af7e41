"""Which stores a fault is tried on in a round."""

from __future__ import annotations

import pytest

from fhirpub.config.loader import variable

STORES = ("sqlite", "mongodb")


def mostly_on(store: str) -> pytest.MarkDecorator:
    """Try a fault on the store where it matters; with FHIRPUB_TEST_FULL set, on all."""
    chosen = STORES if variable("FHIRPUB_TEST_FULL") else [store]
    return pytest.mark.parametrize("store_url", chosen, indirect=True)
