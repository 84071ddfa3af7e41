"""A report whose results are invented."""

from __future__ import annotations

from typing import Any

REPORT: dict[str, Any] = {
    "identifier": [{"system": "s", "value": "a-7"}],
    "subject": {"reference": "Patient/p"},
    "effectiveDateTime": "2025-01-01T08:00:00Z",
    "specimen": [{"reference": "Specimen/1"}],
}
