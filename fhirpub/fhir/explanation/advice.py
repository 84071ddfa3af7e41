"""What to write in place of a value that is refused. It repeats nothing of the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fhirpub.suggestion import nearest

_EXAMPLES = {
    "Address": '{"text": "..."}',
    "Annotation": '{"text": "..."}',
    "Attachment": '{"contentType": "application/pdf", "data": "...", "hash": "..."}',
    "CodeableConcept": '{"coding": [{"system": "...", "code": "..."}], "text": "..."}',
    "Coding": '{"system": "...", "code": "..."}',
    "ContactPoint": '{"system": "phone", "value": "..."}',
    "Extension": '{"url": "...", "valueString": "..."}',
    "HumanName": '{"family": "...", "given": ["..."]}',
    "Identifier": '{"system": "...", "value": "..."}',
    "Meta": '{"profile": ["..."]}',
    "Narrative": '{"status": "generated", "div": "<div ..."}',
    "Period": '{"start": "...", "end": "..."}',
    "Quantity": '{"value": 5.4, "unit": "mmol/L"}',
    "Reference": '{"reference": "<Type>/<id>"}',
}
_TIMES = {
    "date": ", such as 1984-03-09",
    "dateTime": "",
    "instant": "",
    "time": ", such as 08:15:00",
}
"""Examples of times, for those whose description has none."""
_NUMBERS = frozenset({"integer", "positiveInt", "unsignedInt"})
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d"
_WHY_NO_TIME = {
    re.compile(_DAY): "there is no such day",
    re.compile(rf"{_DAY} .*"): "a T stands between date and time",
    re.compile(r"\d{8}.*"): "hyphens stand between year, month and day",
    re.compile(r"[^-]*/.*|\d\d?[-.].*"): "the year comes first, with hyphens",
}
_WHY_NO_MOMENT = {
    re.compile(r"(2[4-9]|[3-9]\d):.*|.*[AaPp]\.?[Mm]\.?"): "the hours go from 00 to 23",
    re.compile(rf"{_CLOCK}(Z|[+-].*)?"): "the seconds are missing",
    re.compile(rf"{_CLOCK}:\d\d(\.\d+)?"): "the offset is missing",
    re.compile(rf"{_CLOCK}.*[+-]\d{{2}}(\d\d)?"): "the offset has the form -03:00",
}
_LONGEST_TIME = 64
_WHITE_SPACE = " \t\r\n"


def example_of(type_name: str, *, repeats: bool = False) -> str:
    """Return the end of a sentence: an example of a type, empty for one that has none."""
    example = _EXAMPLES.get(type_name, "")
    return example and f", such as {f'[{example}]' if repeats else example}"


def advise(schema: Mapping[str, Any], value: Any) -> str:
    """Return the end of a sentence about a value that the schema of a primitive type refuses.

    It takes up to a millisecond, so that few problems of a body get one.
    """
    if isinstance(value, dict | list):
        return f"; here is an {'object' if isinstance(value, dict) else 'array'}"
    title = str(schema.get("title", ""))
    if isinstance(value, str):
        return _advise_on_text(title, schema.get("enum", ()), value)
    is_text = schema.get("type") == "string" or "enum" in schema
    return "; in quotation marks" if is_text else ""


def _advise_on_text(title: str, codes: Any, text: str) -> str:
    if codes:
        return suggest_code(text, codes)
    if title in _TIMES:
        why = _why_no_time(title, text) if len(text) <= _LONGEST_TIME else ""
        return f"{_TIMES[title]}{why and '; '}{why}"
    if title in _NUMBERS:
        return "; without quotation marks"
    return f"; {explain_base64(text)}" if title == "base64Binary" else ""


def suggest_code(text: str, codes: Any) -> str:
    """Return the end of a sentence: the code that was meant, or nothing."""
    starting = [code for code in codes if text and code.startswith(text.lower())]
    near = starting[0] if len(starting) == 1 else nearest(text, codes)
    return f"; did you mean {near}?" if near else ""


def _why_no_time(title: str, text: str) -> str:
    day, _, clock = text.partition("T")
    if clock and title == "date":
        return "leave out the time"
    if title == "instant" and re.fullmatch(_DAY, text):
        return "the time is missing"
    forms = _WHY_NO_MOMENT if clock and re.fullmatch(_DAY, day) else _WHY_NO_TIME
    return next((why for form, why in forms.items() if form.fullmatch(clock or text)), "")


def explain_base64(text: str) -> str:
    """Return why a text is not base64."""
    if not text:
        return "it is empty"
    if text.startswith("data:"):
        return "leave out data:...;base64, before it"
    if text.startswith("%PDF"):
        return "these are the bytes themselves: encode them"
    if "-" in text or "_" in text:
        return "it has - or _ of the URL-safe alphabet: the standard one has + and /"
    if (len(text) - sum(map(text.count, _WHITE_SPACE))) % 4:
        return "its length is no multiple of 4: it is cut short, or lacks = at its end"
    return "it has other characters than A-Z, a-z, 0-9, +, / and =, or bits that belong to none"
