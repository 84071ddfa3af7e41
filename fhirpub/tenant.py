"""A tenant, and the ids that follow from its secret salt."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import uuid
from dataclasses import dataclass

_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_RANDOM_BITS = ~((0xF << 76) | (0x3 << 62)) & ((1 << 128) - 1)


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organization that publishes; everything stored belongs to exactly one.

    ``salt`` (32 random bytes) is made with the tenant and never changes: every id of the tenant
    follows from it. ``created`` is in milliseconds UTC.
    """

    id: str
    name: str
    salt: bytes
    created: int
    disabled: bool = False

    @classmethod
    def new(cls, name: str, *, created: int) -> Tenant:
        """Return a tenant with a fresh id and salt."""
        return cls(id=str(uuid.uuid4()), name=name, salt=secrets.token_bytes(32), created=created)

    def resource_id(self, type_name: str, system: str, value: str) -> str:
        """Return the id that a business identifier always gets in this tenant (D-98).

        A UUID with version-4 bits whose other 122 bits are HMAC-SHA-256(salt; type, system,
        value): racing registrations compute the same one, and without the salt it tells nothing.
        """
        key = json.dumps([type_name, system, value]).encode()
        return _uuid_of(int.from_bytes(hmac.digest(self.salt, key, hashlib.sha256)[:16]))

    def part_id(self, resource_id: str, part_name: str) -> str:
        """Return the id of a part (its patient, its organization) of a resource (D-94).

        The other way round it is the same: the id of the resource from the id of the part. So
        a part needs no key of its own: it is found in the resource that it came with.
        """
        mask = hmac.digest(self.salt, b"part:" + part_name.encode(), hashlib.sha256)[:16]
        return _uuid_of(uuid.UUID(resource_id).int ^ int.from_bytes(mask))


def _uuid_of(number: int) -> str:
    return str(uuid.UUID(int=(number & _RANDOM_BITS) | (4 << 76) | (2 << 62)))


def is_resource_id(text: str) -> bool:
    """Tell whether a text could be one of our ids: a UUID in lower case with hyphens (D-98)."""
    return _ID.fullmatch(text) is not None
