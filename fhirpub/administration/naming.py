"""How callers name what they mean: keys, identifiers and resources.

A key is chosen by the caller, for what it adds; the id follows from it.

A tool that describes what there is to be, such as Terraform, repeats a request until it
succeeds. So the id of what it adds follows from its own key, as that of a report follows from its
identifier: requests that race, or come again, mean the same record.
"""

from __future__ import annotations

import re
import uuid

from fhirpub.tenant import is_resource_id

KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""A key that a caller chooses; it is no UUID, so that it is never taken for an id."""
KEY_RULE = (
    "must be 1 to 100 lower-case letters, digits, dots, hyphens and underscores, and no UUID"
)
_NAMESPACE = uuid.UUID("5c1b2a5e-6c0e-5d53-9f3c-0d1b7f7f5a10")
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def why_no_key(text: str) -> str:
    """Return why a text can be no key, or nothing."""
    is_key = KEY.fullmatch(text) is not None and _UUID.fullmatch(text) is None
    return "" if is_key else KEY_RULE


def id_of_key(kind: str, key: str, *, tenant: str = "") -> str:
    """Return the id that follows from a key (RFC 9562, section 5.5).

    Args:
        kind: What has the key: ``tenant``, ``client`` or ``endpoint``.
        key: The key.
        tenant: The id of the tenant, unless it is a tenant that has the key.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{kind}\n{tenant}\n{key}"))


def why_no_identifier(text: str) -> str:
    """Return why a text is no identifier, or nothing."""
    system, _, value = text.partition("|")
    is_identifier = bool(system and value.strip()) and value == value.strip()
    return "" if is_identifier else "must be a system, a bar and a value"


def identifier_in(text: str) -> tuple[str, str]:
    """Return the system and the value of a right identifier."""
    system, _, value = text.partition("|")
    return system, value


def id_of(text: str) -> str:
    """Return the id in an address such as ``Patient/<id>``, or the text itself."""
    return text.rpartition("/")[2]


def resource_in(text: str) -> tuple[str, str]:
    """Return the type and the id of a right name of a resource."""
    type_name, _, id_ = text.rpartition("/")
    return type_name, id_


def why_no_resource(text: str) -> str:
    """Return why a text is no TYPE/ID, or nothing."""
    type_name, id_ = resource_in(text)
    is_resource = type_name.isalpha() and type_name.isascii() and is_resource_id(id_)
    return "" if is_resource else "must be TYPE/ID, such as Patient/7d1a…"


def why_no_id(text: str) -> str:
    """Return why a text is no id of a resource, or nothing."""
    return "" if is_resource_id(text) else "must be the id of a resource"
