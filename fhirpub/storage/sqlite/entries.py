"""What the versions of a SQLite store are found by: the entries of its index over values."""

from __future__ import annotations

from functools import lru_cache

import orjson

from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import field_number
from fhirpub.tenant import is_member_id

_MAX_FIELDS = 2_000
Entry = tuple[int, str | int]
"""A field, and one of the values that a version has in it."""


def index_entries(tenant: str, version: Version) -> list[Entry]:
    """Return what a version is to be found by, but for its members: they lead to it."""
    fields = fields_of(tenant, version.type)
    values = orjson.loads(version.search)
    if version.members:
        own = {each.id: each.type for each in version.members if is_member_id(each.id)}
        values = [value for value in values if own.get(value[1]) != (value[2] or "")]
    return [
        (fields[name], second if type(first) is int else first)
        for name, first, second in values
        if (first or first == 0) and second is not None
    ]


class _Fields(dict[str, int]):
    """The numbers of the names of a tenant's type, each found when it is first asked for."""

    def __init__(self, tenant: str, type_name: str) -> None:
        super().__init__()
        self._of = tenant, type_name

    def __missing__(self, name: str) -> int:
        number = field_number(*self._of, name)
        if len(self) < _MAX_FIELDS:  # units and codes of composites are parts of names
            self[name] = number
        return number


fields_of = lru_cache(maxsize=1024)(_Fields)
