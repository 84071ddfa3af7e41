"""Abuses by bodies that the service refuses, in as many places as possible."""

from __future__ import annotations

from bench.abuses import bodies
from bench.abuses.attack import FHIR_XML, REGISTER, VALIDATE, Attack, Phases, abuse
from bench.abuses.bodies import LONG, SMALL
from fhirpub.fhir.definitions.schema_documents import documents, types_of

_THREADED = 199_000


@abuse(400)
async def wrong_extensions_60kb(attack: Attack) -> Phases:
    """Registers 60 KB of empty extensions."""
    body = bodies.registration(extension=bodies.repeated({}, SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(400)
async def wrong_categories_60kb(attack: Attack) -> Phases:
    """Registers 60 KB of empty categories."""
    body = bodies.registration(category=bodies.repeated({}, SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(400)
async def wrong_contained_60kb(attack: Attack) -> Phases:
    """Registers 60 KB of contained resources of an unknown type."""
    item = {"resourceType": "Nonsense", "x": [1]}
    body = bodies.registration(contained=bodies.repeated(item, SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(400)
async def wrong_contained_types(attack: Attack) -> Phases:
    """Registers contained resources with an unknown element, of every type with a schema."""
    items = [{"resourceType": name, "unknown": 1} for name in types_of(documents({}))]
    body = bodies.registration(contained=items).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(400)
async def odd_entries_60kb(attack: Attack) -> Phases:
    """Registers Parameters with 60 KB of entries that are no objects or have no name."""
    body = bodies.with_entries(bodies.repeated({}, SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(201)
async def unknown_entries_60kb(attack: Attack) -> Phases:
    """Registers valid Parameters with 60 KB of entries that the service ignores."""
    entries = bodies.repeated({"name": "x", "valueCode": "x"}, SMALL - 2_000)
    body = bodies.with_entries(entries)
    yield
    await attack.flood(attack.post_new(REGISTER, body))


@abuse(400)
async def unknown_names_60kb(attack: Attack) -> Phases:
    """Registers a report with 4,000 elements that no report has."""
    body = bodies.registration(**bodies.unknown_names(SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(200)
async def validate_wrong_extensions_60kb(attack: Attack) -> Phases:
    """Validates 60 KB of empty extensions."""
    body = bodies.registration(extension=bodies.repeated({}, SMALL - 2_000)).whole
    yield
    await attack.flood(attack.post(VALIDATE, body))


@abuse(400)
async def wrong_extensions_199kb(attack: Attack) -> Phases:
    """Registers 199 KB of empty extensions, which are validated in a thread."""
    body = bodies.registration(extension=bodies.repeated({}, _THREADED)).whole
    yield
    await attack.flood(attack.post(REGISTER, body))


def _of_28_mb() -> bytes:
    nested = bodies.nested_around_a_string(25, LONG)
    return bodies.registration(extension=[nested, *[{}] * 2_100]).whole


@abuse(400)
async def wrong_28mb(attack: Attack) -> Phases:
    """Registers 28 MB: 25 wrong objects around one long string, and 2,100 empty extensions."""
    body = _of_28_mb()
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(200)
async def validate_wrong_28mb(attack: Attack) -> Phases:
    """Validates the same 28 MB."""
    body = _of_28_mb()
    yield
    await attack.flood(attack.post(VALIDATE, body))


@abuse(413)
async def too_long_100mb(attack: Attack) -> Phases:
    """Sends bodies of 100 MB, which are read to their end and refused."""
    body = b" " * 100_000_000
    yield
    await attack.flood(attack.post(REGISTER, body))


@abuse(400)
async def xml_attributes_60kb(attack: Attack) -> Phases:
    """Registers XML with an element of 6,000 attributes."""
    body = bodies.xml_with(bodies.attributes(6_000))
    yield
    await attack.flood(attack.post(REGISTER, body, media_type=FHIR_XML))


@abuse(400)
async def xml_attributes_2mb(attack: Attack) -> Phases:
    """Registers XML with an element of 190,000 attributes."""
    body = bodies.xml_with(bodies.attributes(190_000))
    yield
    await attack.flood(attack.post(REGISTER, body, media_type=FHIR_XML))


@abuse(400)
async def xml_elements_60kb(attack: Attack) -> Phases:
    """Registers XML with 15,000 unknown elements."""
    body = bodies.xml_with(bodies.elements(15_000))
    yield
    await attack.flood(attack.post(REGISTER, body, media_type=FHIR_XML))


@abuse(400)
async def xml_elements_8mb(attack: Attack) -> Phases:
    """Registers XML with 190,000 unknown elements and a text that fills 8 MB."""
    body = bodies.xml_with(bodies.elements(190_000) + f"<b>{'x' * 7_000_000}</b>")
    yield
    await attack.flood(attack.post(REGISTER, body, media_type=FHIR_XML))
