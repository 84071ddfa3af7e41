"""Records of erasures, as the service returns them."""

from __future__ import annotations

from typing import Any


def erased(**changes: Any) -> dict[str, Any]:
    """Return the record of a report that was erased whole."""
    usual = {
        "type": "DiagnosticReport",
        "id": "r-1",
        "versions": 2,
        "members": 3,
        "documents": 4,
        "documents_kept": 1,
        "documents_later": 0,
        "bytes": 9,
        "is_complete": True,
    }
    return usual | changes
