"""What we test ourselves with, shipped for those who add an engine or a resource type."""

from __future__ import annotations

import pytest

# Before the import: only then do failing asserts in them show what was compared.
pytest.register_assert_rewrite(
    "fhirpub.testing.store_contract",
    "fhirpub.testing.webhook_contract",
    "fhirpub.testing.resource_type_contract",
)

from fhirpub.testing.store_contract import StoreContract  # noqa: E402 - see above

__all__ = ["StoreContract"]
