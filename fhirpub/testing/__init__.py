"""The tests of fhirpub, for authors of plugins and storage engines.

Contracts are test classes to inherit, those of plugins in `fhirpub.testing.plugin_contracts`. A
running service and a webhook receiver are fixtures.
"""

from __future__ import annotations

import pytest

# Before the imports: only then do failing asserts in it show what was compared.
pytest.register_assert_rewrite("fhirpub.testing.contracts")

from fhirpub.testing.store_contract import StoreContract  # noqa: E402 - see above
from fhirpub.testing.webhook_contract import WebhookContract  # noqa: E402 - see above

__all__ = ["StoreContract", "WebhookContract"]
