"""Search parameters of a resource type, as declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

DEFINITIONS = "http://hl7.org/fhir/SearchParameter"
SearchType = Literal["token", "date", "reference", "quantity", "string"]
SEARCH_TYPES: tuple[str, ...] = get_args(SearchType)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParameter:
    """A search parameter (FHIR R4, search), and the elements whose values it compares.

    ``identifier``, ``status``, ``patient``, ``_id`` and ``_lastUpdated`` exist for every type and
    are not declared.

    Attributes:
        name: Its name in URLs, such as ``based-on``.
        type: The type of its values. A token compares elements of type CodeableConcept, Coding,
            Identifier, code or boolean; a date those of type date, dateTime, instant, Period or
            Timing; a reference those of type Reference; a quantity those of type Quantity. A
            string compares how texts begin, without case and accents, of elements of type string
            or HumanName: of a name the family and given names, and its text from each word on.
        paths: The names of the elements in JSON, such as ``effectiveDateTime``. Dots lead into
            nested elements, through lists.
        definition: The canonical URL of the SearchParameter, for the CapabilityStatement.
    """

    name: str
    type: SearchType
    paths: tuple[str, ...]
    definition: str = ""


def r4_parameter(definition: str, type_: SearchType, *paths: str) -> SearchParameter:
    """Declare a search parameter that FHIR R4 defines.

    Args:
        definition: The id of the SearchParameter in FHIR R4. The name of the parameter is the part
            behind the first hyphen: ``service-provider`` for ``Encounter-service-provider``,
            ``code`` for ``clinical-code``.
        type_: The type of its values.
        *paths: The elements that it compares, by their names in JSON.

    Returns:
        The search parameter.
    """
    return SearchParameter(
        name=definition.partition("-")[2],
        type=type_,
        paths=paths,
        definition=f"{DEFINITIONS}/{definition}",
    )
