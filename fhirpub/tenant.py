"""A tenant, and the ids that follow from its secret salt."""

from __future__ import annotations

import hmac
import re
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import orjson

from fhirpub.sealed import SaltUnavailable, is_sealed

_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_VERSION_4 = (4 << 76) | (2 << 62)
_VERSION_8 = (8 << 76) | (2 << 62)
"""What RFC 9562 (section 5.8) leaves to applications: the id of a member, and of a person."""
_VERSION_PLACE = 14
_RANDOM_BITS = ~((0xF << 76) | (0x3 << 62)) & ((1 << 128) - 1)


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organization that publishes; everything stored belongs to exactly one.

    ``salt`` (32 random bytes) is made with the tenant and never changes: every id of the tenant
    follows from it. If it could not be decrypted, it is as stored, and every use of it raises
    SaltUnavailable. ``created`` is in milliseconds UTC.
    """

    id: str
    name: str
    salt: bytes = field(repr=False)
    created: int
    disabled: bool = False

    @classmethod
    def new(cls, name: str, *, created: int) -> Tenant:
        """Return a tenant with a fresh id and salt."""
        return cls(id=str(uuid.uuid4()), name=name, salt=secrets.token_bytes(32), created=created)

    def signature(self, message: bytes) -> bytes:
        """Return the HMAC-SHA-256 of a message under the salt."""
        return _signed(self.salt, message)

    def resource_id(self, type_name: str, system: str, value: str) -> str:
        """Return the id that a business identifier always gets in this tenant (ADR 2).

        A UUID with version-4 bits whose other 122 bits are HMAC-SHA-256(salt; type, system,
        value): racing registrations compute the same one, and without the salt it reveals nothing.
        """
        key = orjson.dumps([type_name, system, value])
        return _uuid_of(_hmac(self.salt, key))

    def part_id(self, resource_id: str, part_name: str) -> str:
        """Return the id of a part (its patient, its organization) of a resource (ADR 15).

        The other way round it is the same: the id of the resource from the id of the part. So
        a part needs no key of its own: it is found in the resource that it came with.
        """
        return _uuid_of(int(resource_id.replace("-", ""), 16) ^ _mask(self.salt, part_name))

    def member_id(self, resource_id: str, part_name: str, key: Sequence[str]) -> str:
        """Return the id of a member, such as a result of a report, that has this key in it.

        It cannot be computed back; the store leads from a member to its resource (ADR 24). It is
        a UUID of version 8, so that stores know from an id where to look.
        """
        number = _hmac(self.salt, orjson.dumps([resource_id, part_name, *key]))
        return _uuid_of(number, version=_VERSION_8)

    def person_id(self, system: str, value: str) -> str:
        """Return the id of the Patient that an identifier of a person leads to (ADR 26).

        It is a UUID of version 8: no report can be computed from it.
        """
        number = _hmac(self.salt, orjson.dumps(["person", system, value]))
        return _uuid_of(number, version=_VERSION_8)

    def apart_id(self, resource_id: str) -> str:
        """Return the id of the Patient that a resource gets when it is moved apart (ADR 26).

        It is a UUID of version 8, as that of a person: other resources can be moved to it.
        """
        number = _hmac(self.salt, orjson.dumps(["apart", resource_id]))
        return _uuid_of(number, version=_VERSION_8)

    @property
    def audit_prefix(self) -> str:
        """What the id of each AuditEvent of the tenant begins with: 12 hexadecimal digits."""
        return f"{_hmac(self.salt, b'audit') >> 80:012x}"


@lru_cache(maxsize=1024)
def _mask(salt: bytes, part_name: str) -> int:
    return _hmac(salt, b"part:" + part_name.encode())


def _hmac(salt: bytes, message: bytes) -> int:
    """Return the first 128 bits of HMAC-SHA-256."""
    return int.from_bytes(_signed(salt, message)[:16])


def _signed(salt: bytes, message: bytes) -> bytes:
    keyed = _hmac_with_salt(salt).copy()
    keyed.update(message)
    return keyed.digest()


@lru_cache(maxsize=1024)
def _hmac_with_salt(salt: bytes) -> hmac.HMAC:
    """Return the beginning of every HMAC with a salt: to begin costs more than to go on."""
    if is_sealed(salt):  # ids computed from it would be those of another tenant
        raise SaltUnavailable("the salt of a tenant cannot be decrypted: run `fhirpub check`")
    return hmac.new(salt, digestmod="sha256")


def _uuid_of(number: int, *, version: int = _VERSION_4) -> str:
    digits = f"{(number & _RANDOM_BITS) | version:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@lru_cache(maxsize=4096)
def is_resource_id(text: str) -> bool:
    """Return whether a text could be one of our ids: a UUID in lower case with hyphens."""
    return _ID.fullmatch(text) is not None


def is_member_id(resource_id: str) -> bool:
    """Return whether one of our ids is that of a member (ADR 24)."""
    return resource_id[_VERSION_PLACE : _VERSION_PLACE + 1] == "8"
