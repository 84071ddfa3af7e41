"""The schemas of strings and numbers in the text forms of FHIR: patterns, lengths and limits."""

from __future__ import annotations

from typing import Any

LARGEST_STRING = 1_048_576
LARGEST_INTEGER = 2**31 - 1

# What may be in a string is said by what may not: a search for one forbidden character reads
# alike in every engine. Only dates need an end anchor, and there the same keyword shuts out the
# line feed that Python's ``$`` would overlook.
CONTROL = r"[\u0000-\u0008\u000b\u000c\u000e-\u001f]"
BLANK = r"[\u0000-\u0020]"
YEAR = "([0-9]([0-9]([0-9][1-9]|[1-9]0)|[1-9]00)|[1-9]000)"
MONTH = "(0[1-9]|1[0-2])"
DATE = (  # a day of the calendar: months of 28, 30 and 31 days, and 29 February of leap years
    f"{YEAR}-(02-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))"
    "|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29"
)
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
OFFSET = r"(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"

Schema = dict[str, Any]


def text(forbidden: str, **more: Any) -> Schema:
    """Return the schema of a string that holds none of the forbidden characters."""
    sizes = {"minLength": 1, "maxLength": LARGEST_STRING}
    return {"type": "string", **sizes, "not": {"pattern": forbidden}, **more}


def shape(pattern: str, alphabet: str) -> Schema:
    """Return the schema of a string with a fixed shape, made of ``alphabet`` only."""
    return text(f"[^{alphabet}]", pattern=f"^{pattern}$")


def whole(minimum: int) -> Schema:
    """Return the schema of an integer; ``fhirInteger`` refuses 2.0, which drafts let pass."""
    limits = {"minimum": minimum, "maximum": LARGEST_INTEGER}
    return {"type": "integer", "fhirInteger": True, **limits}


STRING = text(CONTROL)
URI = text(BLANK)
HASH: Schema = {
    "title": "hash",
    "description": "a string that is not empty",
    "type": "string",
    "minLength": 1,
}
"""R4 has base64 here, of SHA-1; others are taken too (D-58)."""
STRING_SAID = "1 to 1,048,576 characters, no control characters but tab, CR and LF"
URI_SAID = "a string without white space or control characters"
LIMITS: dict[str, tuple[str, Schema]] = {
    "one": ("must be 1", {"const": "1"}),
    "positive": ("must be more than 0", {"exclusiveMinimum": 0}),
    "ucum": ("must be http://unitsofmeasure.org", {"const": "http://unitsofmeasure.org"}),
    "unsigned": ("must not be negative", {"minimum": 0}),
    "whole": ("must be a whole number", {"type": "integer", "fhirInteger": True}),
}
"""What FHIR's rules ask of the value of an element: in words, and as a schema."""
