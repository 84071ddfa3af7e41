"""Values of composite parameters: two elements that stand side by side (R4 search, composite).

The code that comes first is a part of the name under which the value that comes second is stored:
so an index leads to values of one code as it leads to values of one element (ADR 42).
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product

from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.indexing.values import Searched, take_for, values_at
from fhirpub.storage.criteria import SearchValue

_MAX_CACHED_LENGTH = 200
MAX_PAIRS = 32
"""The maximum number of pairs of one element that are stored: a code may have some codings, and so
may a value, but each with each of the other would be far more values than were sent."""


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Elements of one holder that are searched for together: first codes, then other values.

    Attributes:
        holder: The path of the element that holds both; empty if it is the resource.
        first: The name that the codes are stored under alone.
        second: The name that the other values are stored under alone.
        type: The type of the second values.
        codes: The paths of the codes.
        others: The paths of the second values.
    """

    holder: str
    first: str
    second: str
    type: str
    codes: tuple[str, ...]
    others: tuple[str, ...]

    @cached_property
    def name(self) -> str:
        """What names under which pairs are stored begin with, before it is made short."""
        return f"{'|'.join(self.codes)}${'|'.join(self.others)}"

    @cached_property
    def is_alone(self) -> bool:
        """Whether all values that are stored alone are those of one holder, the resource."""
        stored = {self.first: self.codes, self.second: self.others}
        return not self.holder and all("|".join(paths) == name for name, paths in stored.items())

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """The elements of a resource of which there is one if it has any of these values."""
        return tuple({path.partition(".")[0]: None for path in self.others})

    def stored_under(self, code: str, system: str | None, unit: str) -> str:
        """Return the name for values of a code; a system that is None is any, as is no unit."""
        parts = (self.name, code, system, unit)
        is_short = len(code) + len(system or "") + len(unit) <= _MAX_CACHED_LENGTH
        return (_cached_name if is_short else _short_name)(*parts)

    def values_of(self, resource: JsonObject, searched: Searched) -> Iterator[SearchValue]:
        """Yield the values of a resource.

        What belongs to one holder alone is compared with its system, and with its unit as that is
        written, by what is stored of each part: it needs no values for these.
        """
        head, _, rest = self.holder.partition(".")
        if not self.holder:
            yield from self._pairs_of(resource, searched)
        elif head in resource:
            for holder in values_at(resource, head, rest):
                yield from self._pairs_of(holder, searched)

    def _pairs_of(self, holder: JsonObject, searched: Searched) -> Iterator[SearchValue]:
        codes = _taken(holder, self.codes, "token", self.first, searched)
        if not codes:
            return
        others = [
            (self._unit_in(name), first, second)
            for name, first, second in _taken(
                holder, self.others, self.type, self.second, searched
            )
            if first != ""
        ]
        pairs = islice(product(codes, others), MAX_PAIRS)
        for (_name, code, system), (unit, first, second) in pairs:
            yield self.stored_under(str(code), None, unit), first, second
            if not self.is_alone:
                yield self.stored_under(str(code), str(system), unit), first, second

    def _unit_in(self, name: str) -> str:
        return name.removeprefix(self.second).removeprefix(":")


def _taken(
    holder: JsonObject, paths: tuple[str, ...], type_: str, name: str, searched: Searched
) -> list[SearchValue]:
    found: list[SearchValue] = []
    take = take_for(type_, name)
    for path in paths:
        item = holder.get(path.rpartition(".")[2])
        for one in item if isinstance(item, list) else () if item is None else (item,):
            take(found, name, one, searched)
    return found


def _short_name(name: str, code: str, system: str | None, unit: str) -> str:
    digest = hashlib.blake2b(dumps([name, code, system, unit]), digest_size=12).digest()
    return f"${urlsafe_b64encode(digest).decode()}"


_cached_name = lru_cache(maxsize=4_096)(_short_name)


def pairings_of(
    first: Mapping[str, str], second: Mapping[str, str], type_: str
) -> Iterator[Pairing]:
    """Yield the pairings of codes and other values, by their holders.

    Both are the paths of elements, each with the name that its values are stored under.
    """
    for holder in dict.fromkeys(path.rpartition(".")[0] for path in first):
        codes = tuple(path for path in first if path.rpartition(".")[0] == holder)
        others = tuple(path for path in second if path.rpartition(".")[0] == holder)
        if others:
            yield Pairing(
                holder=holder,
                first=first[codes[0]],
                second=second[others[0]],
                type=type_,
                codes=codes,
                others=others,
            )
