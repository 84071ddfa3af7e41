"""Resources with wrong elements, and the sentences about them that several tests expect."""

from __future__ import annotations

from typing import Any

EXTENSION: dict[str, Any] = {
    "extension": [{"url": "http://example.org/why", "valueCode": "masked"}]
}
STRING = (
    "must be a valid string: 1 to 1,048,576 characters, no control characters but tab, CR and LF"
)
CODE = "must be a valid code: one of male, female, other, unknown"
PAIRED = "needs a value or an extension at each position, and as many values as siblings"
UNKNOWN = "has properties that FHIR R4 does not have here: "
ADVICE = "; leave it out, or send it as an extension"


def patient(**elements: Any) -> dict[str, Any]:
    return {"resourceType": "Patient", **elements}
