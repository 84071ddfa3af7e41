"""Values of results (OBX-5, 6, 7, 8) as FHIR."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import groupby

from fhirpub_hl7v2.mapping.context import Context, JsonObject, codings, is_time, present, text_of
from fhirpub_hl7v2.message import Segment, Value

UCUM = "http://unitsofmeasure.org"
_INTERPRETATION = "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation"
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})", re.ASCII)
_COMPARED = re.compile(r"(<=|>=|<|>)\s*(\S+)")
_BETWEEN = re.compile(r"(-?[\d.]+)\s*-\s*(-?[\d.]+)")
_WRITTEN = {"=": "", "=<": "<=", "=>": ">="}
_CLOCK = re.compile(r"(\d\d)(\d\d)(?:(\d\d)(?:\.\d+)?)?(?:[+-]\d{4})?", re.ASCII)
_CODE = re.compile(r"[^\s^]+(?: [^\s^]+)*")
_KNOWN_FLAGS = frozenset(
    "< > A AA B CAR D DET E EX EXP H HH HU I IE IND L LL LU MS N NCL ND NEG NR NS POS R RR S SDD "
    "SYN-R SYN-S U UNE VS W WR".split()
)
"""Those of HL7 table 0078 that HL7's guide maps to the same code of interpretations."""


def number(text: str) -> Decimal | None:
    """Return a number of HL7 with the digits that were sent; None if it is none."""
    return Decimal(f"{Decimal(text):f}") if _NUMBER.fullmatch(text) else None


def quantity(text: str, unit: JsonObject, comparator: str = "") -> JsonObject | None:
    """Return a Quantity; None if the text is no number."""
    value = number(text)
    if value is None:
        return None
    return {"value": value, **present(comparator=comparator), **unit}


def unit_of(context: Context, segment: Segment) -> JsonObject:
    """Return the unit of OBX-6 as elements of a Quantity, with the code if it is one of UCUM."""
    value = segment.value(6)
    for at in (1, 4):
        if context.coding_system(value.text(at + 2)) == UCUM and value.text(at):
            code = value.whole(at)
            return present(unit=value.whole(at + 1) or code, system=UCUM, code=code)
    if is_power(value):
        return {"unit": str(value)}
    return present(unit=value.whole(2) or value.whole(1))


def is_power(unit: Value) -> bool:
    """Return whether a unit is one such as 10^9/L, whose delimiter was not escaped."""
    return unit.text(1) == "10" and not unit.text(3)


def interpretation(segment: Segment) -> list[JsonObject]:
    """Return the abnormal flags of OBX-8, those that are not known as texts."""
    return [
        dict(codings(_INTERPRETATION, code)) if code in _KNOWN_FLAGS else {"text": code}
        for value in segment.values(8)
        if (code := value.text())
    ]


def reference_range(segment: Segment, unit: JsonObject) -> list[JsonObject]:
    """Return OBX-7: limits if they can be read, and always the text."""
    text = str(segment.value(7))
    if not text:
        return []
    low: JsonObject | None = None
    high: JsonObject | None = None
    if between := _BETWEEN.fullmatch(text):
        low, high = quantity(between[1], unit), quantity(between[2], unit)
    elif compared := _COMPARED.fullmatch(text):
        limit = quantity(compared[2], unit)
        low, high = (limit, None) if compared[1][0] == ">" else (None, limit)
    return [present(low=low, high=high, text=text)]


def value_of(context: Context, segment: Segment) -> JsonObject:
    """Return OBX-5 as the element ``value[x]``; {} if it is empty."""
    values = segment.values(5)
    kind = segment.text(2)
    if not values:
        return {}
    read = _KINDS.get(kind) or (_text if kind in _TEXTS else None)
    if len(values) > 1 and read in _OF_ONE:
        read = _text
    if read is None:
        context.report(
            segment, f"is not supported; supported are ED, {', '.join(filter(None, _KINDS))}", 2
        )
        return {}
    return read(context, segment, values)


def _numeric(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a number, also with a comparator before it; what is no number remains a text."""
    text, comparator = str(values[0]), ""
    if compared := _COMPARED.fullmatch(text):
        comparator, text = compared[1], compared[2]
    made = quantity(text, unit_of(context, segment), comparator)
    if made is None:
        return _text(context, segment, values)
    return {"valueQuantity": made}


def _structured(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a structured numeric: a quantity, a range or a ratio; else its text."""
    if len(values) > 1:
        return {"valueString": "\n".join(map(as_written, values))}
    value, unit = values[0], unit_of(context, segment)
    comparator, separator = _WRITTEN.get(value.text(1), value.text(1)), value.text(3)
    first, second = quantity(value.text(2), unit), quantity(value.text(4), unit)
    if comparator in ("", "<", ">", "<=", ">=") and first and not (separator or value.text(4)):
        return {"valueQuantity": {**first, **present(comparator=comparator)}}
    if not comparator and separator == "-" and first and second:
        return {"valueRange": {"low": first, "high": second}}
    if not comparator and separator in (":", "/") and first and second:
        return {"valueRatio": {"numerator": first, "denominator": second}}
    return {"valueString": as_written(value)}


def as_written(value: Value) -> str:
    """Return a structured numeric as people write it; numbers never run together."""
    comparator, first, separator, second = (value.whole(at) for at in range(1, 5))
    return f"{comparator}{first}{separator or (' ' if second else '')}{second}".strip()


def _text(_context: Context, _segment: Segment, values: Sequence[Value]) -> JsonObject:
    return present(valueString="\n".join(map(str, values)))


def _coded(context: Context, _segment: Segment, values: Sequence[Value]) -> JsonObject:
    concept = context.concept(values[0])
    if len(values) > 1:
        concept["coding"] = [
            coding for value in values for coding in context.concept(value).get("coding", [])
        ]
        concept["text"] = "; ".join(key for key, _ in groupby(map(text_of, values)))
    return {"valueCodeableConcept": present(**concept)}


def _of_table(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a code of a table of the sender; what cannot be a code remains a text."""
    if len(values) == 1 and _CODE.fullmatch(str(values[0])):
        return _coded(context, segment, values)
    return _text(context, segment, values)


def _moment(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a time; what cannot be read as one remains a text."""
    if not is_time(values[0].text()):
        return _text(context, segment, values)
    return present(valueDateTime=context.time(segment, 5, values[0].text()))


def _clock(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    found = _CLOCK.fullmatch(values[0].text())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        return _text(context, segment, values)
    return {"valueTime": f"{found[1]}:{found[2]}:{found[3] or '00'}"}


def _period(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a range of times; else its text."""
    limits = [values[0].text(at) for at in (1, 2)]
    if not all(map(is_time, filter(None, limits))):
        return _text(context, segment, values)
    start, end = (context.time(segment, 5, limit) for limit in limits)
    return present(valuePeriod=present(start=start, end=end))


def _between(context: Context, segment: Segment, values: Sequence[Value]) -> JsonObject:
    """Return a range of numbers; else its text."""
    unit = unit_of(context, segment)
    limits = [text for at in (1, 2) if (text := values[0].text(at))]
    if not limits or any(number(limit) is None for limit in limits):
        return _text(context, segment, values)
    low, high = (quantity(values[0].text(at), unit) for at in (1, 2))
    return {"valueRange": present(low=low, high=high)}


_Reader = Callable[[Context, Segment, Sequence[Value]], JsonObject]
_KINDS: dict[str, _Reader] = {
    "NM": _numeric,
    "SN": _structured,
    **dict.fromkeys(("ST", "TX", "FT", "ID", "SI"), _text),
    **dict.fromkeys(("CE", "CWE", "CNE", "CF"), _coded),
    "IS": _of_table,
    **dict.fromkeys(("DT", "TS", "DTM"), _moment),
    "TM": _clock,
    "DR": _period,
    "NR": _between,
    "": _numeric,
}
_OF_ONE = frozenset({_numeric, _moment, _clock, _period, _between})
"""Those whose element holds one value: several remain a text."""
_TEXTS = frozenset("AD CK CP CX DLN EI HD MO NA PL PN PPN RP TN VR XAD XCN XON XPN XTN".split())
"""Types without an element in an Observation: their components are kept as a text."""
