"""What the handlers of the audit trail do, in the words of OpenAPI."""

from __future__ import annotations

from typing import Any

from tests.unit.web.openapi import described


def test_operations_of_the_audit_trail_are_described_as_they_are_wanted(document: Any) -> None:
    found = described.of_tags(described.operations(document), "AuditEvent")

    assert found == described.of_tags(described.wanted("operations"), "AuditEvent")
    assert found
