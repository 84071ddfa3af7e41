"""Bodies that are nearly right: one that is valid, with a few seeded changes."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from fhirpub.fhir.strict_json import dumps, loads_stored

NEAR_MISSES: tuple[Any, ...] = (
    # times: offsets and fractions that some readers take and FHIR does not, and the other way
    "2026-11-20T10:00:00+15:00",
    "2026-11-20T10:00:00+14:00",
    "2026-11-20T10:00:00-00:00",
    "2026-11-20T10:00:00.123456789+02:00",
    "2026-11-20T10:00:00.1234567891Z",
    "2026-11-20T10:00:00",
    "2026-11-20T23:59:60Z",
    "2026-11-20T24:00:00Z",
    "2026-11-20T10:00Z",
    "2026-11-20t10:00:00z",
    "2026-11-20 10:00:00Z",
    "20261120T100000Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "2026-11",
    "2026-02-30",
    "2026",
    "2099-01-01",
    # texts
    "",
    " ",
    "x",
    "\u00a0",
    "na\u00efve \U0001f9ea \u202e\u0301",
    "tab\tand\nline",
    "a,b|c\\d$e",
    "x" * 2_100,
    # identifiers, systems and references
    "http://loinc.org",
    "HTTPS://lab.example",
    "https://lab.example/%20x",
    "https://lab.example/\u00a0x",
    "urn:oid:2.999.1",
    "urn:oid:x",
    "urn:uuid:5E0B4F7A-8A38-4D07-9A6C-0D1E4C0F7A11",
    "http://hl7.org/fhir/sid/uy",
    "http://hl7.org/fhir/sid/zz",
    "http://terminology.hl7.org/CodeSystem/v2-0203",
    "lab.example",
    "#p1",
    "#",
    "Patient/p1",
    "Patient/patient-1",
    "Patient/5e0b4f7a-8a38-4d07-9a6c-0d1e4c0f7a11",
    "https://ehr.example/Patient/1/_history/2",
    "patient/p1",
    "Observation?code=1",
    # codes
    "final",
    "amended",
    "entered-in-error",
    "unknown",
    "FINAL",
    "PPN",
    "ppn",
    "application/pdf",
    "application/PDF; v=1",
    "text/plain",
    # numbers and other values
    0,
    -0.0,
    1.0,
    1e22,
    13.20,
    2**63,
    True,
    False,
    None,
    [],
    {},
    [None],
    ["x", "x"],
    # base64
    "JVBERi0xLjQK",
    "JVBERi0xLjQ",
    "JVBE Ri0x\nLjQK",
    "AAAA",
)
"""Values that differ little from right ones, or are right where they surprise."""

LIKELY: Mapping[str, Sequence[Any]] = {
    "reference": ("Patient/absent", "https://ehr.example/Patient/1", "#p1", "urn:uuid:x", "x y"),
    "system": ("lab.example", "urn:oid:2.999.1", "http://loinc.org", "urn:oid:x", "phone"),
    "code": ("58410-2", "hm", "PPN", "x"),
    "status": ("amended", "entered-in-error", "x"),
    "use": ("old", "temp", "x"),
    "gender": ("unknown", "x"),
    "birthDate": ("2099-01-01", "1980", "1980-02-30"),
    "contentType": ("application/PDF", "text/plain", "pdf"),
    "hash": ("x", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    "data": ("AAAA", "JVBERi0x", "JVBE Ri0x", "=", "\x00x"),
    "name": ("observation", "patient", "x"),
    "resourceType": ("Patient", "Organization", "x"),
    "id": ("x", "x y", ""),
    "value": ("x" * 2_048, " ", "\u00a0"),
    **dict.fromkeys(
        ("effectiveDateTime", "issued", "creation", "authoredOn", "start", "end"),
        tuple(value for value in NEAR_MISSES if isinstance(value, str) and value[:1].isdigit()),
    ),
}
"""Values that nearly fit under some names."""

_NOTHING = object()
_EXTENSION = {"url": "https://lab.example/x", "valueString": "x"}
ADDITIONS: tuple[tuple[str, Any], ...] = (
    ("contained", [{"resourceType": "Patient", "id": "p9"}]),
    ("contained", [{"resourceType": "Basic", "id": "b", "code": {"text": "x"}}]),
    ("extension", [_EXTENSION]),
    ("extension", [{"url": "x"}]),
    ("modifierExtension", [_EXTENSION]),
    ("implicitRules", "https://lab.example/rules"),
    ("language", "en"),
    ("meta", {"profile": ["https://lab.example/profile"], "tag": [{"code": "x"}]}),
    ("meta", {"versionId": "7", "lastUpdated": "2026-11-20T10:00:00Z"}),
    ("text", {"status": "generated", "div": '<div xmlns="http://www.w3.org/1999/xhtml">x</div>'}),
    ("text", {"status": "additional", "div": '<div xmlns="http://www.w3.org/1999/xhtml"/>'}),
    ("id", "same"),
    ("_id", {"extension": [_EXTENSION]}),
    ("_status", {"extension": [_EXTENSION]}),
    ("_value", {"extension": [_EXTENSION]}),
    ("start", "2026-11-21"),
    ("end", "2026-11-20"),
    ("use", "old"),
    ("type", {"coding": [{"system": "http://terminology.hl7.org/CodeSystem/v2-0203"}]}),
    ("assigner", {"reference": "Organization/o9"}),
    ("assigner", {"display": "x"}),
    ("system", "https://lab.example/codes"),
    ("code", "x"),
    ("value", "x"),
    ("reference", "Patient/p1"),
    ("identifier", {"system": "https://lab.example/x", "value": "1"}),
    ("display", "x"),
    ("gender", "unknown"),
    ("birthDate", "2099-01-01"),
    ("birthDate", "1980"),
    ("deceasedBoolean", True),
    ("telecom", [{"system": "url", "value": "x"}]),
    ("hash", "x"),
    ("size", 1),
    ("url", "https://lab.example/x.pdf"),
    ("title", "x"),
    ("note", [{"text": "x"}]),
    ("unknown", "x"),
    ("resource", {"resourceType": "Patient"}),
)
"""Members that some objects may have and others must not."""


def mutants(body: Any, *, seed: int, number: int) -> Iterator[Any]:
    """Yield changed copies of a body, the same for the same seed.

    Args:
        body: JSON values, such as a valid body of ``$register``.
        seed: What the changes follow from.
        number: How many copies to make, each with one to three changes.

    Yields:
        The copies. Some are as valid as the body, most are not.
    """
    chance = random.Random(seed)
    for _ in range(number):
        mutant = copy.deepcopy(body)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            chance.choice(_CHANGES)(chance, mutant)
        yield mutant


def near_misses(body: Any, likely: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """Yield copies of a body with one change, at each place of it in turn.

    Args:
        body: JSON values.
        likely: Values to put into the place of texts, by the name that they stand under.

    Yields:
        For each place a copy without what stands there, copies with one of ``NEAR_MISSES`` and
        with each value that is likely there; for each object a copy with each of ``ADDITIONS``.
    """
    text = dumps(body)
    for number, (_holder, place) in enumerate([*_places(body)]):
        values = likely.get(place, ()) if isinstance(place, str) else ()
        for value in (_NOTHING, NEAR_MISSES[number % len(NEAR_MISSES)], *values):
            mutant = loads_stored(text)
            inside, name = next(islice(_places(mutant), number, None))
            del inside[name]
            if value is not _NOTHING:
                _insert(inside, name, value)
            yield mutant
    for number, holder in enumerate([*_holders(body)]):
        for name, value in ADDITIONS if isinstance(holder, dict) else ():
            mutant = loads_stored(text)
            next(islice(_holders(mutant), number, None))[name] = copy.deepcopy(value)
            yield mutant


def _places(body: Any) -> Iterator[tuple[Any, Any]]:
    for holder in _holders(body):
        for place in [*holder] if isinstance(holder, dict) else range(len(holder)):
            yield holder, place


def _insert(holder: Any, place: Any, value: Any) -> None:
    if isinstance(holder, list):
        holder.insert(place, copy.deepcopy(value))
    else:
        holder[place] = copy.deepcopy(value)


def _replace_value(chance: random.Random, mutant: Any) -> None:
    holder, place = _any_place(chance, mutant)
    holder[place] = copy.deepcopy(chance.choice(NEAR_MISSES))


def _swap_values(chance: random.Random, mutant: Any) -> None:
    """Put a value where another one stands: a right one in the wrong place."""
    holder, place = _any_place(chance, mutant)
    other, other_place = _any_place(chance, mutant)
    holder[place] = copy.deepcopy(other[other_place])


def _change_text(chance: random.Random, mutant: Any) -> None:
    holder, place = _any_place(chance, mutant)
    text = holder[place]
    if isinstance(text, str):
        at = chance.randrange(len(text) + 1)
        holder[place] = text[:at] + chance.choice("xX0-+ :Z/|\u00e9\u00a0") + text[at:]


def _remove(chance: random.Random, mutant: Any) -> None:
    holder, place = _any_place(chance, mutant)
    del holder[place]


def _repeat(chance: random.Random, mutant: Any) -> None:
    lists = [one for one in _holders(mutant) if isinstance(one, list) and one]
    if lists:
        chosen = chance.choice(lists)
        chosen.append(copy.deepcopy(chance.choice(chosen)))


def _reorder(chance: random.Random, mutant: Any) -> None:
    holder = chance.choice([*_holders(mutant)])
    if isinstance(holder, list):
        chance.shuffle(holder)
    else:
        members = [*holder.items()]
        chance.shuffle(members)
        holder.clear()
        holder.update(members)


def _add(chance: random.Random, mutant: Any) -> None:
    objects = [one for one in _holders(mutant) if isinstance(one, dict)]
    name, value = chance.choice(ADDITIONS)
    chance.choice(objects)[name] = copy.deepcopy(value)


def _rename(chance: random.Random, mutant: Any) -> None:
    objects = [one for one in _holders(mutant) if isinstance(one, dict) and one]
    holder = chance.choice(objects)
    name = chance.choice([*holder])
    holder[chance.choice((f"_{name}", f"{name}x", name.swapcase()))] = holder.pop(name)


_CHANGES = (
    _replace_value,
    _replace_value,
    _swap_values,
    _change_text,
    _remove,
    _repeat,
    _reorder,
    _add,
    _add,
    _rename,
)


def _any_place(chance: random.Random, mutant: Any) -> tuple[Any, Any]:
    """Return an object or list, and a name or index in it."""
    holder = chance.choice([one for one in _holders(mutant) if one] or [{"name": "x"}])
    return holder, chance.choice([*holder] if isinstance(holder, dict) else range(len(holder)))


def _holders(mutant: Any) -> Iterator[Any]:
    """Yield every object and list of JSON values."""
    waiting = [mutant]
    for one in waiting:  # grows while it is read
        if isinstance(one, dict | list):
            yield one
            waiting += one.values() if isinstance(one, dict) else one
