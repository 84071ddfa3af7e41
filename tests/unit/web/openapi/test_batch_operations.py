"""What the handlers of batches do, in the words of OpenAPI."""

from __future__ import annotations

from typing import Any

from tests.unit.web.openapi import described


def test_operations_of_batches_are_described_as_they_are_wanted(document: Any) -> None:
    found = described.of_tags(described.operations(document), "Batch")

    assert found == described.of_tags(described.wanted("operations"), "Batch")
    assert found
