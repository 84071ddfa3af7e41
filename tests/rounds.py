"""Rounds of the tests: the usual one, and the full one of ``scripts/test --full``."""

from __future__ import annotations

import pytest

from fhirpub.config.loader import variable

ONLY_FULL = pytest.mark.skipif(
    not variable("FHIRPUB_TEST_FULL"), reason="a long test: scripts/test --full"
)
"""Marks a test that runs in a full round alone."""
