"""What a resource type can be searched by, as a declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFINITIONS = "http://hl7.org/fhir/SearchParameter"
SEARCH_TYPES = ("token", "date", "reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParameter:
    """A search parameter of FHIR R4, and the elements whose values it compares.

    ``paths`` are names as they stand in JSON (``effectiveDateTime``); dots go deeper, through
    lists. A token is an element of type CodeableConcept, Coding, Identifier, code or boolean, a
    date one of type date, dateTime, instant, Period or Timing, a reference a Reference.
    ``identifier``, ``status``, ``patient``, ``_id`` and ``_lastUpdated`` are there for every
    type and are not declared.
    """

    name: str
    """As it stands in a URL, such as ``based-on``."""
    type: Literal["token", "date", "reference"]
    paths: tuple[str, ...]
    definition: str = ""
    """The canonical URL of the SearchParameter, for the CapabilityStatement."""


def r4_parameter(
    definition: str, type_: Literal["token", "date", "reference"], *paths: str
) -> SearchParameter:
    """Return a parameter as R4 defines it, by the id of its definition.

    What stands behind the first hyphen is its name: ``Encounter-service-provider`` is
    ``service-provider``, ``clinical-code`` is ``code``.
    """
    return SearchParameter(
        name=definition.partition("-")[2],
        type=type_,
        paths=paths,
        definition=f"{DEFINITIONS}/{definition}",
    )
