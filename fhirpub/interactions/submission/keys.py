"""What distinguishes a member within the resource that it came with."""

from __future__ import annotations

from typing import Any

from fhirpub.fhir.strict_json import JsonObject


def key_of(resource: JsonObject) -> tuple[str, ...]:
    """Return what the id of a member follows from: its first whole identifier, or its local id.

    A laboratory system that sends a result again may give it another local id, but not another
    identifier (ADR 24).
    """
    identifiers = resource.get("identifier")
    for one in identifiers if isinstance(identifiers, list) else ():
        if not isinstance(one, dict):  # it is asked before validation
            continue
        system, value = _text(one.get("system")), _text(one.get("value"))
        if system and value:
            return "identifier", system, value
    return "id", _text(resource.get("id"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
