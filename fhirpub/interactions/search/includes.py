"""What ``_include`` and ``_revinclude`` ask for, and what they bring (R4 search, 3.1.1.5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fhirpub.errors import Issue
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.versions import Shown

_EVERYTHING = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """References to follow.

    ``source`` is the type of the resources that refer, ``parameter`` the search parameter over
    their references and ``target`` the type of what these lead to; each is empty for any.
    ``reverse`` goes from what is referred to to what refers to it. ``iterate`` goes on from
    resources that were included; otherwise only the matches are the beginning.
    """

    source: str = ""
    parameter: str = ""
    target: str = ""
    reverse: bool = False
    iterate: bool = False

    def references_of(self, searched: SearchIndexer) -> Iterator[tuple[str, str]]:
        """Yield under which names a type has such references stored, with their target."""
        if self.source not in ("", searched.type.name):
            return
        for name, known in searched.parameters.items():
            if known.parameter.type != "reference" or self.parameter not in ("", name):
                continue
            if not (known.target and self.target) or known.target == self.target:
                yield known.stored, known.target or self.target


def parse_include(
    value: str,
    type_name: str,
    types: Mapping[str, SearchIndexer],
    *,
    reverse: bool = False,
    iterate: bool = False,
) -> Include | None:
    """Read ``DiagnosticReport:patient``, also with ``:Patient`` behind it, or with ``*``.

    Returns None for what names nothing that can be followed in a search for ``type_name``.
    """
    source, _, rest = value.partition(":")
    name, _, target = rest.partition(":")
    if not reverse and value == _EVERYTHING:
        return Include(iterate=iterate)
    if source not in types or not (reverse or iterate or source == type_name):
        return None
    if not reverse and rest == _EVERYTHING:
        return Include(source=source, iterate=iterate)
    known = types[source].parameters.get(name)
    if known is None or known.parameter.type != "reference":
        return None
    return Include(source=source, parameter=name, target=target, reverse=reverse, iterate=iterate)


@dataclass(frozen=True, slots=True)
class Included:
    """What is included in a page.

    ``parts`` are those of a registration, as they are stored, with the names of those wanted.
    """

    versions: Sequence[Shown] = ()
    parts: Sequence[tuple[bytes, frozenset[str]]] = ()
    issues: Sequence[Issue] = ()

    @property
    def bodies(self) -> list[bytes]:
        """What of it is stored."""
        return [*(version.body for version in self.versions), *(parts for parts, _ in self.parts)]
